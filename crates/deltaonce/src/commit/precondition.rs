//! Whether a store can hold a log at all: it must refuse to put over what is there.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;

use crate::error::{Error, Result};
use crate::host::Host;
use crate::store::conditional::honours_put_if_absent;
use crate::store::location::Location;

/// Puts a small object twice beside the log; local disk is known to refuse and is not asked.
///
/// # Errors
/// `Unsupported` where the second put went through; otherwise as storage fails.
pub(crate) async fn check(
    table: &str,
    location: &Location,
    store: &Arc<dyn ObjectStore>,
    host: &dyn Host,
) -> Result<()> {
    if location.is_local() {
        return Ok(());
    }
    // A name with a leading dot is no log file (protocol, "Delta Log Entries"), and listings of data files skip it.
    let probe = format!(".deltaonce-probe-{:032x}", host.random());
    if honours_put_if_absent(table, store.as_ref(), &Path::from("_delta_log"), &probe).await? {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "the store of {table} ignores If-None-Match, so two writers could overwrite each other's commits; nothing was changed"
    ))
    .hint("use a store with conditional puts (AWS S3, SeaweedFS, Ceph, MinIO, R2), or local disk"))
}
