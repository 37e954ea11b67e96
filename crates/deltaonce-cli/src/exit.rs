//! Exit codes.

use std::process::ExitCode;

use deltaonce::ErrorKind;

use crate::render::Report;

/// Done, or done already; the output says which.
pub(crate) const SUCCESS: ExitCode = ExitCode::SUCCESS;

/// The exit code of an error.
pub(crate) fn code(kind: ErrorKind) -> ExitCode {
    ExitCode::from(number(kind))
}

/// The exit code of a run whose report found no reader: a load that landed has not failed, a question has.
pub(crate) fn after_lost_report(report: &Report) -> ExitCode {
    match report {
        Report::Load(_) => SUCCESS,
        _ => code(ErrorKind::Retryable),
    }
}

fn number(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Refused => 1,
        ErrorKind::Invalid | ErrorKind::Unsupported => 2,
        ErrorKind::Retryable | ErrorKind::Interrupted => 3,
        ErrorKind::Unknown => 4,
        // `ErrorKind` may grow; a kind without a code of its own is a defect of this program.
        _ => 70,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_documented_code() {
        let codes = [
            (ErrorKind::Refused, 1),
            (ErrorKind::Invalid, 2),
            (ErrorKind::Unsupported, 2),
            (ErrorKind::Retryable, 3),
            (ErrorKind::Interrupted, 3),
            (ErrorKind::Unknown, 4),
            (ErrorKind::Internal, 70),
        ];
        for (kind, expected) in codes {
            assert_eq!(number(kind), expected, "{kind:?}");
        }
    }
}
