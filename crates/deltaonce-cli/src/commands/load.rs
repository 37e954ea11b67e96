//! What all loads do once they are understood.

use deltaonce::{Contract, Load, Result, Scratch, Table};

use crate::args::LoadArgs;
use crate::interrupt::Signals;
use crate::render::Report;
use crate::session::Session;

/// Applies `load` to the table that `args` name.
pub(crate) async fn run(args: &LoadArgs, session: &Session, load: Load) -> Result<Report> {
    run_on(session.open(&args.table, &args.storage), args, session, load).await
}

/// Applies `load`, whose rows may take so much memory.
pub(crate) async fn run_bounded(scratch: Scratch, args: &LoadArgs, session: &Session, load: Load) -> Result<Report> {
    run_on(session.open_bounded(scratch, &args.table, &args.storage), args, session, load).await
}

async fn run_on(
    open: impl Future<Output = Result<Table>>,
    args: &LoadArgs,
    session: &Session,
    load: Load,
) -> Result<Report> {
    let request = args.source.request()?;
    if load.contract == Contract::Append && load.identities.is_empty() {
        session.note(
            "without --txn-app-id and --txn-version (or --write-id), running this append again adds the rows again",
        );
    }
    let mut signals = Signals::listen();
    let table = signals.droppable(open).await?;
    let source = request.open(session.storage_defaults(), args.storage.options()?)?;
    session.phase(format!("{} into {}", load.contract.name(), args.table.table));
    let receipt = signals.stoppable(session.stopping(&table), table.apply(&load, source)).await?;
    Ok(Report::Load(Box::new(receipt)))
}
