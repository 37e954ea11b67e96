//! The one place that reads the environment.

use std::ffi::OsStr;
use std::{env, fs};

use deltaonce::Scratch;

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

/// So much memory for rows, or a quarter of what there is; and where files go that are of use to this run only.
pub(crate) fn scratch(memory: Option<u64>) -> Scratch {
    Scratch { memory: memory.unwrap_or_else(|| self::memory() / 4), folder: env::temp_dir() }
}

/// Bytes of memory that this process may take: the machine's, or less where it runs in a container. Where that cannot be
/// told, as much as a small machine has.
fn memory() -> u64 {
    const SMALL: u64 = 4 << 30;
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    // Of a container's memory, the second version of control groups tells in the first file, the first one in the second.
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limits = limits.iter().filter_map(|file| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok());
    limits.chain(machine).min().unwrap_or(SMALL)
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
