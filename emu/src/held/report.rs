//! What came of a held run, in data.

use slabfence_emu_check::{Finding, Place};
use slabfence_emu_exec::{Relation, SourceLine};

/// How one run went.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// What it is replayed with, under the same plan.
    pub seed: u64,
    /// Digest of all strong accesses and barriers in their order: two runs with the same are the same.
    pub trace: u64,
    /// How many strong accesses and barrier arrivals there were.
    pub visible: u64,
    /// Warp-instructions executed.
    pub executed: u64,
    /// Virtual nanoseconds that passed.
    pub elapsed: u64,
    /// How it ended.
    pub end: End,
    /// What the detector found.
    pub findings: Vec<Finding>,
    /// How many readers of words the detector had no room to remember. With none, none was missed for that.
    pub forgotten: u64,
    /// How many warps there were at once beyond those that the detector tells apart.
    pub crowded: u64,
    /// Whether the last finding tells the fault that the run ended with.
    pub fault_is_found: bool,
    /// What the check of results found.
    pub wrong: Option<String>,
}

impl Run {
    /// Whether everything completed and nothing was found.
    pub fn is_clean(&self) -> bool {
        self.end == End::Complete && self.findings.is_empty() && self.wrong.is_none()
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// All operations completed.
    Complete,
    /// Nobody can change memory any more, and these wait.
    Deadlock(Vec<Waiter>),
    /// A kernel or copy did what it must not; in words.
    Fault(String),
    /// The plan's limit of instructions was reached; this is what was going on.
    Unfinished(Vec<Waiter>),
}

/// Somebody that had not ended when a run was given up.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiter {
    /// The device.
    pub device: u32,
    /// The rank that it works for, where its parameters tell.
    pub rank: Option<u32>,
    /// Place of the operation among those of the device since it was held, from 1.
    pub operation: u32,
    /// The kernel, or what else the operation is.
    pub what: String,
    /// What it waits for.
    pub wait: Wait,
}

/// What a [`Waiter`] waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Wait {
    /// A warp of a resident block.
    Warp {
        /// The block.
        cta: [u32; 3],
        /// The warp.
        warp: u32,
        /// Its lanes that are there.
        lanes: u32,
        /// Index of the instruction.
        pc: u32,
        /// Line of the PTX text.
        line: u32,
        /// Line of the kernel's source.
        source: Option<SourceLine>,
        /// Why it does not go on.
        reason: Reason,
    },
    /// A grid has blocks that no multiprocessor has room for.
    Room {
        /// Blocks that were never resident.
        blocks: u64,
    },
    /// An operation that waits for others, by device and place.
    Operations(Vec<(u32, u32)>),
}

/// Why a warp does not go on.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// Its lanes poll words, one after the other or each its own.
    Polls(Vec<Poll>),
    /// It waits at a barrier of the block.
    Barrier {
        /// Its number.
        id: u32,
        /// The thread count that it waits for; 0 for the whole block.
        count: u32,
    },
    /// It waits for other lanes of the warp.
    Lanes {
        /// The member mask.
        mask: u32,
    },
    /// It could go on, and does not end.
    Runs,
}

/// A word that lanes of a warp poll.
#[derive(Clone, Debug, PartialEq)]
pub struct Poll {
    /// The lanes.
    pub lanes: u32,
    /// Line of the PTX text with the access.
    pub line: u32,
    /// The word, by the name of its memory.
    pub place: Place,
    /// What they saw at their last look.
    pub seen: u64,
    /// What it holds now; `None` in shared memory.
    pub now: Option<u64>,
    /// What they compare it with: what they wait for, if they wait for one value. `None` where the code does not tell.
    pub expected: Option<u64>,
    /// What the word must be to that, for them to go on. `None` where the code does not tell.
    pub awaited: Option<Relation>,
    /// Who could still write it, as far as operations have not ended: those of the rank whose word it is, or else those
    /// whose parameters lead to that memory.
    pub writers: Vec<Writer>,
    /// Who wrote it last in this run, by a strong store.
    pub last: Option<LastWriter>,
}

/// Somebody who may write a word.
#[derive(Clone, Debug, PartialEq)]
pub struct Writer {
    /// The rank, where it is known.
    pub rank: Option<u32>,
    /// The device, where it is known.
    pub device: Option<u32>,
    /// Operations of it that have not ended and whose parameters lead there: place among those of the device, and kernel.
    pub operations: Vec<(u32, String)>,
}

/// Who stored to a word last.
#[derive(Clone, Debug, PartialEq)]
pub struct LastWriter {
    /// The device.
    pub device: u32,
    /// Place of the operation among those of the device since it was held, from 1.
    pub operation: u32,
    /// The kernel.
    pub kernel: String,
    /// Block of the grid, counted through.
    pub cta: u64,
    /// The warp.
    pub warp: u32,
    /// Line of the PTX text.
    pub line: u32,
}
