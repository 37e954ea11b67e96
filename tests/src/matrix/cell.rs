//! The cells: what spoils the answer, which load it is, who works on the table meanwhile, and for how long it goes on.

use std::fmt;
use std::time::Duration;

use serde_json::json;

use super::orders::{delete_request, overwrite_request};
use crate::proxy::Fault;
use crate::table::Table;

/// How long the program waits for an answer in cells where one is late: longer than a busy machine takes for one.
pub const TIMEOUT: Duration = Duration::from_secs(4);

/// How late an answer is, or a put that was held back.
const LATE: Duration = Duration::from_secs(8);

/// What becomes of the put of the log entry: "stored" ones the server carried out before anything went wrong.
pub const FAULTS: [(&str, Fault); 14] = [
    ("drop, stored", Fault::Drop),
    ("reset, stored", Fault::Reset),
    ("cut short, stored", Fault::Truncate),
    ("stall, stored", Fault::Delay(LATE)),
    ("500, stored", Fault::Status(500)),
    ("503, stored", Fault::Status(503)),
    ("409, stored", Fault::Status(409)),
    ("412, stored", Fault::Status(412)),
    ("drop, not stored", Fault::Lost),
    ("reset, not stored", Fault::Abort),
    ("stall, stored late", Fault::Stall(LATE)),
    ("500, not stored", Fault::Refuse(500)),
    ("503, not stored", Fault::Refuse(503)),
    ("409, not stored", Fault::Refuse(409)),
];

/// The load's contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contract {
    /// All rows are added.
    Append,
    /// A day is rebuilt.
    Replace,
    /// The newest row of each key wins.
    Merge,
    /// Rows of absent keys are added.
    Insert,
}

impl Contract {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Append, Self::Replace, Self::Merge, Self::Insert];
}

/// What Python deltalake does to the table while the answer is in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rival {
    /// Nothing.
    None,
    /// It puts small files together.
    Compaction,
    /// It deletes some rows.
    Delete,
    /// It puts small files together and takes the old ones away.
    Vacuum,
    /// It overwrites the table.
    Overwrite,
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Append => "append",
            Self::Replace => "replace",
            Self::Merge => "merge",
            Self::Insert => "insert",
        })
    }
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "nothing",
            Self::Compaction => "compaction",
            Self::Delete => "delete",
            Self::Vacuum => "compaction, then vacuum",
            Self::Overwrite => "overwrite",
        })
    }
}

impl Rival {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::None, Self::Compaction, Self::Delete, Self::Vacuum, Self::Overwrite];

    /// Does it.
    pub fn work_on(self, table: &Table) {
        match self {
            Self::None => {}
            Self::Compaction => drop(table.peer("compact", json!({}))),
            Self::Delete => drop(table.peer("delete", delete_request())),
            Self::Vacuum => {
                table.peer("compact", json!({}));
                table.peer("vacuum", json!({}));
            }
            Self::Overwrite => drop(table.peer("write", overwrite_request())),
        }
    }
}

/// For how long the fault goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It strikes the first put; the next is left alone.
    Once,
    /// It strikes every put until the deadline, and the entry cannot be read either.
    PastDeadline,
}

/// One cell of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// What becomes of the put, with its name.
    pub fault: (&'static str, Fault),
    /// The load's contract.
    pub contract: Contract,
    /// Whether the load has an identity.
    pub identity: bool,
    /// Who works on the table meanwhile.
    pub rival: Rival,
    /// For how long the fault goes on.
    pub reach: Reach,
}

impl Cell {
    /// All cells.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut cells = Vec::new();
        for reach in [Reach::Once, Reach::PastDeadline] {
            for fault in FAULTS {
                for contract in Contract::ALL {
                    for identity in [true, false] {
                        cells.extend(Rival::ALL.map(|rival| Self { fault, contract, identity, rival, reach }));
                    }
                }
            }
        }
        cells
    }

    /// Some of them, always the same: each fault that strikes once meets each contract with an identity and without, with
    /// a rival each, in turn; fewer of those that outlive the deadline.
    #[must_use]
    pub fn sample() -> Vec<Self> {
        let rivals = Rival::ALL.len();
        let is_in = |(at, cell): &(usize, Self)| match cell.reach {
            Reach::Once => (at + at / rivals).is_multiple_of(rivals),
            Reach::PastDeadline => (at + at / rivals).is_multiple_of(4 * rivals),
        };
        Self::all().into_iter().enumerate().filter(is_in).map(|(_, cell)| cell).collect()
    }

    /// Whether it has an identity, in words.
    #[must_use]
    pub fn with_or_without(&self) -> &'static str {
        if self.identity { "with identity" } else { "without" }
    }

    /// Whether the load can be run again without knowing how it ended.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        self.identity || self.contract != Contract::Append
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Once => "once",
            Self::PastDeadline => "past the deadline",
        })
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fault: (fault, _), contract, rival, reach, .. } = self;
        write!(f, "{fault} / {contract} {} / {rival} / {reach}", self.with_or_without())
    }
}
