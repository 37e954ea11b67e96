//! The rules that make a commit safe, each of which a test can take away to see that its checks notice.

/// A rule that every commit keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommitRule {
    /// After "exists" the entry is read: it may be our own, whose answer was lost.
    ReadBack,
    /// A conditional put that raced another (S3's 409) says nothing of who holds the version: where the entry is absent,
    /// the same version is put again.
    ConflictIsNoLoss,
    /// Every attempt looks for the load's identities among what others have committed.
    IdentityInEachAttempt,
    /// A change whose rows or files another writer's entry may touch is planned again.
    ReadSet,
    /// After an unknown outcome every staged file stays.
    KeepAfterUnknown,
    /// A version is tried only when the log holds the one before it.
    ResolveFirst,
}

impl CommitRule {
    /// All rules.
    pub const ALL: [Self; 6] = [
        Self::ReadBack,
        Self::ConflictIsNoLoss,
        Self::IdentityInEachAttempt,
        Self::ReadSet,
        Self::KeepAfterUnknown,
        Self::ResolveFirst,
    ];
}

/// The rules in force: all of them, but for one that a test has broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Rules {
    broken: Option<CommitRule>,
}

impl Rules {
    /// All but one.
    #[cfg(any(test, feature = "fault"))]
    pub(crate) fn without(rule: CommitRule) -> Self {
        Self { broken: Some(rule) }
    }

    pub(crate) fn keep(self, rule: CommitRule) -> bool {
        self.broken != Some(rule)
    }
}
