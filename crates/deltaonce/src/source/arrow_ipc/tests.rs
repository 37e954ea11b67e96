use std::path::Path;

use arrow::array::*;
use arrow::datatypes::Int8Type;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow::record_batch::RecordBatch;
use futures::{StreamExt, TryStreamExt};

use super::*;
use crate::ErrorKind;
use crate::source::input::{Given, InputPlace};

fn rows(start: i64, count: i64) -> RecordBatch {
    let kinds: DictionaryArray<Int8Type> = (0..count).map(|i| ["a", "b", "c"].get(i as usize % 3).copied()).collect();
    RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from_iter_values(start..start + count)) as ArrayRef),
        ("kind", Arc::new(kinds) as ArrayRef),
        ("price", Arc::new(Decimal128Array::from_iter_values((start..start + count).map(i128::from))) as ArrayRef),
    ])
    .unwrap()
}

fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn file(batches: &[RecordBatch]) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).unwrap();
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn local(path: &Path) -> Arc<Input> {
    Arc::new(Input::new("in.arrow".into(), InputPlace::Local(path.into()), Arc::default()))
}

fn given(bytes: &[u8]) -> Arc<Input> {
    let pieces: Vec<_> = bytes.chunks(1000).map(|piece| Ok(piece.to_vec().into())).collect();
    let place = InputPlace::Given(Given::new(futures::stream::iter(pieces).boxed()));
    Arc::new(Input::new("stdin".into(), place, Arc::default()))
}

#[tokio::test]
async fn files_and_streams_give_the_same_rows() {
    let written = [rows(0, 40_000), rows(40_000, 5)];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.arrow");
    for stored in [stream(&written), file(&written)] {
        std::fs::write(&path, &stored).unwrap();
        for input in [local(&path), given(&stored)] {
            assert_eq!(schema(&input).await.unwrap(), written[0].schema());
            let batches: Vec<_> = read(&input).try_collect().await.unwrap();
            assert!(batches.iter().all(|batch| batch.rows.num_rows() <= BATCH_ROWS));
            assert_eq!(batches.last().unwrap().places.of(4).number, 40_005);
            let ids: Vec<i64> = batches
                .iter()
                .flat_map(|batch| batch.rows.column(0).as_primitive::<arrow::datatypes::Int64Type>().values().to_vec())
                .collect();
            assert_eq!(ids, (0..40_005).collect::<Vec<_>>());
        }
    }
}

#[tokio::test]
async fn what_is_cut_short_anywhere_is_refused() {
    let written = [rows(0, 100), rows(100, 100), rows(200, 100)];
    for stored in [stream(&written), file(&written)] {
        for cut in (0..stored.len()).step_by(4) {
            let read = read(&given(&stored[..cut])).try_collect::<Vec<_>>().await;
            let error = read.expect_err(&format!("cut at {cut} of {}", stored.len()));
            assert_eq!(error.kind(), ErrorKind::Refused, "cut at {cut}: {}", error.message());
        }
    }
}

#[tokio::test]
async fn two_streams_in_one_are_refused() {
    let one = stream(&[rows(0, 3)]);
    let error = read(&given(&[one.clone(), one].concat())).try_collect::<Vec<_>>().await.unwrap_err();
    assert!(error.message().contains("goes on after its end"), "{}", error.message());
    let error = schema(&given(b"FEA1....")).await.unwrap_err();
    assert!(error.message().contains("Feather file of version 1"));
    let error = schema(&given(b"id,name\n1,a\n")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
}
