use clap::Parser;

use super::*;

#[derive(Parser)]
struct Alone {
    #[command(flatten)]
    source: SourceArgs,
}

fn request(args: &[&str]) -> Result<Request> {
    let args = std::iter::once("test").chain(args.iter().copied());
    Alone::try_parse_from(args).unwrap_or_else(|e| panic!("{e}")).source.request()
}

fn files(paths: &[&str]) -> Request {
    Request { paths: Some(paths.iter().map(|&path| path.to_owned()).collect()), format: None, csv: None }
}

#[test]
fn files_need_nothing_more() {
    assert_eq!(request(&["a.csv", "b.csv"]).unwrap(), files(&["a.csv", "b.csv"]));
    let parquet = Request { format: Some(Format::Parquet), ..files(&["a"]) };
    assert_eq!(request(&["a", "--format", "parquet"]).unwrap(), parquet);
}

#[test]
fn csv_options_start_from_the_usual_ones() {
    let csv = |args: &[&str]| request(&[&["a.csv"], args].concat()).unwrap().csv;
    assert_eq!(csv(&[]), None);
    let options =
        |delimiter, quote, null: Option<&str>| Some(CsvOptions { delimiter, quote, null: null.map(str::to_owned) });
    assert_eq!(csv(&["--delimiter", "\\t"]), options(b'\t', Some(b'"'), None));
    assert_eq!(csv(&["--quote", "none", "--null", "NA"]), options(b',', None, Some("NA")));
    assert_eq!(csv(&["--quote", "'", "--null", ""]), options(b',', Some(b'\''), Some("")));
    let error = request(&["a", "--format", "ndjson", "--null", "NA"]).unwrap_err();
    assert_eq!(error.message(), "--delimiter, --quote and --null are about CSV, and --format says another format");
}

#[test]
fn stdin_is_alone_and_has_a_format() {
    let stdin = Request { paths: None, format: Some(Format::Csv), csv: None };
    assert_eq!(request(&["-", "--format", "csv"]).unwrap(), stdin);
    assert_eq!(request(&["-"]).unwrap_err().message(), "stdin (-) has no name that tells its format");
    let error = request(&["-", "a.csv", "--format", "csv"]).unwrap_err();
    assert_eq!(error.message(), "stdin (-) must be the only source");
}
