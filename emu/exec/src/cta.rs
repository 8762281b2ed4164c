//! A resident block and its warps.

use crate::{
    BarrierMisuse, CtaBarrier, Fault, FaultKind, GlobalMemory, Hook, Launch, Site, SourceLine,
    barrier::{Arrival, BARRIERS, Barrier, Verdict},
    op::{BarrierKind, Op},
    registers::{Registers, lanes_of},
    run::{Outcome, Run},
    warp::{Standing, Warp},
};
use std::sync::Arc;

/// A block that is resident on a multiprocessor: registers, shared and local memory of its warps.
#[derive(Debug)]
pub struct Cta {
    launch: Arc<Launch>,
    ctaid: [u32; 3],
    smid: u32,
    warps: Vec<Warp>,
    shared: Vec<u8>,
    barriers: Vec<Barrier>,
}

/// What a step runs in.
#[derive(Debug)]
pub struct Env<'a, M, H> {
    /// Global memory as the device sees it.
    pub memory: &'a mut M,
    /// What watches.
    pub hook: &'a mut H,
    /// `%globaltimer`, in nanoseconds; constant for the step.
    pub globaltimer: u64,
    /// `%clock64` at the start of the step; within it, it grows by one per instruction of the warp.
    pub clock: u64,
    /// Grows by one for every instruction that a warp executes.
    pub executed: u64,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The fuel is spent; the warp can go on.
    Ran,
    /// The warp did what one does in a loop that waits: it repeated a strong load, tried an atomic again or executed
    /// `nanosleep`. It can go on, but others should run first.
    Polled,
    /// None of the warp's lanes can go on: they wait at barriers of the block, or for lanes of the warp that do.
    Barrier,
    /// The warp's last lane has ended; others of the block have not.
    Exited,
    /// The block's last lane has ended.
    CtaDone,
    /// The grid must end.
    Fault(Box<Fault>),
}

/// Where lanes of a warp are, for reports.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpState {
    /// The warp of the block.
    pub warp: usize,
    /// The lanes that are there.
    pub lanes: u32,
    /// Index of the instruction that they execute next (for those that wait: that they wait in).
    pub pc: u32,
    /// Line of the PTX text.
    pub line: u32,
    /// Line of the kernel's source.
    pub source: Option<SourceLine>,
    /// What they wait for.
    pub reason: WaitReason,
}

/// What lanes wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// Nothing: they can run.
    Running,
    /// Their last strong load repeated itself: they poll this address (of the first lane) for another value.
    Polling {
        /// The address.
        addr: u64,
        /// What was there at the last look.
        seen: u64,
    },
    /// A barrier of the block.
    Barrier {
        /// Its number.
        id: u32,
        /// The thread count it waits for; 0 for the whole block.
        count: u32,
    },
    /// Other lanes of the warp, in a warp-wide operation with this member mask.
    Lanes {
        /// The mask.
        mask: u32,
    },
    /// They have ended.
    Exited,
}

impl Cta {
    /// Makes a block resident on multiprocessor `smid`. The launch must be [valid](Launch::validate).
    pub fn new(launch: &Arc<Launch>, ctaid: [u32; 3], smid: u32) -> Self {
        let code = launch.kernel.code();
        let count = launch.threads().div_ceil(32) as usize;
        let warp = |index| Warp::new(launch, code, ctaid, smid, index);
        Self {
            ctaid,
            smid,
            warps: (0..count).map(warp).collect(),
            shared: vec![0; code.dynamic_shared_at as usize + launch.dynamic_shared as usize],
            barriers: vec![Barrier::new(count); BARRIERS],
            launch: Arc::clone(launch),
        }
    }

    /// The launch it is of.
    pub fn launch(&self) -> &Arc<Launch> {
        &self.launch
    }

    /// Its place in the grid.
    pub fn ctaid(&self) -> [u32; 3] {
        self.ctaid
    }

    /// The multiprocessor it is resident on.
    pub fn smid(&self) -> u32 {
        self.smid
    }

    /// How many warps it has.
    pub fn warps(&self) -> usize {
        self.warps.len()
    }

    /// One of its warps.
    pub(crate) fn warp(&self, warp: usize) -> Option<&Warp> {
        self.warps.get(warp)
    }

    /// Whether a step of this warp would execute something: it has not ended and does not wait at a barrier.
    pub fn runnable(&self, warp: usize) -> bool {
        self.warps.get(warp).is_some_and(Warp::runnable)
    }

    /// Whether all its lanes have ended.
    pub fn done(&self) -> bool {
        self.warps.iter().all(|warp| warp.live == 0)
    }

    /// Runs one warp until it waits, ends, polls, faults, or has executed `fuel` instructions.
    ///
    /// A warp that is not runnable answers [`Step::Barrier`], [`Step::Exited`] or [`Step::CtaDone`] at once.
    pub fn step<M: GlobalMemory, H: Hook>(
        &mut self,
        warp: usize,
        env: &mut Env<'_, M, H>,
        fuel: u32,
    ) -> Step {
        let Some(own) = self.warps.get_mut(warp) else {
            return Step::Exited;
        };
        own.regions.refresh(env.memory);
        let clock_end = env.clock.wrapping_add(fuel.into());
        let mut left = fuel;
        loop {
            let before = left;
            let launch = &*self.launch;
            let outcome = Run {
                code: launch.kernel.code(),
                site: Site {
                    launch,
                    ctaid: self.ctaid,
                    smid: self.smid,
                    warp,
                    pc: 0,
                },
                warp: &mut self.warps[warp],
                shared: &mut self.shared,
                env,
                fuel: &mut left,
                clock_end,
            }
            .run();
            env.executed += u64::from(before - left);
            match outcome {
                Outcome::Spent => return Step::Ran,
                Outcome::Polled => return Step::Polled,
                Outcome::Blocked if self.warps[warp].live != 0 => return Step::Barrier,
                Outcome::Blocked if self.done() => return Step::CtaDone,
                Outcome::Blocked => return Step::Exited,
                Outcome::Barrier { pc, lanes } => {
                    if let Err(misuse) = self.arrive(warp, pc, lanes, env) {
                        let lane = lanes.trailing_zeros() as usize;
                        return self.fault(warp, pc, lane, FaultKind::Barrier(misuse));
                    }
                }
                Outcome::Ended { pc, .. } => {
                    for id in 0..BARRIERS {
                        self.settle(id, warp, pc, env);
                    }
                }
                Outcome::Fault { pc, lane, kind } => return self.fault(warp, pc, lane, kind),
            }
        }
    }

    fn fault(&self, warp: usize, pc: u32, lane: usize, kind: FaultKind) -> Step {
        let kernel = &self.launch.kernel;
        Step::Fault(Box::new(Fault {
            kind,
            kernel: kernel.name().to_owned(),
            ctaid: self.ctaid,
            warp,
            lane: lane as u32,
            pc,
            line: kernel.ptx_line(pc),
            source: kernel.source_line(pc).cloned(),
        }))
    }

    fn site(&self, warp: usize, pc: u32) -> Site<'_> {
        Site {
            launch: &self.launch,
            ctaid: self.ctaid,
            smid: self.smid,
            warp,
            pc,
        }
    }

    /// Lanes of a warp execute the barrier instruction at `pc`.
    fn arrive<M, H: Hook>(
        &mut self,
        warp: usize,
        pc: u32,
        lanes: u32,
        env: &mut Env<'_, M, H>,
    ) -> Result<(), BarrierMisuse> {
        let launch = Arc::clone(&self.launch);
        let Op::Barrier(op) = &launch.kernel.code().insts[pc as usize].op else {
            return Ok(());
        };
        let own = &mut self.warps[warp];
        let id = uniform(own.registers.n(op.id), lanes)?;
        let count = match op.count {
            Some(slot) => uniform(own.registers.n(slot), lanes)?,
            None => 0,
        };
        if id as usize >= BARRIERS {
            return Err(BarrierMisuse::Id(id));
        }
        let most = 32 * self.barriers[0].arrived.len() as u32;
        if op.count.is_some() && (count == 0 || count % 32 != 0 || count > most) {
            return Err(BarrierMisuse::Count(count));
        }
        let votes = match op.kind {
            BarrierKind::And(flag, _) | BarrierKind::Or(flag, _) | BarrierKind::Popc(flag, _) => {
                own.registers.flag(flag)
            }
            BarrierKind::Arrive | BarrierKind::Sync => 0,
        };
        let waits = op.kind != BarrierKind::Arrive;
        let (pc_after, standing) = match waits {
            true => (pc, Standing::AtBarrier { id, count }),
            false => (pc + 1, Standing::Ready),
        };
        own.park(pc_after, lanes, standing, None);
        let arrival = Arrival {
            id,
            count,
            kind: op.kind,
            warp,
            lanes,
            votes,
        };
        self.barriers[id as usize].arrive(&arrival)?;
        if H::CHECKING {
            env.hook.cta_barrier(
                &self.site(warp, pc),
                CtaBarrier::Arrived { id, lanes, waits },
            );
        }
        self.settle(id as usize, warp, pc, env);
        Ok(())
    }

    /// Lets those who wait at a barrier go on if all have arrived, by what `warp` did at `pc`.
    fn settle<M, H: Hook>(&mut self, id: usize, warp: usize, pc: u32, env: &mut Env<'_, M, H>) {
        if !self.barriers[id].in_use()
            || !self.barriers[id].complete(self.warps.iter().map(|warp| warp.live))
        {
            return;
        }
        if H::CHECKING {
            let (arrived, waited) = (&self.barriers[id].arrived, &self.barriers[id].waited);
            let event = CtaBarrier::Completed {
                id: id as u32,
                arrived,
                waited,
            };
            env.hook.cta_barrier(&self.site(warp, pc), event);
        }
        let verdict = self.barriers[id].verdict();
        self.barriers[id].reset();
        let insts = &self.launch.kernel.code().insts;
        for warp in &mut self.warps {
            let Warp {
                fragments,
                registers,
                ..
            } = warp;
            for fragment in fragments {
                if !matches!(fragment.standing, Standing::AtBarrier { id: at, .. } if at as usize == id)
                {
                    continue;
                }
                if let Op::Barrier(op) = &insts[fragment.pc as usize].op {
                    deliver(registers, op.kind, fragment.lanes, verdict);
                }
                fragment.standing = Standing::Ready;
                fragment.pc += 1;
            }
        }
    }

    /// Where every warp is; several entries for a warp whose lanes have diverged.
    pub fn waits(&self) -> Vec<WarpState> {
        let kernel = &self.launch.kernel;
        let state = |warp, lanes, pc, reason| WarpState {
            warp,
            lanes,
            pc,
            line: kernel.ptx_line(pc),
            source: kernel.source_line(pc).cloned(),
            reason,
        };
        let mut states = Vec::new();
        for (index, warp) in self.warps.iter().enumerate() {
            for fragment in &warp.fragments {
                states.push(state(index, fragment.lanes, fragment.pc, fragment.reason()));
            }
            if warp.live == 0 {
                states.push(state(
                    index,
                    0,
                    kernel.code().insts.len() as u32 - 1,
                    WaitReason::Exited,
                ));
            }
        }
        states
    }
}

/// The value that all these lanes have.
fn uniform(row: &[u32; 32], lanes: u32) -> Result<u32, BarrierMisuse> {
    let first = row[lanes.trailing_zeros() as usize % 32];
    if lanes_of(lanes).all(|lane| row[lane] == first) {
        Ok(first)
    } else {
        Err(BarrierMisuse::LanesDiffer)
    }
}

/// Gives a barrier's reduction to lanes that waited.
fn deliver(registers: &mut Registers, kind: BarrierKind, lanes: u32, verdict: Verdict) {
    let spread = |yes: bool| if yes { lanes } else { 0 };
    match kind {
        BarrierKind::Arrive | BarrierKind::Sync => {}
        BarrierKind::And(_, target) => registers.put_flag(target, lanes, spread(verdict.and)),
        BarrierKind::Or(_, target) => registers.put_flag(target, lanes, spread(verdict.or)),
        BarrierKind::Popc(_, target) => registers.put_narrow(target, lanes, &[verdict.popc; 32]),
    }
}
