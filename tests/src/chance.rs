//! Numbers that look like chance and are the same on every machine.

/// A one-to-one mapping that scatters neighbours: SplitMix64's finaliser (Steele, Lea and Flood, 2014).
#[must_use]
pub fn scattered(mut n: u64) -> u64 {
    n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}
