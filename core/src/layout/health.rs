//! Host-mapped health memory: what a host can read while a device hangs.

use super::macros::device_struct;

device_struct! {
    /// What happened, on which operation, and who was late. Written once by a kernel, `state` last.
    pub struct FaultRecord [size = 128, align = 128] {
        /// 0: empty; otherwise the epoch of the operation. Stored with release after everything else.
        state: u64 = 0,
        /// A [`Cause`](super::Cause).
        cause: u32 = 8,
        /// An [`OperationKind`](super::OperationKind).
        operation: u32 = 12,
        /// Rank that writes this record.
        rank: u32 = 16,
        /// Rank that was waited for, or whose line disagrees; `rank` when it is nobody's.
        late_rank: u32 = 20,
        /// CTA that noticed.
        cta: u32 = 24,
        /// Exchange of the operation.
        phase: u32 = 28,
        /// Value waited for: an epoch, or the own operation tag.
        expected: u64 = 32,
        /// Value seen last.
        seen: u64 = 40,
        /// Clock ticks waited.
        waited: u64 = 48,
        /// The operation's tag.
        tag: u64 = 56,
        /// All ranks that were late, not only the one noticed: bit r for rank r.
        late_ranks: u64 = 64,
        /// Fills the record.
        reserved: [u64; 7] = 72,
    }
}

device_struct! {
    /// One channel's records. A warning is a wait that goes on; a fault ended the operation.
    pub struct ChannelHealth [size = 256, align = 128] {
        /// The latest warning.
        warning: FaultRecord = 0,
        /// The first fault since the last reset.
        fault: FaultRecord = 128,
    }
}

device_struct! {
    /// First line of a pool's health memory.
    pub struct HealthHeader [size = 128, align = 128] {
        /// Zero while no channel of the pool has failed; otherwise the [`Cause`](super::Cause) of a failure. Read
        /// together with `warning`, as one word.
        fault: u32 = 0,
        /// Zero while no operation has waited past the warning threshold; otherwise what some one waited for.
        warning: u32 = 4,
        /// Fills the line.
        reserved: [u64; 15] = 8,
    }
}
