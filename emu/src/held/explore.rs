//! Many runs of the same held work.

use std::collections::BTreeSet;

use slabfence_emu_check::Checker;

use crate::host;
use crate::runner::Shared;

use super::plan::{Plan, Policy};
use super::report::{End, Run};
use super::running::Running;
use super::stage::{BEGINNING, Stage};
use super::{Held, HeldError};

/// What came of many runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Exploration {
    /// Runs that were made.
    pub runs: u64,
    /// How many readers of words the detector had no room to remember, in all runs.
    pub forgotten: u64,
    /// How many warps there were at once beyond those that the detector tells apart, in all runs.
    pub crowded: u64,
    /// How many of them differ in the order of strong accesses and barriers.
    pub distinct: u64,
    /// The first run with a finding, a fault or no end. It is the last one that was made, and memory is as it left it.
    pub bad: Option<Run>,
}

/// A run that is over, for who checks its results.
pub struct Looked<'a> {
    pub(super) shared: &'a Shared,
    pub(super) run: &'a Run,
}

impl Looked<'_> {
    /// The run.
    pub fn run(&self) -> &Run {
        self.run
    }

    /// Reads memory of the machine as the run left it; `false`, and nothing is read, if not all of it exists.
    pub fn read(&self, address: u64, to: &mut [u8]) -> bool {
        let state = self.shared.lock();
        let len = to.len() as u64;
        let exists = state.memory.map.find(address).is_some_and(|range| {
            let offset = address - range.base;
            len <= range.len - offset
        });
        if exists {
            to.copy_from_slice(&host::snapshot(address, len));
        }
        exists
    }
}

impl std::fmt::Debug for Looked<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Looked").field(&self.run).finish()
    }
}

impl Held<'_> {
    /// Runs what was enqueued once, by a seed. Memory is as the run leaves it; the work is done.
    pub fn run(&mut self, plan: &Plan, seed: u64) -> Result<Run, HeldError> {
        let mut complete = None;
        let found = self.explore(plan, [seed], |looked| {
            complete = Some(looked.run.clone());
            Ok(())
        })?;
        found.bad.or(complete).ok_or(HeldError::Changed)
    }

    /// Runs what was enqueued once for every seed, each time from the state that it was enqueued in. `check` is called
    /// after every run that completed, and says what is wrong with the results; it may look at memory, and must
    /// not call the driver for anything that enqueues, allocates or frees. Stops at the first run with a finding, a fault
    /// or no end. Explorations can follow one another: each starts from the same state.
    ///
    /// Host functions are called in every run, on this thread.
    pub fn explore(
        &mut self,
        plan: &Plan,
        seeds: impl IntoIterator<Item = u64>,
        mut check: impl FnMut(&Looked<'_>) -> Result<(), String>,
    ) -> Result<Exploration, HeldError> {
        let mut running = Running::begin(self)?;
        let mut found = Exploration {
            runs: 0,
            distinct: 0,
            forgotten: 0,
            crowded: 0,
            bad: None,
        };
        let mut traces = BTreeSet::new();
        let mut length = None;
        for seed in seeds {
            if let Policy::Priorities { .. } = plan.policy.of(seed)
                && length.is_none()
            {
                let even = Plan {
                    policy: Policy::RoundRobin,
                    detect: false,
                    ..plan.clone()
                };
                length = Some(running.run(&even, seed, 0)?.executed);
            }
            let mut run = running.run(plan, seed, length.unwrap_or(0))?;
            found.runs += 1;
            found.forgotten += run.forgotten;
            found.crowded += run.crowded;
            traces.insert(run.trace);
            if run.end == End::Complete {
                running.let_go();
                run.wrong = check(&running.look(&run)).err();
            }
            if !run.is_clean() {
                found.bad = Some(run);
                break;
            }
        }
        found.distinct = traces.len() as u64;
        Ok(found)
    }
}

impl Stage {
    /// What came of a run.
    pub(super) fn report(&mut self, seed: u64, end: End) -> Run {
        let checker = self.watch.detector.0.as_mut();
        debug_assert!(
            end != End::Complete || checker.as_ref().is_none_or(|checker| checker.is_idle()),
            "an operation is still to be followed by others"
        );
        let ended = |checker: &mut Box<Checker>| {
            let (forgotten, crowded) = (checker.forgotten(), checker.crowded());
            (checker.finish(), forgotten, crowded)
        };
        let (mut findings, forgotten, crowded) = checker.map_or_else(Default::default, ended);
        let fault = self.finding.take();
        let fault_is_found = fault.is_some();
        findings.extend(fault);
        Run {
            fault_is_found,
            seed,
            trace: self.watch.trace,
            visible: self.watch.visible,
            executed: self.executed,
            elapsed: self.now - BEGINNING,
            end,
            findings,
            forgotten,
            crowded,
            wrong: None,
        }
    }
}
