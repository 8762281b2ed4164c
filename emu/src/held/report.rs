//! What came of a held run, in data and in words.

use std::fmt;

use slabfence_emu_check::{Finding, Place};
use slabfence_emu_exec::SourceLine;

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
        if let Some(rank) = self.rank {
            write!(f, "rank {rank}, ")?;
        }
        write!(
            f,
            "operation {} of device {}, {}",
            self.operation,
            self.device,
            quoted(&self.what)
        )?;
        match &self.wait {
            Wait::Room { blocks } => write!(f, ": {blocks} CTAs have no room"),
            Wait::Operations(after) => {
                f.write_str(": behind")?;
                let mut after = after.iter();
                after.try_for_each(|(device, op)| write!(f, " operation {op} of device {device}"))
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
                write!(f, " CTA {x}")?;
                if (*y, *z) != (0, 0) {
                    write!(f, ",{y},{z}")?;
                }
                write!(f, " warp {warp} {}, PTX line {line}", Lanes(*lanes))?;
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
            Reason::Lanes { mask } => write!(f, "waits for {} of the warp", Lanes(*mask)),
            Reason::Runs => f.write_str("runs"),
            Reason::Polls(polls) => {
                let mut polls = polls.iter();
                match polls.as_slice() {
                    [one] => one.fmt(f),
                    _ => polls.try_for_each(|poll| write!(f, "\n    {} {poll}", Lanes(poll.lanes))),
                }
            }
        }
    }
}

impl fmt::Display for Poll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "polls {} (PTX line {}): ", self.place, self.line)?;
        match self.expected {
            Some(expected) => write!(f, "expects {expected:#x}, saw {:#x}", self.seen)?,
            None => write!(f, "saw {:#x}", self.seen)?,
        }
        if let Some(now) = self.now {
            write!(f, ", holds {now:#x}")?;
        }
        if self.place.kind.is_none() {
            return Ok(());
        }
        for writer in &self.writers {
            write!(f, "; {writer}")?;
        }
        if self.writers.is_empty() {
            f.write_str("; nothing is left that could write it")?;
        }
        match &self.last {
            Some(by) => write!(
                f,
                "; last written by operation {} of device {}, `{}` CTA {} warp {}, PTX line {}",
                by.operation, by.device, by.kernel, by.cta, by.warp, by.line
            ),
            None => f.write_str("; not written in this run"),
        }
    }
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.rank, self.device) {
            (Some(rank), _) => write!(f, "rank {rank} may write it")?,
            (None, Some(device)) => write!(f, "device {device} may write it")?,
            (None, None) => f.write_str("others may write it")?,
        }
        if self.operations.is_empty() {
            return f.write_str(", but has nothing left that would");
        }
        f.write_str(", in")?;
        let mut operations = self.operations.iter();
        operations.try_for_each(|(op, kernel)| write!(f, " operation {op} `{kernel}`"))
    }
}

/// What is a kernel's name, quoted; anything else is in words.
fn quoted(what: &str) -> String {
    match what.contains(' ') {
        true => what.to_owned(),
        false => format!("`{what}`"),
    }
}

/// Lanes by number.
struct Lanes(u32);

impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        f.write_str(if rest.count_ones() == 1 {
            "lane "
        } else {
            "lanes "
        })?;
        let mut comma = "";
        while rest != 0 {
            let first = rest.trailing_zeros();
            let count = (rest >> first).trailing_ones();
            match count {
                1 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{}", first + count - 1)?,
            }
            comma = ",";
            rest &= u32::MAX.checked_shl(first + count).unwrap_or(0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Lanes;

    #[test]
    fn lanes_are_told_by_number() {
        let words = [1, 0x8000_0000, u32::MAX, 0b1011].map(|mask| Lanes(mask).to_string());
        assert_eq!(words, ["lane 0", "lane 31", "lanes 0-31", "lanes 0-1,3"]);
    }
}
