//! What all loads do once they are understood.

use deltaonce::{Load, Result};

use crate::args::LoadArgs;
use crate::interrupt::Signals;
use crate::render::Report;
use crate::session::Session;

/// Applies `load` to the table that `args` name.
pub(crate) async fn run(args: &LoadArgs, session: &Session, load: Load) -> Result<Report> {
    let request = args.source.request()?;
    let options = args.table.storage_options()?;
    let mut signals = Signals::listen();
    let table = signals.droppable(session.open(&args.table)).await?;
    let source = request.open(session.storage_defaults(), options)?;
    session.phase(format!("{} into {}", load.contract.name(), args.table.table));
    let receipt = signals.stoppable(session, &table.stopper(), table.apply(&load, source)).await?;
    Ok(Report::Load(Box::new(receipt)))
}
