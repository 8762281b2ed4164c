//! What is kept of what warps do.

use std::sync::Arc;

use slabfence_emu_exec::{Access, AccessKind, Kernel, Operation, lanes_of};

use super::name::Name;

/// A strong access, or a `fence.sc`, as the explorer of all schedules sees it.
#[derive(Clone, Debug)]
pub(super) struct Strong {
    /// Words of 8 bytes that it touches.
    pub(super) words: Vec<u64>,
    /// Digest of what its lanes found there.
    pub(super) found: u64,
    /// Whether it writes.
    pub(super) write: bool,
    /// The operation, if it writes without looking: two of one kind in either order leave the same.
    pub(super) commutes: Option<Operation>,
}

/// What happened at a barrier of the running warp's block.
#[derive(Clone, Debug)]
pub(super) enum Meeting {
    /// The running warp arrived.
    Arrived {
        /// The barrier.
        id: u32,
    },
    /// These warps go on.
    Completed {
        /// The barrier.
        id: u32,
        /// The warps.
        waited: Vec<u32>,
    },
}

/// Who stored to a word last, by a strong access.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    /// The warp.
    pub(super) name: Name,
    /// Its kernel.
    pub(super) kernel: Arc<Kernel>,
    /// Its instruction.
    pub(super) pc: u32,
}

/// Whether memory may be another behind an access: not behind a read-modify-write that leaves in every lane what it found,
/// which is how some wait.
pub(super) fn changes(access: &Access<'_>) -> bool {
    let Some(operation) = access.operation else {
        return access.kind != AccessKind::Load;
    };
    let (Operation::Exch | Operation::Cas, [found, ..], [stored, ..]) =
        (operation, access.loaded, access.stored)
    else {
        return access.lanes & !access.kept != 0;
    };
    let bits = u64::MAX >> (64 - 8 * access.size.min(8));
    let other = |lane: usize| (found[lane] ^ stored[lane]) & bits != 0;
    lanes_of(access.lanes & !access.kept).any(other)
}
