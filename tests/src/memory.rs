//! Tables in memory that the product takes for ones on S3.

use std::sync::LazyLock;

use deltaonce::Location;

/// The address of every table in memory, whose store a test puts in place of the client. Made once, since a client for S3
/// takes a while to make, and is not used here.
///
/// # Panics
/// Never, since the address is one.
#[must_use]
pub fn s3_address() -> Location {
    static ADDRESS: LazyLock<Location> = LazyLock::new(|| {
        let options = ["access_key_id", "secret_access_key", "region"].map(|name| (name.to_owned(), "none".to_owned()));
        Location::parse("s3://lake/t", options).expect("the address is one")
    });
    ADDRESS.clone()
}
