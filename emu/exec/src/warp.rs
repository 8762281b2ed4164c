//! A warp: its registers, and where its lanes are.
//!
//! Lanes that are at the same place form a *fragment*. The fragment that is lowest in the text runs, and absorbs those
//! it meets, so that lanes which part at a branch come together behind it. A fragment that only polls steps back, so
//! that its siblings, who may be the ones it waits for, run too.

use crate::{
    Launch, WaitReason,
    decode::Code,
    memory::RegionCache,
    op::Place,
    registers::{Registers, lanes_of},
    value::Wide,
};
use rustc_hash::FxHashMap;
use slabfence_emu_ptx::SpecialRegister;

/// Lanes at the same place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fragment {
    pub(crate) pc: u32,
    pub(crate) lanes: u32,
    pub(crate) standing: Standing,
    /// What the lanes' last strong load saw, if it repeated itself.
    pub(crate) poll: Option<Poll>,
}

/// Whether a fragment can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Ready,
    /// Can run, but lets its siblings run first.
    Yielded,
    /// At a barrier of the block.
    AtBarrier {
        id: u32,
        count: u32,
    },
    /// In a warp-wide operation, waiting for other lanes of this mask.
    Meeting {
        mask: u32,
    },
}

/// A strong access that repeated itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Poll {
    /// Address of the first lane.
    pub(crate) addr: u64,
    /// What that lane found there.
    pub(crate) seen: u64,
    /// The access.
    pub(crate) pc: u32,
}

/// A strong access: which one, by whom, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sighting {
    pub(crate) pc: u32,
    pub(crate) lanes: u32,
    /// A digest of all lanes' addresses.
    pub(crate) places: u64,
}

/// How many sightings a warp remembers: more than the words that any wait goes round.
const SIGHTINGS: usize = 4096;

/// A warp of a block.
#[derive(Debug)]
pub(crate) struct Warp {
    pub(crate) registers: Registers,
    /// Local memory: the threads' one after the other.
    pub(crate) local: Vec<u8>,
    pub(crate) fragments: Vec<Fragment>,
    /// Lanes that have not ended.
    pub(crate) live: u32,
    pub(crate) regions: RegionCache,
    /// Instructions that one fragment ran while others could have.
    pub(crate) favoured: u32,
    /// Times that lanes read a clock.
    pub(crate) clocks: u64,
    /// The clock that was read last, if no memory was accessed since: who reads it again waits for time.
    pub(crate) only_time: Option<u32>,
    /// What accesses found when they were last executed.
    sightings: FxHashMap<Sighting, u64>,
    /// Room for the values of an access.
    pub(crate) rows: [Vec<Wide>; 2],
}

impl Warp {
    pub(crate) fn new(
        launch: &Launch,
        code: &Code,
        ctaid: [u32; 3],
        smid: u32,
        index: usize,
    ) -> Self {
        let threads = launch.threads() - 32 * index as u64;
        let live = if threads >= 32 {
            u32::MAX
        } else {
            (1 << threads) - 1
        };
        let mut registers = Registers::new(&code.image);
        for global in &code.image.globals {
            let address = launch.globals.get(global.global).copied().unwrap_or(0);
            registers.wide[usize::from(global.slot)] =
                [address.wrapping_add_signed(global.addend); 32];
        }
        for special in &code.image.specials {
            for lane in 0..32 {
                let value = special_value(special.register, launch, code, ctaid, smid, index, lane);
                registers.set(special.place, lane as usize, value);
            }
        }
        Self {
            registers,
            local: vec![0; 32 * code.local as usize],
            fragments: vec![Fragment {
                pc: 0,
                lanes: live,
                standing: Standing::Ready,
                poll: None,
            }],
            live,
            regions: RegionCache::default(),
            favoured: 0,
            clocks: 0,
            only_time: None,
            sightings: FxHashMap::default(),
            rows: [Vec::new(), Vec::new()],
        }
    }

    /// Whether some lanes can run.
    pub(crate) fn runnable(&self) -> bool {
        self.fragments
            .iter()
            .any(|fragment| matches!(fragment.standing, Standing::Ready | Standing::Yielded))
    }

    /// Takes the fragment to run next: the lowest of those that are ready, with all others that stand at its place.
    pub(crate) fn take_next(&mut self) -> Option<Fragment> {
        if let [only] = self.fragments[..] {
            let ready = only.standing == Standing::Ready;
            return self.fragments.pop_if(|_| ready);
        }
        let ready = self
            .fragments
            .iter()
            .enumerate()
            .filter(|(_, fragment)| fragment.standing == Standing::Ready);
        let (at, _) = ready.min_by_key(|(_, fragment)| fragment.pc)?;
        let mut taken = self.fragments.swap_remove(at);
        self.fragments.retain(|fragment| {
            let joins =
                fragment.pc == taken.pc && !matches!(fragment.standing, Standing::AtBarrier { .. });
            if joins {
                taken.lanes |= fragment.lanes;
            }
            !joins
        });
        Some(taken)
    }

    /// The lowest place from `pc` on where another fragment stands that would be absorbed.
    pub(crate) fn next_meeting(&self, pc: u32) -> u32 {
        let movable =
            |fragment: &&Fragment| !matches!(fragment.standing, Standing::AtBarrier { .. });
        let ahead = self
            .fragments
            .iter()
            .filter(movable)
            .map(|fragment| fragment.pc);
        ahead.filter(|&at| at >= pc).min().unwrap_or(u32::MAX)
    }

    pub(crate) fn park(&mut self, pc: u32, lanes: u32, standing: Standing, poll: Option<Poll>) {
        if lanes != 0 {
            self.fragments.push(Fragment {
                pc,
                lanes,
                standing,
                poll,
            });
        }
    }

    /// Lets those that stepped back run again; false when there are none.
    pub(crate) fn wake_yielded(&mut self) -> bool {
        let mut any = false;
        for fragment in &mut self.fragments {
            if fragment.standing == Standing::Yielded {
                fragment.standing = Standing::Ready;
                any = true;
            }
        }
        any
    }

    /// Lanes have ended: whoever waits for lanes of the warp must look again.
    pub(crate) fn end(&mut self, lanes: u32) {
        self.live &= !lanes;
        for fragment in &mut self.fragments {
            if matches!(fragment.standing, Standing::Meeting { .. }) {
                fragment.standing = Standing::Ready;
            }
        }
    }

    /// Records what a strong access found; true if it found the same when it was last executed there by the same lanes.
    pub(crate) fn repeats(&mut self, access: Sighting, values: u64) -> bool {
        if self.sightings.len() == SIGHTINGS && !self.sightings.contains_key(&access) {
            self.sightings.clear();
        }
        self.sightings.insert(access, values) == Some(values)
    }
}

impl Fragment {
    /// What its lanes wait for.
    pub(crate) fn reason(&self) -> WaitReason {
        match (self.standing, self.poll) {
            (Standing::AtBarrier { id, count }, _) => WaitReason::Barrier { id, count },
            (Standing::Meeting { mask }, _) => WaitReason::Lanes { mask },
            (_, Some(poll)) => WaitReason::Polling {
                addr: poll.addr,
                seen: poll.seen,
            },
            _ => WaitReason::Running,
        }
    }
}

fn special_value(
    register: SpecialRegister,
    launch: &Launch,
    code: &Code,
    ctaid: [u32; 3],
    smid: u32,
    warp: usize,
    lane: u32,
) -> u64 {
    use SpecialRegister::*;
    let [x, y, z] = launch.block;
    let thread = 32 * warp as u32 + lane;
    let warps = (launch.threads() as u32).div_ceil(32);
    let value = match register {
        TidX => thread % x,
        TidY => thread / x % y,
        TidZ => thread / x / y % z,
        NtidX => x,
        NtidY => y,
        NtidZ => z,
        CtaidX => ctaid[0],
        CtaidY => ctaid[1],
        CtaidZ => ctaid[2],
        NctaidX => launch.grid[0],
        NctaidY => launch.grid[1],
        NctaidZ => launch.grid[2],
        Laneid => lane,
        Warpid => warp as u32,
        Nwarpid => warps,
        Smid => smid,
        Nsmid => launch.multiprocessors,
        LanemaskEq => 1 << lane,
        LanemaskLt => (1 << lane) - 1,
        LanemaskLe => u32::MAX >> (31 - lane),
        LanemaskGt => !(u32::MAX >> (31 - lane)),
        LanemaskGe => u32::MAX << lane,
        DynamicSmemSize => launch.dynamic_shared,
        TotalSmemSize => code.dynamic_shared_at + launch.dynamic_shared,
        Gridid => return launch.tag,
        // Read by an instruction of their own.
        Clock | ClockHi | Clock64 | Globaltimer | GlobaltimerLo | GlobaltimerHi => 0,
    };
    value.into()
}

/// The value of a register that changes with time.
pub(crate) fn clock_value(register: SpecialRegister, clock: u64, globaltimer: u64) -> u64 {
    match register {
        SpecialRegister::Clock => clock & 0xffff_ffff,
        SpecialRegister::ClockHi => clock >> 32,
        SpecialRegister::Clock64 => clock,
        SpecialRegister::GlobaltimerLo => globaltimer & 0xffff_ffff,
        SpecialRegister::GlobaltimerHi => globaltimer >> 32,
        _ => globaltimer,
    }
}

/// Writes one value to a place in all these lanes.
pub(crate) fn put_all(registers: &mut Registers, place: Place, lanes: u32, value: u64) {
    for lane in lanes_of(lanes) {
        registers.set(place, lane, value);
    }
}
