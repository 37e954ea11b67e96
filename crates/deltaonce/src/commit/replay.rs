//! Whether a load that is skipped brings the rows that its identity brought when it was applied.
//!
//! Beside each identity the log keeps a digest of its rows, as a `txn` of an app id of its own: what other writers know of
//! `txn` actions holds for it too, and it is forgotten when the identity is.

use crate::error::{Error, Result};
use crate::load::{Identity, Load};
use crate::prepare::digest::RowsDigest;
use crate::table::actions::Txn;

/// Bits of a recorded number that say which version of the app id it belongs to: a writer that knows nothing of digests
/// leaves the one of an earlier version in the log.
const VERSION_BITS: u32 = 15;

/// The identity that keeps the digest of the rows of another one.
pub(crate) fn digested(identity: &Identity, rows: RowsDigest) -> Identity {
    let version = identity.version & ((1 << VERSION_BITS) - 1);
    let rows = (rows.bits() >> (VERSION_BITS + 1)) << VERSION_BITS;
    Identity { app_id: app_id(identity), version: rows.cast_signed() | version }
}

/// How app ids begin that keep digests, before the app id that each belongs to.
const DIGESTS: &str = "deltaonce.rows.1:";

/// The app id that keeps the digest of an identity's rows.
pub(crate) fn app_id(identity: &Identity) -> String {
    format!("{DIGESTS}{}", identity.app_id)
}

/// Whether an app id keeps digests and is nobody's identity.
pub(crate) fn keeps_digests(app_id: &str) -> bool {
    app_id.starts_with(DIGESTS)
}

/// Checks that a load which is to be compared has an identity to compare by.
///
/// # Errors
/// `Invalid` where it has none.
pub(crate) fn validate(load: &Load) -> Result<()> {
    if load.verify_replay && load.identities.is_empty() {
        return Err(Error::invalid(
            "--verify-replay compares rows with those that an identity brought, and this load has none",
        )
        .hint("give it one: --txn-app-id and --txn-version, --txn or --write-id"));
    }
    Ok(())
}

/// Compares the rows of a load that is to be skipped with what the log records for the [`app_id`] of its identity.
///
/// # Errors
/// `Refused` where the rows are others, and where the log does not say what they were.
pub(crate) fn check(table: &str, identity: &Identity, rows: RowsDigest, recorded: Option<i64>) -> Result<()> {
    let ours = digested(identity, rows).version;
    let version = |number: i64| number & ((1 << VERSION_BITS) - 1);
    match recorded {
        Some(recorded) if recorded == ours => Ok(()),
        Some(recorded) if version(recorded) == version(ours) => Err(Error::refused(format!(
            "{identity} was applied to {table} with other rows than these; nothing was changed"
        ))
        .hint("give rows that are new an identity of their own; to change rows that were loaded, use replace or merge")),
        _ => Err(Error::refused(format!(
            "{table} records {identity} without a digest of its rows, so these cannot be compared with them; nothing was changed"
        ))
        .hint("without --verify-replay the load is skipped")),
    }
}

/// The `txn` actions that record identities at `now` (milliseconds since the epoch), and the digest of their rows beside
/// each.
pub(crate) fn record(identities: &[Identity], rows: RowsDigest, now: i64) -> Vec<Txn> {
    let both = identities.iter().flat_map(|identity| [identity.clone(), digested(identity, rows)]);
    both.map(|Identity { app_id, version }| Txn { app_id, version, last_updated: Some(now) }).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, RecordBatch};

    use super::*;

    fn rows(ids: &[i64]) -> RowsDigest {
        let ids = Arc::new(Int64Array::from(ids.to_vec()));
        RowsDigest::of(&RecordBatch::try_from_iter([("id", ids as _)]).unwrap()).unwrap()
    }

    fn of(version: i64) -> Identity {
        Identity { app_id: "a".to_owned(), version }
    }

    #[test]
    fn the_rows_of_an_identity_are_known_again() {
        for version in [0, 1, 42, 32_768, i64::MAX] {
            let recorded = digested(&of(version), rows(&[1, 2])).version;
            assert!(recorded >= 0);
            check("t", &of(version), rows(&[2, 1]), Some(recorded)).unwrap();
            let error = check("t", &of(version), rows(&[1, 3]), Some(recorded)).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Refused);
            assert!(error.message().contains("with other rows"), "{error}");
        }
    }

    #[test]
    fn what_the_log_does_not_say_is_not_guessed() {
        let earlier = digested(&of(41), rows(&[1])).version;
        for recorded in [None, Some(earlier)] {
            let error = check("t", &of(42), rows(&[1]), recorded).unwrap_err();
            assert!(error.message().contains("without a digest"), "{error}");
        }
    }

    #[test]
    fn nobody_can_take_the_app_id_of_a_digest_for_an_identity() {
        let digest = digested(&of(1), rows(&[1]));
        assert!(keeps_digests(&digest.app_id) && !keeps_digests("a"));
        assert!(crate::commit::identity::validate(&[digest]).is_err());
    }

    #[test]
    fn each_identity_is_recorded_with_its_digest() {
        let txns = record(&[of(7)], rows(&[1]), 5);
        let ids: Vec<_> = txns.iter().map(|txn| (txn.app_id.as_str(), txn.last_updated)).collect();
        assert_eq!(ids, [("a", Some(5)), ("deltaonce.rows.1:a", Some(5))]);
    }
}
