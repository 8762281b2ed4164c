//! What ends a grid before its time.

use crate::{MemoryFault, SourceLine, Space};
use std::fmt;

/// An error of the program that runs, and where it happened. The grid cannot go on.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// Name of the kernel.
    pub kernel: String,
    /// The block.
    pub ctaid: [u32; 3],
    /// The warp of the block.
    pub warp: usize,
    /// The first lane concerned.
    pub lane: u32,
    /// Index of the instruction in the entry's body.
    pub pc: u32,
    /// Line of the PTX text.
    pub line: u32,
    /// Line of the kernel's source, where the PTX tells it.
    pub source: Option<SourceLine>,
}

/// Whether an access read or wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// A load.
    Load,
    /// A store.
    Store,
    /// A read-modify-write (`atom`, `red`).
    ReadModifyWrite,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// An access to memory that is not there, or not for this device, or only to be read.
    IllegalAddress {
        /// The address of the first lane concerned, in its space.
        addr: u64,
        /// Bytes accessed there.
        size: u32,
        /// Read or write.
        access: AccessKind,
        /// The space of the address.
        space: Space,
        /// Why.
        reason: MemoryFault,
    },
    /// An address that is not a multiple of the access's size.
    Misaligned {
        /// The address of the first lane concerned, in its space.
        addr: u64,
        /// The alignment it needs, bytes.
        align: u32,
        /// The space of the address.
        space: Space,
    },
    /// `trap` or `brkpt`.
    Trap,
    /// A barrier used against its rules.
    Barrier(BarrierMisuse),
    /// A lane executed a warp-wide operation whose member mask does not name it.
    NotInMemberMask {
        /// The mask.
        mask: u32,
    },
}

impl FaultKind {
    /// The address of the first lane concerned, where it is one of global memory.
    pub fn global_address(&self) -> Option<u64> {
        match *self {
            Self::IllegalAddress { addr, space, .. } | Self::Misaligned { addr, space, .. } => {
                matches!(space, Space::Global | Space::Const).then_some(addr)
            }
            Self::Trap | Self::Barrier(_) | Self::NotInMemberMask { .. } => None,
        }
    }
}

/// How a barrier was misused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierMisuse {
    /// No such barrier (there are 16).
    Id(u32),
    /// The thread count is zero, no multiple of 32, or larger than the block.
    Count(u32),
    /// Warps give different thread counts for one barrier.
    CountsDiffer {
        /// The barrier.
        id: u32,
        /// The count that the first warp gave (0: the whole block).
        first: u32,
        /// The count that this warp gave.
        now: u32,
    },
    /// The lanes of a warp give different barriers or counts.
    LanesDiffer,
    /// A warp arrives again at a barrier that has not completed since it arrived.
    ArrivedTwice(u32),
    /// Warps perform different operations (`sync` and `red`, or different reductions) on one barrier.
    OperationsDiffer(u32),
}

impl fmt::Display for BarrierMisuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "barrier {id} does not exist (0 to 15 do)"),
            Self::Count(count) => {
                write!(f, "a barrier cannot wait for {count} threads of this block")
            }
            Self::CountsDiffer { id, first, now } => {
                write!(
                    f,
                    "barrier {id} was told to wait for {first} threads, and now for {now} (0: the block)"
                )
            }
            Self::LanesDiffer => {
                f.write_str("the lanes of a warp name different barriers or thread counts")
            }
            Self::ArrivedTwice(id) => write!(
                f,
                "the warp arrives twice at barrier {id} before it completes"
            ),
            Self::OperationsDiffer(id) => {
                write!(f, "warps perform different operations on barrier {id}")
            }
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IllegalAddress {
                addr,
                size,
                access,
                space,
                reason,
            } => {
                let what = match access {
                    AccessKind::Load => "load",
                    AccessKind::Store => "store",
                    AccessKind::ReadModifyWrite => "atomic",
                };
                let why = match reason {
                    MemoryFault::Unmapped => "nothing is mapped there",
                    MemoryFault::NoAccess => "this device has no access to it",
                    MemoryFault::ReadOnly => "this device may only read it",
                };
                write!(
                    f,
                    "illegal {what} of {size} bytes at {addr:#x} in {space} space: {why}"
                )
            }
            Self::Misaligned { addr, align, space } => {
                write!(
                    f,
                    "misaligned access at {addr:#x} in {space} space: needs a multiple of {align}"
                )
            }
            Self::Trap => f.write_str("trap"),
            Self::Barrier(misuse) => misuse.fmt(f),
            Self::NotInMemberMask { mask } => {
                write!(f, "the lane is not in its own member mask {mask:#010x}")
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.ctaid;
        write!(
            f,
            "{}; kernel `{}`, block ({x}, {y}, {z}), warp {}, lane {}",
            self.kind, self.kernel, self.warp, self.lane
        )?;
        write!(f, ", PTX line {}", self.line)?;
        match &self.source {
            Some(source) => write!(f, ", {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Fault {}
