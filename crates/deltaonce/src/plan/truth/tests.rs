use super::*;

const OUTCOMES: [Option<bool>; 3] = [Some(true), Some(false), None];

/// Every set of outcomes but the empty one.
fn sets() -> Vec<Vec<Option<bool>>> {
    (1_usize..8).map(|bits| (0..3).filter(|i| bits >> i & 1 == 1).map(|i| OUTCOMES[i]).collect()).collect()
}

fn truths(outcomes: impl IntoIterator<Item = Option<bool>>) -> Truths {
    outcomes.into_iter().fold(Truths { yes: false, no: false, null: false }, |sum, outcome| {
        let one = Truths::only(outcome);
        Truths { yes: sum.yes || one.yes, no: sum.no || one.no, null: sum.null || one.null }
    })
}

fn sql_and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn sql_or(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    sql_and(a.map(|a| !a), b.map(|b| !b)).map(|both| !both)
}

#[test]
fn connectives_follow_sql_exactly() {
    for a in sets() {
        assert_eq!(truths(a.clone()).not(), truths(a.iter().map(|a| a.map(|a| !a))));
        for b in sets() {
            let pairs = || a.iter().flat_map(|a| b.iter().map(move |b| (*a, *b)));
            assert_eq!(truths(a.clone()).and(truths(b.clone())), truths(pairs().map(|(a, b)| sql_and(a, b))));
            assert_eq!(truths(a.clone()).or(truths(b.clone())), truths(pairs().map(|(a, b)| sql_or(a, b))));
        }
    }
}
