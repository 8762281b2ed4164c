//! Who did what: names of accesses that are short enough to be kept for every word of memory.

use std::sync::Arc;

use slabfence_emu_exec::{Launch, Scope};

use crate::{
    Op, Party, Region, Thread,
    clock::{ALL, Lane},
    findings::Where,
    sweep::Room,
};

/// No slot: nobody accessed yet.
const NOBODY: u16 = u16::MAX;

/// One access of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) time: u32,
    /// Index of the site.
    pub(crate) site: u32,
    slot: u16,
    lane: u8,
    how: How,
}

/// How an access was made, packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct How(u8);

impl How {
    const NC: u8 = 0x20;
    const WRITE: u8 = 0x40;
    const ATOMIC: u8 = 0x80;

    /// An access of `size` bytes (an element's); `scope` is `None` for weak ones.
    pub(crate) fn new(scope: Option<Scope>, size: u32) -> Self {
        let scope = match scope {
            None => 0,
            Some(Scope::Cta) => 1,
            Some(Scope::Gpu) => 2,
            Some(Scope::Sys) => 3,
        };
        Self(scope | (size.trailing_zeros() as u8 & 7) << 2)
    }

    pub(crate) fn outside_the_model(self) -> Self {
        Self(self.0 | Self::NC)
    }

    pub(crate) fn writing(self) -> Self {
        Self(self.0 | Self::WRITE)
    }

    pub(crate) fn atomic(self) -> Self {
        Self(self.0 | Self::WRITE | Self::ATOMIC)
    }

    /// A `cas` that found another value than it expected, and stored nothing.
    pub(crate) fn failed(self) -> Self {
        Self(self.0 | Self::ATOMIC)
    }

    pub(crate) fn is_nc(self) -> bool {
        self.0 & Self::NC != 0
    }

    pub(crate) fn is_write(self) -> bool {
        self.0 & Self::WRITE != 0
    }

    /// Whether everything that races with an access so made before another one does with that one too: with the same
    /// words a weak access races with more than a strong one, and one of a narrower scope with more than one of a wider.
    #[inline]
    pub(crate) fn covers(self, before: Self) -> bool {
        let as_weak = !self.is_strong()
            || before.is_strong() && self.scope() <= before.scope() && self.size() == before.size();
        as_weak && (self.is_nc() || !before.is_nc())
    }

    pub(crate) fn is_atomic(self) -> bool {
        self.0 & Self::ATOMIC != 0
    }

    pub(crate) fn is_strong(self) -> bool {
        self.0 & 3 != 0
    }

    pub(crate) fn scope(self) -> Option<Scope> {
        [None, Some(Scope::Cta), Some(Scope::Gpu), Some(Scope::Sys)][usize::from(self.0 & 3)]
    }

    /// Bytes of an element.
    pub(crate) fn size(self) -> u32 {
        1 << (self.0 >> 2 & 7)
    }

    fn words(self) -> String {
        let scope = match self.scope() {
            None if self.is_nc() => "nc",
            None => "weak",
            Some(Scope::Cta) => "strong .cta",
            Some(Scope::Gpu) => "strong .gpu",
            Some(Scope::Sys) => "strong .sys",
        };
        let verb = match (self.is_atomic(), self.is_write()) {
            (true, true) => "read-modify-write",
            (true, false) => "failed compare-and-swap",
            (false, true) => "store",
            (false, false) => "load",
        };
        format!("{scope} {verb} of {} bytes", self.size())
    }
}

impl Stamp {
    pub(crate) const NONE: Self = Self {
        time: 0,
        site: 0,
        slot: NOBODY,
        lane: 0,
        how: How(0),
    };

    pub(crate) fn new(lane: Lane, time: u32, site: u32, how: How) -> Self {
        Self {
            time,
            site,
            slot: lane.slot,
            lane: lane.lane,
            how,
        }
    }

    /// The same of all lanes of the warp.
    pub(crate) fn of_all(self) -> Self {
        Self { lane: ALL, ..self }
    }

    /// The same of one lane of the warp.
    pub(crate) fn of_lane(self, lane: u8) -> Self {
        Self { lane, ..self }
    }

    /// Its lanes, as a mask.
    #[inline]
    pub(crate) fn lanes(self) -> u32 {
        match self.lane {
            ALL => u32::MAX,
            lane => 1 << lane,
        }
    }

    /// The same of the first lane that another access of the warp is not of, where all made it.
    pub(crate) fn beside(self, other: Self) -> Self {
        match self.lane {
            ALL if (other.slot, other.lane) == (self.slot, 0) => self.of_lane(1),
            _ => self,
        }
    }

    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self.slot == NOBODY
    }

    #[inline]
    pub(crate) fn lane(self) -> Lane {
        Lane {
            slot: self.slot,
            lane: self.lane,
        }
    }

    #[inline]
    pub(crate) fn how(self) -> How {
        self.how
    }
}

/// A warp, copy or fill, as long as reports may name it.
#[derive(Clone, Debug)]
pub(crate) struct Occupant {
    pub(crate) op: Op,
    pub(crate) device: u32,
    pub(crate) rank: Option<u32>,
    /// Distinguishes blocks.
    pub(crate) block: u32,
    /// Its kernel and place; `None` for copies and fills.
    pub(crate) warp: Option<(Arc<Launch>, [u32; 3], usize)>,
    pub(crate) synchronised: Synchronised,
}

/// What somebody last synchronised on.
#[derive(Clone, Debug)]
pub(crate) enum Synchronised {
    Start,
    Barrier {
        id: u32,
        pc: u32,
    },
    Warp {
        pc: u32,
    },
    Fence {
        pc: u32,
    },
    /// A word of a region; none: of shared memory.
    Acquired {
        region: Option<Arc<Region>>,
        address: u64,
        pc: u32,
    },
    Released {
        region: Option<Arc<Region>>,
        address: u64,
        pc: u32,
    },
}

/// The table of names.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    /// Occupant and instruction of each site.
    pub(crate) sites: Vec<(u32, u32)>,
    pub(crate) occupants: Vec<Occupant>,
    pub(crate) room: Room,
}

impl Registry {
    /// Enters an occupant.
    pub(crate) fn occupant(&mut self, occupant: Occupant) -> u32 {
        if let Some(free) = self.room.occupant() {
            self.occupants[free as usize] = occupant;
            return free;
        }
        self.occupants.push(occupant);
        (self.occupants.len() - 1) as u32
    }

    /// Enters an instruction of an occupant.
    pub(crate) fn site(&mut self, occupant: u32, pc: u32) -> u32 {
        if let Some(free) = self.room.site() {
            self.sites[free as usize] = (occupant, pc);
            return free;
        }
        self.sites.push((occupant, pc));
        (self.sites.len() - 1) as u32
    }

    /// Who made an access.
    pub(crate) fn of(&self, stamp: Stamp) -> &Occupant {
        &self.occupants[self.sites[stamp.site as usize].0 as usize]
    }

    /// At which instruction.
    pub(crate) fn pc(&self, stamp: Stamp) -> u32 {
        self.sites[stamp.site as usize].1
    }

    /// Whether a scope that `from` uses includes `to`.
    pub(crate) fn includes(scope: Option<Scope>, from: &Occupant, to: &Occupant) -> bool {
        match scope {
            None => false,
            Some(Scope::Cta) => from.block == to.block,
            Some(Scope::Gpu) => from.device == to.device,
            Some(Scope::Sys) => true,
        }
    }

    /// Whether both are strong and each one's scope includes the other.
    pub(crate) fn mutual(&self, a: Stamp, b: Stamp) -> bool {
        let (from, to) = (self.of(a), self.of(b));
        Self::includes(a.how.scope(), from, to) && Self::includes(b.how.scope(), to, from)
    }

    /// A side of a report.
    pub(crate) fn party(&self, stamp: Stamp) -> Party {
        let who = self.of(stamp);
        let thread = who.warp.as_ref().map(|(launch, ctaid, warp)| {
            let (kernel, pc) = (&launch.kernel, self.pc(stamp));
            Thread {
                kernel: kernel.name().to_owned(),
                ctaid: *ctaid,
                warp: *warp,
                lane: u32::from(stamp.lane) % 32,
                pc,
                line: kernel.ptx_line(pc),
                source: kernel.source_line(pc).cloned(),
            }
        });
        let access = match thread {
            Some(_) => stamp.how.words(),
            None if stamp.how.is_write() => "copy or fill to it".to_owned(),
            None => "copy from it".to_owned(),
        };
        Party {
            op: who.op,
            device: who.device,
            rank: who.rank,
            access,
            thread,
            synchronised: who.last_words(),
        }
    }
}

impl Occupant {
    fn last_words(&self) -> String {
        let line = |pc| match &self.warp {
            Some((launch, ..)) => launch.kernel.ptx_line(pc),
            None => 0,
        };
        let word = |region: &Option<Arc<Region>>, address| match region {
            Some(region) => Where::Region(region, address).place(),
            None => Where::Shared(address).place(),
        };
        match &self.synchronised {
            Synchronised::Start => "start of the operation".to_owned(),
            Synchronised::Barrier { id, pc } => format!("barrier {id}, line {}", line(*pc)),
            Synchronised::Warp { pc } => format!("barrier of the warp, line {}", line(*pc)),
            Synchronised::Fence { pc } => format!("fence, line {}", line(*pc)),
            Synchronised::Acquired {
                region,
                address,
                pc,
            } => {
                format!("acquired {}, line {}", word(region, *address), line(*pc))
            }
            Synchronised::Released {
                region,
                address,
                pc,
            } => {
                format!("released {}, line {}", word(region, *address), line(*pc))
            }
        }
    }
}
