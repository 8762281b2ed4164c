//! Running one warp.

use crate::{
    Env, FaultKind, GlobalMemory, Hook, Order, Site,
    access::Memories,
    decode::Code,
    lanes,
    op::{LaneOp, MemoryOp, Op},
    warp::{Fragment, Poll, Sighting, Standing, Warp, clock_value, put_all},
};
use std::sync::atomic::{Ordering, fence};

/// Why a warp stopped running.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// The fuel is spent.
    Spent,
    /// All that can run only polls.
    Polled,
    /// No lane can run.
    Blocked,
    /// These lanes execute the barrier at `pc`. They are in no fragment now.
    Barrier { pc: u32, lanes: u32 },
    /// Lanes ended at `pc`.
    Ended { pc: u32, lanes: u32 },
    /// The program went wrong.
    Fault {
        pc: u32,
        lane: usize,
        kind: FaultKind,
    },
}

/// How many instructions the lowest fragment may run before the others get a turn: it may wait for them in a loop
/// that does not look like one (without strong loads). Long, so that lanes in loops of different length meet behind.
const PATIENCE: u32 = 1 << 14;

/// What one warp runs in.
pub(crate) struct Run<'a, 'e, M, H> {
    pub(crate) code: &'a Code,
    /// The warp as hooks see it; the place is filled in.
    pub(crate) site: Site<'a>,
    pub(crate) warp: &'a mut Warp,
    pub(crate) shared: &'a mut [u8],
    pub(crate) env: &'a mut Env<'e, M, H>,
    /// Instructions that this step may still execute.
    pub(crate) fuel: &'a mut u32,
    /// `%clock64` when the fuel is zero.
    pub(crate) clock_end: u64,
}

/// What comes after an instruction that is not plain computation.
enum Next {
    /// The next one.
    On,
    /// These lanes wait for others of this mask; the rest goes on.
    Wait { lanes: u32, mask: u32 },
    /// The fragment steps back behind its siblings.
    Yield,
    /// The step ends before this instruction.
    Pause,
    /// The step ends.
    Stop(Outcome),
}

impl<M: GlobalMemory, H: Hook> Run<'_, '_, M, H> {
    /// Runs until the fuel is spent or nothing more can be done.
    pub(crate) fn run(&mut self) -> Outcome {
        loop {
            let Some(fragment) = self.warp.take_next() else {
                return if self.warp.wake_yielded() {
                    Outcome::Polled
                } else {
                    Outcome::Blocked
                };
            };
            let before = *self.fuel;
            let outcome = self.fragment(fragment);
            self.warp.favoured = match self.warp.fragments.len() {
                0 | 1 => 0,
                _ => self.warp.favoured.saturating_add(before - *self.fuel),
            };
            if let Some(outcome) = outcome {
                return outcome;
            }
        }
    }

    /// Runs one fragment until it meets, parts from or gives way to others.
    fn fragment(&mut self, mut current: Fragment) -> Option<Outcome> {
        let code = self.code;
        let meeting = self.warp.next_meeting(current.pc);
        let mut pc = current.pc;
        let alone = self.warp.fragments.is_empty();
        loop {
            if pc >= meeting {
                self.warp
                    .park(pc, current.lanes, Standing::Ready, current.poll);
                return None;
            }
            if *self.fuel == 0 {
                return Some(self.spent(pc, &current));
            }
            *self.fuel -= 1;
            let inst = &code.insts[pc as usize];
            let lanes = match inst.guard {
                None => current.lanes,
                Some(guard) => current.lanes & self.warp.registers.flag(guard),
            };
            if let Op::Branch(target) = inst.op {
                if lanes == current.lanes {
                    let back = target <= pc;
                    pc = target;
                    if back && !alone {
                        self.warp
                            .park(pc, current.lanes, Standing::Ready, current.poll);
                        return None;
                    }
                } else if lanes == 0 {
                    pc += 1;
                } else {
                    self.warp.park(target, lanes, Standing::Ready, current.poll);
                    self.warp.park(
                        pc + 1,
                        current.lanes & !lanes,
                        Standing::Ready,
                        current.poll,
                    );
                    return None;
                }
                continue;
            }
            if lanes == 0 || self.warp.registers.compute(&inst.op, lanes) {
                pc += 1;
                continue;
            }
            match self.special(&inst.op, pc, lanes, &mut current) {
                Next::On => pc += 1,
                Next::Wait {
                    lanes: waiting,
                    mask,
                } => {
                    self.warp
                        .park(pc, waiting, Standing::Meeting { mask }, None);
                    self.warp
                        .park(pc + 1, current.lanes & !waiting, Standing::Ready, None);
                    return None;
                }
                Next::Yield => {
                    self.warp
                        .park(pc + 1, current.lanes, Standing::Yielded, current.poll);
                    return None;
                }
                Next::Pause => {
                    *self.fuel += 1;
                    return Some(self.spent(pc, &current));
                }
                Next::Stop(outcome) => {
                    self.warp.park(
                        pc + 1,
                        current.lanes & !lanes,
                        Standing::Ready,
                        current.poll,
                    );
                    return Some(outcome);
                }
            }
        }
    }

    /// The fuel ends in the middle of a fragment.
    fn spent(&mut self, pc: u32, current: &Fragment) -> Outcome {
        let standing = match self.warp.favoured > PATIENCE {
            false => Standing::Ready,
            true => {
                // Those who stepped back before had their turn as siblings.
                self.warp.favoured = 0;
                self.warp.wake_yielded();
                Standing::Yielded
            }
        };
        self.warp.park(pc, current.lanes, standing, current.poll);
        Outcome::Spent
    }

    /// An instruction that does more than compute.
    fn special(&mut self, op: &Op, pc: u32, lanes: u32, current: &mut Fragment) -> Next {
        match op {
            Op::Memory(op) if H::CHECKING && op.is_strong() && self.env.hook.pauses() => {
                Next::Pause
            }
            Op::Fence(fence) if H::CHECKING && fence.sc && self.env.hook.pauses() => Next::Pause,
            Op::Memory(op) => self.memory(op, pc, lanes, current),
            Op::Lanes(op) => self.lanes(op, pc, lanes),
            Op::Barrier(_) => Next::Stop(Outcome::Barrier { pc, lanes }),
            Op::Exit => {
                if H::CHECKING {
                    let site = Site { pc, ..self.site };
                    self.env.hook.exit(&site, lanes);
                }
                self.warp.end(lanes);
                Next::Stop(Outcome::Ended { pc, lanes })
            }
            Op::Fence(which) => {
                fence(match (which.sc, which.order) {
                    (true, _) => Ordering::SeqCst,
                    (false, Order::Acquire) => Ordering::Acquire,
                    (false, Order::Release) => Ordering::Release,
                    (false, _) => Ordering::AcqRel,
                });
                if H::CHECKING {
                    let site = Site { pc, ..self.site };
                    self.env.hook.fence(&site, lanes, *which);
                }
                Next::On
            }
            Op::Clock(register, place) => {
                self.warp.clocks += 1;
                let again = self.warp.only_time.replace(pc) == Some(pc);
                let clock = self.clock_end.wrapping_sub((*self.fuel).into());
                let value = clock_value(*register, clock, self.env.globaltimer);
                put_all(&mut self.warp.registers, *place, lanes, value);
                if again { Next::Yield } else { Next::On }
            }
            Op::Sleep => Next::Yield,
            Op::Trap => {
                let lane = lanes.trailing_zeros() as usize;
                Next::Stop(Outcome::Fault {
                    pc,
                    lane,
                    kind: FaultKind::Trap,
                })
            }
            // All others were computed.
            _ => Next::On,
        }
    }

    fn memory(&mut self, op: &MemoryOp, pc: u32, lanes: u32, current: &mut Fragment) -> Next {
        self.warp.only_time = None;
        let mut memories = Memories {
            registers: &mut self.warp.registers,
            global: &*self.env.memory,
            regions: &mut self.warp.regions,
            shared: self.shared,
            local: &mut self.warp.local,
            params: &self.site.launch.params,
            rows: &mut self.warp.rows,
        };
        let performed = if H::CHECKING {
            let site = Site { pc, ..self.site };
            let hook = &mut *self.env.hook;
            memories.perform(op, lanes, Some(&mut |access| hook.access(&site, access)))
        } else {
            memories.perform(op, lanes, None)
        };
        match performed {
            Err((lane, kind)) => Next::Stop(Outcome::Fault { pc, lane, kind }),
            Ok(None) => Next::On,
            Ok(Some(found)) => {
                let place = Sighting {
                    pc,
                    lanes,
                    places: found.places,
                };
                let repeats = self.warp.repeats(place, found.values);
                let (addr, seen) = found.first;
                current.poll = repeats.then_some(Poll { addr, seen, pc });
                if repeats { Next::Yield } else { Next::On }
            }
        }
    }

    fn lanes(&mut self, op: &LaneOp, pc: u32, lanes: u32) -> Next {
        match lanes::perform(self.warp, op, pc, lanes) {
            Err((lane, kind)) => Next::Stop(Outcome::Fault { pc, lane, kind }),
            Ok(done) => {
                if H::CHECKING && done.met != 0 {
                    let site = Site { pc, ..self.site };
                    self.env.hook.warp_barrier(&site, done.met);
                }
                match done.waiting {
                    0 => Next::On,
                    waiting => Next::Wait {
                        lanes: waiting,
                        mask: done.mask,
                    },
                }
            }
        }
    }
}
