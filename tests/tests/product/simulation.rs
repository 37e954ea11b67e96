//! Some hundred schedules of the simulation; `simulate` runs more (docs/reliability.md).

use deltaonce::fault::CommitRule;
use deltaonce_tests::simulation::{Report, first_broken, simulate};

/// As many as take about half a minute.
const SCHEDULES: u64 = 200;

#[test]
fn schedules_hold() {
    if let Some((seed, report)) = first_broken(1..SCHEDULES + 1, None) {
        panic!("seed {seed}: {}\n{}", report.broken.unwrap_or_default(), report.story.join("\n"));
    }
}

#[test]
fn a_seed_is_one_run() {
    for seed in 1..=12 {
        let [once, again] = [(), ()].map(|()| simulate(seed, None, None));
        assert!(once.story.len() > 20, "seed {seed} tells a story: {:?}", once.story);
        assert_eq!(once.story, again.story, "seed {seed}");
        assert_eq!(once.objects, again.objects, "seed {seed}");
    }
}

/// That a rule is broken shows in one of so many schedules.
const NOTICED_WITHIN: u64 = 50;

#[test]
fn each_broken_rule_is_noticed() {
    for rule in CommitRule::ALL {
        let (seed, report): (u64, Report) = first_broken(1..NOTICED_WITHIN + 1, Some(rule))
            .unwrap_or_else(|| panic!("without {rule:?} all of {NOTICED_WITHIN} schedules hold"));
        println!("without {rule:?}: seed {seed}: {}", report.broken.unwrap_or_default());
    }
}
