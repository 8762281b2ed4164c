//! A resident block and its warps.

use crate::{Fault, GlobalMemory, Hook, Launch, SourceLine};
use std::sync::Arc;

/// A block that is resident on a multiprocessor: registers, shared and local memory of its warps.
#[derive(Debug)]
pub struct Cta {
    launch: Arc<Launch>,
    ctaid: [u32; 3],
    smid: u32,
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
    /// The warp waits at a barrier of its block.
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
        Self {
            launch: Arc::clone(launch),
            ctaid,
            smid,
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
        (self.launch.threads() as usize).div_ceil(32)
    }

    /// Whether a step of this warp would execute something: it has not ended and does not wait at a barrier.
    pub fn runnable(&self, warp: usize) -> bool {
        warp < self.warps()
    }

    /// Whether all its lanes have ended.
    pub fn done(&self) -> bool {
        false
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
        let _ = (warp, env, fuel);
        Step::Ran
    }

    /// Where every warp is; several entries for a warp whose lanes have diverged.
    pub fn waits(&self) -> Vec<WarpState> {
        Vec::new()
    }
}
