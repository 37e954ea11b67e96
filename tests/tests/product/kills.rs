//! The real process is killed at calls to its storage, and loses the power there: a sample of what the command `kills` does
//! at every one of them.

use deltaonce_tests::kills::{Bench, CASES, Left, Medium};
use deltaonce_tests::s3::seaweedfs;

/// Kills every `step`th call, other ones in each contract.
fn some_kills(medium: Medium, step: usize) {
    let mut left = Vec::new();
    for (offset, case) in CASES.iter().enumerate() {
        let bench = Bench::new(case, medium);
        let moments = bench.moments();
        left.extend(moments.into_iter().skip(offset % step).step_by(step).map(|moment| bench.kill(moment)));
    }
    let count = |which| left.iter().filter(|left| **left == which).count();
    assert!(count(Left::Nothing) > 5 && count(Left::TheLoad) > 0, "{left:?}");
    assert!(count(Left::NotKilled) <= left.len() / 10, "{left:?}");
}

#[test]
fn killed_at_a_call_to_its_disk_and_run_again_it_is_as_if_run_once() {
    some_kills(Medium::Disk, 5);
}

#[test]
fn killed_at_a_request_and_run_again_it_is_as_if_run_once() {
    some_kills(Medium::S3(seaweedfs()), 9);
}

#[test]
fn whatever_a_loss_of_power_leaves_opens_and_holds_what_was_acknowledged() {
    for name in ["append with an identity", "append that makes the table"] {
        let case = CASES.iter().find(|case| case.name.starts_with(name)).unwrap();
        let bench = Bench::new(case, Medium::Disk);
        let images = bench.images();
        assert!(images.len() > 10 && images.iter().any(|(_, acknowledged)| *acknowledged), "{}", images.len());
        images.iter().enumerate().for_each(|(number, image)| bench.wake_up_on(number, image));
    }
}

#[test]
fn what_a_killed_process_left_unsynced_is_synced_before_the_next_one_answers() {
    for (offset, case) in CASES.iter().enumerate() {
        let bench = Bench::new(case, Medium::Disk);
        for number in (1..=bench.calls()).skip(offset % 6).step_by(6) {
            assert!(bench.kill_run_again_and_crash(number) > 0);
        }
    }
}

#[test]
fn a_load_whose_log_cannot_be_synced_is_not_acknowledged() {
    for case in &CASES {
        Bench::new(case, Medium::Disk).load_without_a_synced_log();
    }
}
