//! A data file large enough to go up in parts, each call of which fails.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray};
use arrow::record_batch::{RecordBatch, RecordBatchIterator};
use deltaonce::fault::{Answer, Call, Effect, Operation, Rule};
use deltaonce::{ErrorKind, Load, Source};

use super::place::{Medium, Objects, Place};

/// Ten rows of a mebibyte each that do not compress: more than one part.
fn blobs() -> RecordBatch {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33).to_le_bytes()
    };
    let blobs: Vec<Vec<u8>> = (0..10)
        .map(|_| {
            (0..1 << 18)
                .flat_map(|_| {
                    let [a, b, c, _, ..] = next();
                    [a, b, c, a ^ b]
                })
                .collect()
        })
        .collect();
    let blobs: ArrayRef = Arc::new(BinaryArray::from_iter_values(blobs));
    RecordBatch::try_from_iter([("blob", blobs)]).unwrap()
}

fn source(rows: &RecordBatch) -> Source {
    Source::batch_reader(RecordBatchIterator::new([Ok(rows.clone())], rows.schema()))
}

async fn each_part_fails(medium: Medium) {
    let (rows, load) = (blobs(), Load::append().write_id("blobs"));
    let place = Place::holding(medium, &Objects::default()).await;
    place.load_rows(&load, source(&rows)).await.unwrap();
    let clean = place.ledger().await;
    assert_eq!(clean.rows.len(), 10);
    let is_upload =
        |call: &Call| matches!(call.operation, Operation::StartUpload | Operation::PutPart | Operation::CompleteUpload);
    let uploads: Vec<Operation> = place.plan.calls().into_iter().filter(is_upload).map(|call| call.operation).collect();
    assert!(uploads.len() >= 4, "a start, two parts and the end: {uploads:?}");

    for (operation, nth) in
        [(Operation::StartUpload, 1), (Operation::PutPart, 1), (Operation::PutPart, 2), (Operation::CompleteUpload, 1)]
    {
        for (effect, answer) in [(Effect::Lost, Answer::Status(503)), (Effect::Taken, Answer::Timeout)] {
            for abort_fails in [false, true] {
                let how = format!("{medium:?}: {operation:?} {nth} {effect:?} {answer:?}, abort fails: {abort_fails}");
                let place = Place::holding(medium, &Objects::default()).await;
                place.plan.add(Rule::on(operation).nth(nth).fails(effect, answer));
                if abort_fails {
                    place.plan.add(Rule::on(Operation::AbortUpload).fails(Effect::Lost, Answer::Timeout));
                }
                let error = place.load_rows(&load, source(&rows)).await.expect_err(&how);
                assert_eq!(error.kind(), ErrorKind::Retryable, "{how}: {error:?}");
                let now = place.ledger().await;
                assert!(now.entries.is_empty(), "{how}");
                // An unfinished upload is a file on disk; once it cannot be aborted, that is told.
                let unfinished = now.strays().into_iter().filter(|name| name.contains('#')).count();
                let objects: Vec<_> = now.strays().into_iter().filter(|name| !name.contains('#')).collect();
                assert!(objects.is_empty(), "{how}: {objects:?} {error:?}");
                assert!(unfinished == 0 || abort_fails, "{how}: {error:?}");
                place.plan.clear();
                place.load_rows(&load, source(&rows)).await.unwrap();
                assert_eq!(place.ledger().await.rows, clean.rows, "{how}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_part_of_an_upload_fails_on_disk() {
    each_part_fails(Medium::Disk).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_part_of_an_upload_fails_in_an_object_store() {
    each_part_fails(Medium::Memory).await;
}
