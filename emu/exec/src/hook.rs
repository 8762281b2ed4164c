//! What a checking mode sees: every access, fence, barrier and exit, as they happen.

use crate::{AccessKind, Launch, Order, Scope};
use std::fmt;

/// Watches a grid run. With [`CHECKING`](Self::CHECKING) false every call is compiled out.
///
/// Calls come in the order of execution, each *after* its operation was performed.
pub trait Hook {
    /// Whether the interpreter calls the methods at all.
    const CHECKING: bool;

    /// Lanes of a warp accessed memory.
    fn access(&mut self, at: &Site<'_>, access: &Access<'_>);
    /// Lanes of a warp executed `fence` or `membar`.
    fn fence(&mut self, at: &Site<'_>, lanes: u32, fence: Fence);
    /// A warp arrived at a barrier of its block, or a barrier completed.
    fn cta_barrier(&mut self, at: &Site<'_>, event: CtaBarrier<'_>);
    /// All named lanes of a warp met in `bar.warp.sync`.
    fn warp_barrier(&mut self, at: &Site<'_>, lanes: u32);
    /// Lanes of a warp ended.
    fn exit(&mut self, at: &Site<'_>, lanes: u32);

    /// Whether a step ends, as if its fuel were spent, before the next strong access, read-modify-write or `fence.sc`: so
    /// whoever schedules can choose there.
    fn pauses(&self) -> bool {
        false
    }
}

/// The hook of fast mode: sees nothing, costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fast;

impl Hook for Fast {
    const CHECKING: bool = false;

    fn access(&mut self, _: &Site<'_>, _: &Access<'_>) {}
    fn fence(&mut self, _: &Site<'_>, _: u32, _: Fence) {}
    fn cta_barrier(&mut self, _: &Site<'_>, _: CtaBarrier<'_>) {}
    fn warp_barrier(&mut self, _: &Site<'_>, _: u32) {}
    fn exit(&mut self, _: &Site<'_>, _: u32) {}
}

/// Where something happened.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The launch; its kernel gives lines for `pc`.
    pub launch: &'a Launch,
    /// The block.
    pub ctaid: [u32; 3],
    /// The multiprocessor that the block runs on.
    pub smid: u32,
    /// The warp of the block.
    pub warp: usize,
    /// Index of the instruction in the entry's body.
    pub pc: u32,
}

/// One memory instruction of a warp.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// Read, write or both.
    pub kind: AccessKind,
    /// For read-modify-writes: which.
    pub operation: Option<Operation>,
    /// For read-modify-writes: whether it returns the old value (`atom`) or not (`red`).
    pub returns: bool,
    /// Its memory order.
    pub order: Order,
    /// Its scope; `None` for weak accesses.
    pub scope: Option<Scope>,
    /// The space that the addresses are in, generic ones resolved.
    pub space: Space,
    /// Whether it is `ld.global.nc`, which is outside the memory model.
    pub nc: bool,
    /// Bytes of one element: 1, 2, 4, 8 or 16.
    pub size: u32,
    /// Elements: 1, or 2, 4, 8 for a vector, which is that many accesses in no order.
    pub elements: u32,
    /// The lanes that access.
    pub lanes: u32,
    /// Address of each such lane's first element.
    pub addresses: &'a [u64; 32],
    /// What was loaded (for read-modify-writes: what was there before), zero-extended to 64 bits: one row per
    /// element, two (low, high) for an element of 16 bytes. Empty for stores and `red`.
    pub loaded: &'a [[u64; 32]],
    /// Of read-modify-writes the lanes that left the value as it was: a `cas` that found another one, and so stored nothing,
    /// or an addition of zero. Who stores what was there stores (`exch`, a `cas` that succeeds).
    pub kept: u32,
    /// What was stored, laid out alike; for read-modify-writes the operand. Empty for loads.
    pub stored: &'a [[u64; 32]],
}

/// A state space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Device memory.
    Global,
    /// Device memory that kernels only read.
    Const,
    /// Memory of a block.
    Shared,
    /// Memory of a thread.
    Local,
    /// The parameter block.
    Param,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Global => "global",
            Self::Const => "const",
            Self::Shared => "shared",
            Self::Local => "local",
            Self::Param => "param",
        })
    }
}

/// What a read-modify-write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant is the PTX word of the same name")]
pub enum Operation {
    Add,
    AddF32,
    And,
    Or,
    Xor,
    MinU,
    MaxU,
    MinS,
    MaxS,
    Inc,
    Dec,
    Exch,
    Cas,
}

/// A `fence` or `membar`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Its order; `Acquire`, `Release` or `AcqRel`.
    pub order: Order,
    /// Whether it is `.sc` (as `membar` is).
    pub sc: bool,
    /// Its scope.
    pub scope: Scope,
}

/// What happened at a barrier of a block.
#[derive(Clone, Copy, Debug)]
pub enum CtaBarrier<'a> {
    /// Lanes arrived.
    Arrived {
        /// The barrier, 0 to 15.
        id: u32,
        /// The lanes.
        lanes: u32,
        /// Whether they wait (`sync`, `red`) or go on (`arrive`).
        waits: bool,
    },
    /// All awaited warps have arrived, and the waiting ones go on. The site is the last arrival (or exit).
    Completed {
        /// The barrier, 0 to 15.
        id: u32,
        /// Per warp of the block: the lanes that arrived without waiting.
        arrived: &'a [u32],
        /// Per warp of the block: the lanes that waited.
        waited: &'a [u32],
    },
}
