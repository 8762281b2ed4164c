//! What came of a held run, in data and in words.

use std::fmt;

use slabfence_emu_check::Finding;
use slabfence_emu_exec::SourceLine;
use slabfence_sys::{RangeKind, RangeNote};

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
    /// It polls a word.
    Polls {
        /// The address of the first lane.
        address: u64,
        /// What it sees there.
        seen: u64,
        /// What the library said the word is.
        region: Option<RangeNote>,
        /// Who wrote it last in this run, by a strong store.
        writer: Option<LastWriter>,
    },
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

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}", self.seed, self.end)?;
        if let Some(wrong) = &self.wrong {
            write!(f, "\n  wrong result: {wrong}")?;
        }
        self.findings
            .iter()
            .try_for_each(|finding| write!(f, "\n{finding}"))
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, waiters) = match self {
            End::Complete => return f.write_str("complete"),
            End::Fault(words) => return write!(f, "fault: {words}"),
            End::Deadlock(waiters) => (
                "deadlock: nobody can change memory any more, and these wait:",
                waiters,
            ),
            End::Unfinished(waiters) => {
                ("unfinished at the limit of instructions; at work:", waiters)
            }
        };
        f.write_str(first)?;
        waiters
            .iter()
            .try_for_each(|waiter| write!(f, "\n  {waiter}"))
    }
}

impl fmt::Display for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "device {}, operation {}, {}",
            self.device, self.operation, self.what
        )?;
        match &self.wait {
            Wait::Room { blocks } => write!(f, ": {blocks} blocks have no room"),
            Wait::Operations(after) => {
                f.write_str(": behind")?;
                let mut after = after.iter();
                after.try_for_each(|(device, op)| write!(f, " device {device} operation {op}"))
            }
            Wait::Warp {
                cta: [x, y, z],
                warp,
                lanes,
                line,
                source,
                reason,
                ..
            } => {
                write!(
                    f,
                    ", block ({x}, {y}, {z}), warp {warp}, lanes {lanes:#x}, PTX line {line}"
                )?;
                if let Some(source) = source {
                    write!(f, ", {source}")?;
                }
                write!(f, ": {reason}")
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Barrier { id, count: 0 } => write!(f, "at barrier {id} of the block"),
            Reason::Barrier { id, count } => write!(f, "at barrier {id} of {count} threads"),
            Reason::Lanes { mask } => write!(f, "waits for lanes {mask:#x} of the warp"),
            Reason::Runs => f.write_str("runs"),
            Reason::Polls {
                address,
                seen,
                region,
                writer,
            } => {
                write!(f, "polls {address:#x}, sees {seen:#x}")?;
                if let Some(note) = region {
                    write!(f, ", which is {}", words(note, *address))?;
                }
                match writer {
                    Some(by) => write!(
                        f,
                        "; last written by device {}, operation {}, {}, block {}, warp {}, PTX line {}",
                        by.device, by.operation, by.kernel, by.cta, by.warp, by.line
                    ),
                    None => f.write_str("; not written in this run"),
                }
            }
        }
    }
}

/// An announced range in words.
fn words(note: &RangeNote, address: u64) -> String {
    let kind = match note.kind {
        RangeKind::LOCAL => "local words",
        RangeKind::EPOCH => "the epoch",
        RangeKind::TICKET => "the ticket",
        RangeKind::SIGNAL => "signal lines",
        RangeKind::OUTBOX => "outbox",
        RangeKind::INBOX => "inbox",
        RangeKind::PACKETS => "packets",
        _ => "memory",
    };
    let mut words = format!("{kind} of rank {}", note.rank);
    if note.slot != RangeNote::NONE {
        words += &format!(", slot {}", note.slot);
    }
    words += &match note.source {
        RangeNote::NONE if note.kind == RangeKind::SIGNAL => ", written by any peer".to_owned(),
        RangeNote::NONE => String::new(),
        source => format!(", written by rank {source}"),
    };
    words + &format!(", offset {}", address.saturating_sub(note.base))
}
