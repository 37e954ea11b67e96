//! The one place that reads the environment.

use std::env;
use std::ffi::OsStr;

/// The `AWS_*` variables, as defaults under the storage options that are given. A variable that is not UTF-8 is left out.
pub(crate) fn storage_defaults() -> Vec<(String, String)> {
    let aws = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        let name = name.into_string().ok().filter(|name| name.starts_with("AWS_"))?;
        Some((name, value.into_string().ok()?))
    };
    let mut defaults: Vec<_> = env::vars_os().filter_map(aws).collect();
    defaults.sort_unstable();
    defaults
}

/// Whether a developer asked for backtraces.
pub(crate) fn wants_backtrace() -> bool {
    env::var_os("RUST_BACKTRACE").is_some_and(|value| value != OsStr::new("0") && !value.is_empty())
}

/// Whether the arguments ask for JSON, for errors in the arguments themselves.
pub(crate) fn asks_for_json() -> bool {
    let args: Vec<_> = env::args_os().skip(1).collect();
    args.iter().any(|arg| arg == "--output=json")
        || args
            .windows(2)
            .any(|pair| pair.first().is_some_and(|a| a == "--output") && pair.last().is_some_and(|b| b == "json"))
}
