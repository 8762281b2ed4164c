//! The *local* kind: a channel's state on its own device. Peers never see it.

use super::macros::device_struct;

/// Rows that fused norms may have in flight at once.
pub const NORM_ROWS: usize = 64;

/// Bits of [`LocalBlock::started`] that name an epoch.
pub const STARTED_EPOCH_BITS: u32 = 16;

/// [`LocalBlock::started`] at rest before operation `epoch`, when so many warps have been counted.
pub const fn started_word(warps: u64, epoch: u64) -> u64 {
    (warps << STARTED_EPOCH_BITS) | (epoch & ((1 << STARTED_EPOCH_BITS) - 1))
}

/// The warps that a [`started_word`] counts, modulo 2^48.
pub const fn started_warps(word: u64) -> u64 {
    word >> STARTED_EPOCH_BITS
}

device_struct! {
    /// Rendezvous of the CTAs that share one row of a fused norm.
    pub struct NormCounter [size = 128, align = 128] {
        /// CTAs that have added their partial sum.
        arrived: u64 = 0,
        /// Advanced when a row is complete.
        generation: u64 = 8,
        /// Partial sums of squares, one a CTA.
        partial: [f32; 28] = 16,
    }
}

device_struct! {
    /// All per-execution state of a channel. The host writes it when nothing is enqueued, kernels at all other times.
    pub struct LocalBlock [size = 8704, align = 128] {
        /// Epoch of the operation that runs or comes next; from 2 upward. Its lowest bit is the staging slot.
        epoch: u64 = 0,
        /// Warps of all operations whose last CTA has arrived, and the low bits of the epoch that came next: a
        /// [`started_word`]. Names another epoch at the start of an operation: two operations overlap.
        started: u64 = 8,
        /// Warps that have ended. Fewer than have started, at the start of an operation: the same.
        retired: u64 = 16,
        /// Resets that the channel has seen.
        generation: u64 = 24,
        /// Fills the line.
        reserved0: [u64; 12] = 32,
        /// Low 16 bits: CTAs of this operation that have arrived; then 24 bits: the sum of their 16-bit tags; above: the
        /// sum of the epochs that they have read.
        ticket: u64 = 128,
        /// Fills the line.
        reserved1: [u64; 15] = 136,
        /// Verdict: zero, or the [`verdict_word`](super::verdict_word) of the first failure since the last reset.
        status: u64 = 256,
        /// Reports of CTAs that did not deliver, skipped ones included, since the last reset.
        failed: u64 = 264,
        /// Taken by the warp that writes the failure record.
        fault_claim: u64 = 272,
        /// Taken by the warp that writes the warning record; holds the epoch that it warned of.
        warn_claim: u64 = 280,
        /// Fills the block's third and fourth line.
        reserved2: [u64; 28] = 288,
        /// Counters of fused norms.
        norm: [NormCounter; 64] = 512,
    }
}
const _: () = assert!(NORM_ROWS == 64);
