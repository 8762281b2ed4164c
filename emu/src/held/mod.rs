//! Held machines: work is enqueued, then run again and again under schedules that a seed determines.

mod changed;
mod choose;
mod crew;
mod detector;
mod drive;
mod exhaust;
mod explore;
mod floor;
mod name;
mod order;
mod places;
mod plan;
mod random;
mod regions;
mod report;
mod resident;
mod running;
mod search;
mod seen;
mod settle;
mod snapshot;
mod stage;
mod waiters;
mod waiting;
mod watch;
mod words;

use std::fmt;
use std::time::Duration;

pub use exhaust::{Bounds, Exhaustion};
pub use explore::{Exploration, Looked};
pub use plan::{Patience, Plan, Policy};
pub use slabfence_emu_check::{Finding, Party, Place, RegionKind, Rule, Writers};
pub use slabfence_emu_exec::Relation;

pub use report::{End, LastWriter, Poll, Reason, Run, Wait, Waiter, Writer};

use crate::code::{Code, Status};
use crate::machine::{Machine, State};
use crate::runner::Shared;

/// How long work that was enqueued before may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether a machine is held, and what may be done meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// It is not: its thread does the work.
    Free,
    /// Work is enqueued and not done.
    Enqueueing,
    /// The work was run at least once: nothing may be enqueued, and no memory come or go.
    Running,
}

/// Why a machine cannot be held, or its work cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldError {
    /// It is held already.
    Twice,
    /// So many operations that were enqueued before did not complete in time.
    Busy(usize),
    /// Memory was allocated or freed, or work enqueued, while runs were going on.
    Changed,
}

impl fmt::Display for HeldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice => f.write_str("the machine is held already: drop the other handle first"),
            Self::Busy(count) => write!(
                f,
                "{count} operations that were enqueued before the machine was held did not complete in {} s",
                PATIENCE.as_secs()
            ),
            Self::Changed => f.write_str(
                "memory was allocated or freed, or work was enqueued, between runs of held work: do it before the first run",
            ),
        }
    }
}

impl std::error::Error for HeldError {}

/// A machine whose devices do nothing until they are told to.
///
/// Calls of the driver that only enqueue do so. Those that would wait for device work that is enqueued and not done
/// (synchronising, blocking copies, copies to pageable memory, freeing memory that the work may use) answer
/// `CUDA_ERROR_NOT_PERMITTED`, with a line in the log: nobody would end the wait.
///
/// On drop the machine goes on as usual, in the state that the last run left; work that was never run is done then. Work of a run that did not complete is given up: its
/// device's context is broken, with the code of the fault or `CUDA_ERROR_LAUNCH_TIMEOUT`.
pub struct Held<'a> {
    shared: &'a Shared,
    start: Option<running::Start>,
    left: Option<running::Left>,
}

impl Machine {
    /// Holds the machine: what is enqueued from now on waits until it is run by [`Held`], or until that is dropped.
    ///
    /// Waits for what was enqueued before, for a minute at most.
    pub fn hold(&self) -> Result<Held<'_>, HeldError> {
        let shared = self.shared();
        let mut state = shared.settle(PATIENCE);
        if state.phase != Phase::Free {
            return Err(HeldError::Twice);
        }
        match state.engine.outstanding(None).len() {
            0 => state.phase = Phase::Enqueueing,
            count => return Err(HeldError::Busy(count)),
        }
        Ok(Held {
            shared,
            start: None,
            left: None,
        })
    }
}

impl Held<'_> {
    /// How many operations of a device are enqueued. Those are numbered from 1 as they are enqueued, and what is found names
    /// them so.
    pub fn enqueued(&self, device: u32) -> u32 {
        let state = self.shared.lock();
        state.engine.outstanding(Some(device)).len() as u32
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.release(self.start.as_ref(), self.left.take());
        self.shared.kick(&mut state);
    }
}

impl fmt::Debug for Held<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}

impl State {
    /// Refuses to enqueue while held work is run.
    pub(crate) fn accepts(&self) -> Status {
        if self.phase == Phase::Running {
            log::warn!("emulator: work was enqueued on a held machine that has made runs; refused");
            return Err(Code::NOT_PERMITTED);
        }
        Ok(())
    }

    /// Refuses a call that enqueues work and waits for it while nothing is done.
    pub(crate) fn works(&self, call: &str) -> Status {
        if self.phase != Phase::Free {
            log::warn!(
                "emulator: {call} would wait for device work while the machine is held; refused"
            );
            return Err(Code::NOT_PERMITTED);
        }
        Ok(())
    }
}
