//! What is reported.

use std::fmt;

use slabfence_emu_exec::SourceLine;

use crate::{Op, RegionKind, Rule};

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Which rule is broken.
    pub rule: Rule,
    /// Who was there first, where two take part.
    pub earlier: Option<Party>,
    /// Who did it.
    pub later: Option<Party>,
    /// Where.
    pub place: Option<Place>,
    /// What is wrong in this case, with the values.
    pub detail: String,
    /// The usual repair: that of the rule, or one that fits the case better.
    pub repair: &'static str,
    /// How often it was seen.
    pub count: u64,
}

/// One side of a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Party {
    /// The operation.
    pub op: Op,
    /// The device it ran on.
    pub device: u32,
    /// The rank it ran for, where its parameters tell.
    pub rank: Option<u32>,
    /// What was done: `weak store of 4 bytes`.
    pub access: String,
    /// Which thread of which kernel; `None` for a copy, a fill or a host function.
    pub thread: Option<Thread>,
    /// What it last synchronised on.
    pub synchronised: String,
}

impl Party {
    /// The operation's place among those of its device.
    pub fn ordinal(&self) -> u32 {
        self.op as u32
    }
}

/// A thread at an instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Name of the kernel.
    pub kernel: String,
    /// The block.
    pub ctaid: [u32; 3],
    /// The warp of the block.
    pub warp: usize,
    /// The lane of the warp.
    pub lane: u32,
    /// Index of the instruction in the entry's body.
    pub pc: u32,
    /// Line of the PTX text.
    pub line: u32,
    /// Line of the kernel's source, where the PTX tells it.
    pub source: Option<SourceLine>,
}

/// Where in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The address. No two runs in different processes need have the same.
    pub address: u64,
    /// The region's name; `shared memory` for that of a block.
    pub region: String,
    /// What the region is for; `None` for shared memory and where no region is.
    pub kind: Option<RegionKind>,
    /// Bytes from the region's start; 0 where no region is.
    pub offset: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.rule)?;
        if let Some(place) = &self.place {
            write!(f, " at {place}")?;
        }
        writeln!(f, ": {}", self.rule.wrong())?;
        if !self.detail.is_empty() {
            writeln!(f, "  {}", self.detail)?;
        }
        for (title, party) in [("earlier", &self.earlier), ("later", &self.later)] {
            if let Some(party) = party {
                writeln!(f, "  {title}: {party}")?;
            }
        }
        if self.count > 1 {
            writeln!(f, "  seen {} times", self.count)?;
        }
        write!(f, "  usual repair: {}", self.repair)
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by ", self.access)?;
        if let Some(rank) = self.rank {
            write!(f, "rank {rank}, ")?;
        }
        write!(f, "operation {} of device {}", self.ordinal(), self.device)?;
        if let Some(thread) = &self.thread {
            write!(f, ", {thread}")?;
        }
        write!(f, "; last synchronised: {}", self.synchronised)
    }
}

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.ctaid;
        write!(f, "`{}` CTA {x}", self.kernel)?;
        if (y, z) != (0, 0) {
            write!(f, ",{y},{z}")?;
        }
        write!(
            f,
            " warp {} lane {}, PTX line {} (instruction {})",
            self.warp, self.lane, self.line, self.pc
        )?;
        match &self.source {
            Some(source) => write!(f, ", {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.region)?;
        match (self.kind, self.offset) {
            (None, 0) => Ok(()),
            (_, offset) => write!(f, ", + {offset}"),
        }
    }
}
