//! A storage that is full, read-only, closed or out of reach: one sentence that names the table, what to do about it, the
//! right exit code, no secret, and nothing left behind.

use deltaonce_tests::cli::{Run, Sandbox};
use deltaonce_tests::process::free_ports;
use deltaonce_tests::proxy::{Arm, Fault, Proxy};
use deltaonce_tests::s3;
use serde_json::Value;

use crate::support::{NEWEST, create_orders, done};

const KEY_ID: &str = "AKIA-THE-KEY-ID";
const SECRET: &str = "the-secret-key";
const TOKEN: &str = "the-session-token";

/// Sees that a run ended as it should: with this code, `sentence` after the table's name, and `advice`.
fn ended(run: Run, code: i32, table: &str, sentence: &str, advice: &str) {
    let run = run.ended(code);
    let error = &run.json()["error"];
    let text = |key: &str| error[key].as_str().unwrap_or_else(|| panic!("no {key} in {error}")).to_owned();
    let message = text("message");
    assert!(message.contains(&format!("{table}: {sentence}")), "{error}");
    assert!(!message.contains('\n') && !message.contains('<'), "one plain sentence: {error}");
    assert!(text("hint").contains(advice), "{error}");
    let said = format!("{}{}", run.stdout, run.stderr);
    for secret in [SECRET, TOKEN, "testtest"] {
        assert!(!said.contains(secret), "{secret} is shown: {said}");
    }
}

fn json(line: &str) -> String {
    format!("{line} --output json --quiet")
}

/// Commands of every kind on a table of orders, and on one that is not there yet.
fn writes(table: &str, new: &str) -> [(String, String); 5] {
    [
        (format!("append {table} day1.parquet --write-id x"), table.to_owned()),
        (format!("merge {table} changes.ndjson {NEWEST}"), table.to_owned()),
        (format!("replace {table} day1.parquet --all"), table.to_owned()),
        (format!("append {new} day1.parquet --write-id x"), new.to_owned()),
        (format!("create {new} --schema schema.json"), new.to_owned()),
    ]
}

fn with_a_table(sandbox: &Sandbox, table: &str) -> Vec<String> {
    create_orders(sandbox, table, "");
    done(sandbox, &format!("append {table} older.ndjson --write-id older"));
    sandbox.table(table).files()
}

#[test]
fn a_full_disk() {
    let sandbox = Sandbox::with_fixtures();
    let files = with_a_table(&sandbox, "lake/orders");
    // A disk of its own, with the table and no room beside it. What is there afterwards is kept before the disk goes.
    let script = r#"
        mkdir full
        mount -t tmpfs -o size=64k none full
        cp -r lake/orders full/orders
        head -c 1000000 /dev/zero >full/fill 2>/dev/null || true
        "$@" && status=0 || status=$?
        rm full/fill
        rm -rf after && cp -r full after
        umount full && rmdir full
        exit $status
    "#;
    for (line, table) in writes("full/orders", "full/new") {
        let run = sandbox.run_where(script, &json(&line));
        ended(run, 3, &table, "its disk is full", "make room");
        assert_eq!(sandbox.table("after/orders").files(), files, "{line}");
        assert_eq!(sandbox.table("after/new").files(), [""; 0], "{line}");
    }
}

#[test]
fn a_read_only_disk() {
    let sandbox = Sandbox::with_fixtures();
    let files = with_a_table(&sandbox, "lake/orders");
    let script = r#"
        mount --bind lake lake
        mount -o remount,ro,bind lake
        exec "$@"
    "#;
    for (line, table) in writes("lake/orders", "lake/new") {
        let run = sandbox.run_where(script, &json(&line));
        assert!(!run.stdout.contains("could not remove"), "there is nothing to remove: {}", run.stdout);
        ended(run, 2, &table, "its file system is read-only", "mount it for writing");
        assert_eq!(sandbox.table("lake/orders").files(), files, "{line}");
        assert_eq!(sandbox.table("lake/new").files(), [""; 0], "{line}");
    }
    // What needs no writing is done.
    let again = sandbox.run_where(script, &json("append lake/orders older.ndjson --write-id older")).ended(0);
    assert_eq!(again.outcome(), "skipped");
}

/// What a server may answer, and what is to be said then.
const ANSWERS: [(Fault, &str, &str); 7] = [
    (
        Fault::Answer(400, "ExpiredToken", "The provided token has expired."),
        "its store says that these credentials have expired",
        "get new ones",
    ),
    (
        Fault::Answer(403, "InvalidAccessKeyId", "The access key does not exist in our records."),
        "its store does not know these credentials",
        "access_key_id",
    ),
    (
        Fault::Answer(403, "RequestTimeTooSkewed", "The difference is too large."),
        "the clock of this machine",
        "set the clock",
    ),
    (
        Fault::Answer(403, "AccessDenied", "Access Denied"),
        "its store denies access with these credentials",
        "allowed to list, read, write and delete",
    ),
    (Fault::Answer(404, "NoSuchBucket", "The bucket does not exist."), "there is no such bucket", "make the bucket"),
    (
        Fault::Answer(
            400,
            "AuthorizationHeaderMalformed",
            "The region &#39;us-east-1&#39; is wrong; expecting &#39;eu-central-1&#39;",
        ),
        "its bucket lies in another region",
        "aws_region=eu-central-1",
    ),
    (
        Fault::Answer(301, "PermanentRedirect", "The bucket must be addressed using the specified endpoint."),
        "its bucket lies in another region",
        "aws_region",
    ),
];

/// A table on the server, and a sandbox that reaches it through a proxy with keys that must never be shown.
fn behind_a_proxy() -> (Proxy, Sandbox, String, Vec<String>) {
    let server = s3::seaweedfs();
    let (direct, url) = (Sandbox::on(server), server.fresh_url("orders"));
    let files = with_a_table(&direct, &url);
    let proxy = Proxy::before(server.address());
    let sandbox = Sandbox::on(server).env(s3::options_at(proxy.address()));
    (proxy, sandbox, url, files)
}

#[test]
fn a_server_that_says_no_from_the_start() {
    for (fault, sentence, advice) in ANSWERS {
        let (proxy, sandbox, url, files) = behind_a_proxy();
        let sandbox = sandbox.env([
            ("AWS_ACCESS_KEY_ID".to_owned(), KEY_ID.to_owned()),
            ("AWS_SECRET_ACCESS_KEY".to_owned(), SECRET.to_owned()),
            ("AWS_SESSION_TOKEN".to_owned(), TOKEN.to_owned()),
        ]);
        proxy.arm(Arm::all(fault));
        for line in [format!("append {url} day1.parquet --write-id x"), format!("show {url}")] {
            ended(sandbox.run(&json(&line)), 2, &url, sentence, advice);
        }
        let told = sandbox.run(&format!("append {url} day1.parquet --write-id x")).ended(2);
        assert!(told.stderr.lines().all(|line| !line.contains("<?xml")), "{}", told.stderr);
        assert!(!told.stderr.contains(SECRET) && !told.stderr.contains(TOKEN), "{}", told.stderr);
        assert_eq!(sandbox.table(&url).files(), files, "{fault:?}");
    }
}

#[test]
fn a_server_that_says_no_to_one_of_the_puts() {
    let puts = ["_delta_log/00000000000000000002.json", ".deltaonce-probe", ".parquet"];
    for (i, (fault, sentence, advice)) in ANSWERS.into_iter().cycle().take(2 * ANSWERS.len()).enumerate() {
        let name = puts[i % puts.len()];
        let (proxy, sandbox, url, files) = behind_a_proxy();
        proxy.arm(Arm::new("PUT", name, fault).times(usize::MAX));
        let line = json(&format!("append {url} day1.parquet --write-id x --commit-timeout 5s"));
        ended(sandbox.run(&line), 2, &url, sentence, advice);
        assert_eq!(sandbox.table(&url).files(), files, "{fault:?}");
    }
}

#[test]
fn a_bucket_that_is_not_there() {
    let sandbox = Sandbox::on(s3::seaweedfs());
    for line in [
        "append s3://nowhere/orders day1.parquet --write-id x",
        "create s3://nowhere/orders --schema schema.json",
        "show s3://nowhere/orders",
    ] {
        ended(sandbox.run(&json(line)), 2, "s3://nowhere/orders", "there is no such bucket", "make the bucket");
    }
}

#[test]
fn keys_that_do_not_fit() {
    let server = s3::seaweedfs();
    for (name, value, sentence) in [
        ("AWS_SECRET_ACCESS_KEY", SECRET, "its store does not accept the secret key"),
        ("AWS_ACCESS_KEY_ID", KEY_ID, "its store does not know these credentials"),
    ] {
        let sandbox = Sandbox::on(server).env([(name.to_owned(), value.to_owned())]);
        let url = server.fresh_url("orders");
        let run = sandbox.run(&json(&format!("append {url} day1.parquet --write-id x")));
        ended(run, 2, &url, sentence, "look at");
        assert_eq!(server.keys(&url), [""; 0]);
    }
}

#[test]
fn an_endpoint_out_of_reach() {
    let [port] = free_ports();
    for (endpoint, why) in [
        (format!("http://127.0.0.1:{port}"), "its store cannot be reached: "),
        ("http://nowhere.invalid:8333".to_owned(), "its store cannot be reached: "),
    ] {
        let sandbox = Sandbox::on(s3::seaweedfs()).env([("AWS_ENDPOINT_URL".to_owned(), endpoint)]);
        for line in ["append s3://test/orders day1.parquet --write-id x", "show s3://test/orders"] {
            ended(sandbox.run(&json(line)), 3, "s3://test/orders", why, "endpoint_url");
        }
    }
}

#[test]
fn a_source_that_cannot_be_read() {
    let source = "s3://test/landing/day1.parquet";
    for (fault, sentence, advice) in ANSWERS {
        let (proxy, sandbox, url, files) = behind_a_proxy();
        s3::seaweedfs().put(source, &sandbox.path("day1.parquet"));
        proxy.arm(Arm::new("GET", "landing/day1.parquet", fault).times(usize::MAX));
        let run = sandbox.run(&json(&format!("append {url} {source} --write-id x")));
        let error: Value = run.json()["error"].take();
        assert!(error.to_string().contains(sentence) && error.to_string().contains(advice), "{fault:?}: {error}");
        assert_eq!(run.status, Some(2), "{fault:?}: {error}");
        assert_eq!(sandbox.table(&url).files(), files, "{fault:?}");
    }
}
