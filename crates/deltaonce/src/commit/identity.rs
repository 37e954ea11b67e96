//! Whether the log already holds a load: Delta's application transactions.

use crate::error::{Error, Result};
use crate::load::Identity;

/// How app ids begin that this library keeps for itself.
const RESERVED: &str = "deltaonce.";

/// What the log says of a load's identities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// None is recorded, or the load has none: apply it.
    New,
    /// All are recorded at their version or a higher one: skip it.
    Already {
        /// The identity to tell of: one that a higher version supersedes, where there is one.
        by: Identity,
        /// The version recorded for it.
        recorded: i64,
    },
}

/// Compares identities with the versions that the log records for them (`None`: the log knows no such app id).
///
/// # Errors
/// `Refused` where some are recorded and others are not: the load is then neither new nor applied.
pub(crate) fn check(table: &str, identities: &[(Identity, Option<i64>)]) -> Result<Seen> {
    let is_seen = |(identity, recorded): &&(Identity, Option<i64>)| recorded.is_some_and(|at| at >= identity.version);
    let seen: Vec<_> = identities.iter().filter(is_seen).collect();
    if seen.is_empty() {
        return Ok(Seen::New);
    }
    if seen.len() < identities.len() {
        let lines = identities.iter().map(|(identity, recorded)| match recorded {
            Some(at) if *at >= identity.version => format!("{identity} is applied (recorded: {at})"),
            Some(at) => format!("{identity} is new (recorded: {at})"),
            None => format!("{identity} is new"),
        });
        return Err(Error::refused(format!(
            "{} of {} identities of this load are already applied to {table} and the others are not; nothing was changed",
            seen.len(),
            identities.len()
        ))
        .details(lines)
        .hint("load the rows of the new identities on their own"));
    }
    let superseded = seen.iter().find(|(identity, recorded)| recorded.is_some_and(|at| at > identity.version));
    match superseded.or(seen.first()) {
        Some((by, Some(recorded))) => Ok(Seen::Already { by: by.clone(), recorded: *recorded }),
        _ => Ok(Seen::New),
    }
}

/// Checks what a caller gives as identities.
///
/// # Errors
/// `Invalid` for an empty or [`RESERVED`] app id, a negative version, or an app id given twice (an entry may hold one `txn`
/// per app id).
pub(crate) fn validate(identities: &[Identity]) -> Result<()> {
    for (i, identity) in identities.iter().enumerate() {
        if identity.app_id.is_empty() {
            return Err(Error::invalid("an identity has an empty app id; give it a name"));
        }
        if identity.app_id.starts_with(RESERVED) {
            return Err(Error::invalid(format!(
                "app id '{}' begins with '{RESERVED}', which is kept for what deltaonce records itself; give it another name",
                identity.app_id
            )));
        }
        if identity.version < 0 {
            return Err(Error::invalid(format!("identity {identity} has a negative version; versions start at 0")));
        }
        if identities.iter().take(i).any(|earlier| earlier.app_id == identity.app_id) {
            return Err(Error::invalid(format!(
                "app id '{}' is given twice; a load carries one version of each app id",
                identity.app_id
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(app: &str, version: i64, recorded: Option<i64>) -> (Identity, Option<i64>) {
        (Identity { app_id: app.into(), version }, recorded)
    }

    #[test]
    fn a_load_is_new_until_its_version_is_recorded() {
        assert_eq!(check("t", &[]).unwrap(), Seen::New);
        assert_eq!(check("t", &[of("a", 0, None)]).unwrap(), Seen::New);
        assert_eq!(check("t", &[of("a", 8, Some(7))]).unwrap(), Seen::New);
    }

    #[test]
    fn an_equal_or_higher_version_skips_it() {
        for recorded in [7, 9] {
            let seen = check("t", &[of("a", 7, Some(recorded))]).unwrap();
            assert_eq!(seen, Seen::Already { by: Identity { app_id: "a".into(), version: 7 }, recorded });
        }
    }

    #[test]
    fn of_several_the_superseded_one_is_told() {
        let seen = check("t", &[of("a", 1, Some(1)), of("b", 1, Some(4))]).unwrap();
        assert_eq!(seen, Seen::Already { by: Identity { app_id: "b".into(), version: 1 }, recorded: 4 });
    }

    #[test]
    fn some_applied_and_some_not_is_refused() {
        let error = check("t", &[of("a", 1, Some(1)), of("b", 1, None)]).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Refused);
        assert_eq!(error.evidence(), ["a=1 is applied (recorded: 1)", "b=1 is new"]);
    }

    #[test]
    fn bad_identities_are_invalid() {
        let id = |app: &str, version| Identity { app_id: app.into(), version };
        for bad in [vec![id("", 1)], vec![id("deltaonce.rows.1:a", 1)], vec![id("a", -1)], vec![id("a", 1), id("a", 2)]]
        {
            assert_eq!(validate(&bad).unwrap_err().kind(), crate::ErrorKind::Invalid);
        }
    }
}
