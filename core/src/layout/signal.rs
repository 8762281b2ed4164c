//! Lines of the *signal* kind: what peers write to say that something is there, or that something went wrong.
//!
//! Every line is 128 bytes and has one writer, so that no two ranks ever share a cache line for writing.

use super::macros::device_struct;

/// Bytes of a line: the coherence granule of the L2 and of NVLink and PCIe transfers.
pub const LINE: usize = 128;
/// Largest world.
pub const MAX_WORLD: usize = 16;
/// Staging slots of a channel.
pub const SLOTS: usize = 2;
/// Exchanges that one operation may contain: one-shot forms use the first, two-shot forms both.
pub const PHASES: usize = 2;
/// Largest grid of an operation. The ticket counts CTAs in 16 bits; this stays far below.
pub const MAX_GRID: usize = 128;

device_struct! {
    /// Written once an operation by CTA 0 of one source rank, polled by CTA 0 of the owner.
    ///
    /// `check` repeats the low half of the epoch beside the operation tag, so that the two words need not
    /// arrive together: a line counts only when both halves name this epoch.
    pub struct EntryLine [size = 128, align = 128] {
        /// Epoch of the operation that the source has entered.
        epoch: u64 = 0,
        /// Low 32 bits: the epoch's; high 32 bits: the operation tag's low half.
        check: u64 = 8,
        /// Fills the line.
        reserved: [u64; 14] = 16,
    }
}

device_struct! {
    /// Written by CTA b of one source rank when its rows are in place, polled by CTA b of the owner.
    pub struct FlagLine [size = 128, align = 128] {
        /// Epoch of the operation whose rows are in place; compared for equality.
        epoch: u64 = 0,
        /// Fills the line.
        reserved: [u64; 15] = 8,
    }
}

device_struct! {
    /// Written by one rank when an operation failed on it; zero while all is well.
    pub struct PoisonLine [size = 128, align = 128] {
        /// [`verdict_word`](super::verdict_word) of the failure.
        word: u64 = 0,
        /// Fills the line.
        reserved: [u64; 15] = 8,
    }
}
