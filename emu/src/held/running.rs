//! The machine while runs are made of it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, MutexGuard};

use crate::code::Code;
use crate::machine::State;
use crate::operations::{OpId, Work};
use crate::runner::Shared;
use crate::slots;

use super::changed::Changed;
use super::choose::Chooser;
use super::detector::Detector;
use super::drive::Stop;
use super::explore::Looked;
use super::floor::Floor;
use super::name::Names;
use super::places::Places;
use super::plan::Plan;
use super::random::Random;
use super::report::{End, Run};
use super::snapshot::Snapshot;
use super::stage::{Did, Stage};
use super::watch::Watch;
use super::{Held, HeldError, Phase};

/// Drawn apart from the choices, so that plans with and without drawn dispatch choose alike.
const DISPATCH: u64 = 0x6469_7370_6174_6368;

/// What all runs of a held phase start from.
pub(super) struct Start {
    snapshot: Snapshot,
    places: Arc<Places>,
    changed: Arc<Changed>,
    names: Arc<Names>,
}

/// How the last run left the operations.
pub(super) struct Left {
    /// Operations that did not complete.
    ops: BTreeSet<OpId>,
    /// How the run ended.
    end: End,
}

/// The machine's lock while runs are made.
pub(super) struct Running<'a> {
    /// The machine.
    shared: &'a Shared,
    start: &'a Start,
    left: &'a mut Option<Left>,
    state: Option<MutexGuard<'a, State>>,
}

impl<'a> Running<'a> {
    /// Takes the lock, and with the first run of a held phase the state that all runs start from.
    pub(super) fn begin(held: &'a mut Held<'_>) -> Result<Running<'a>, HeldError> {
        let mut state = held.shared.lock();
        state.phase = Phase::Running;
        let start = held.start.get_or_insert_with(|| {
            let places = Arc::new(Places::of(&state.memory));
            let changed = Arc::new(Changed::new(places.pages()));
            let snapshot = Snapshot::take(&state, &places);
            let names = Arc::new(Names::of(&snapshot.ops));
            Start {
                snapshot,
                places,
                changed,
                names,
            }
        });
        Ok(Running {
            shared: held.shared,
            start,
            left: &mut held.left,
            state: Some(state),
        })
    }

    /// The machine's state.
    pub(super) fn state(&mut self) -> &mut State {
        self.state.get_or_insert_with(|| self.shared.lock())
    }

    /// Lets others have the lock, until it is needed again.
    pub(super) fn let_go(&mut self) {
        self.state = None;
    }

    /// Ranges of addresses as ranges of words at home addresses.
    pub(super) fn words(&self, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut hint = 0;
        let words = |range: &Range<u64>| {
            let first = self.start.places.home(range.start, &mut hint);
            first / 8..(first + (range.end - range.start)).div_ceil(8)
        };
        ranges.iter().map(words).collect()
    }

    /// A run for who checks its results.
    pub(super) fn look<'b>(&self, run: &'b Run) -> Looked<'b>
    where
        'a: 'b,
    {
        Looked {
            shared: self.shared,
            run,
        }
    }

    /// The beginning of a run; memory is put back.
    pub(super) fn stage(
        &mut self,
        plan: &Plan,
        draw: Option<Random>,
        explored: bool,
    ) -> Result<Stage, HeldError> {
        let start = self.start;
        let state = self.state();
        if !start.snapshot.fits(state) {
            return Err(HeldError::Changed);
        }
        start.snapshot.restore(state, &start.changed);
        let detector = Detector::of(plan, state, &start.places);
        let watch = Watch::new(
            detector,
            start.places.clone(),
            start.changed.clone(),
            explored,
        );
        let floor = Floor::new(&state.profile, state.devices.len(), plan.residency);
        let (ops, names) = (start.snapshot.ops.clone(), start.names.clone());
        Ok(Stage::new(ops, names, floor, watch, draw, plan))
    }

    /// Makes a run. `length` is about how many instructions it takes.
    pub(super) fn run(&mut self, plan: &Plan, seed: u64, length: u64) -> Result<Run, HeldError> {
        let draw = plan.draws().then(|| Random::new(seed ^ DISPATCH));
        let mut stage = self.stage(plan, draw, false)?;
        let mut chooser = Chooser::new(plan.policy, seed, length);
        let end = loop {
            match stage.drive(&mut chooser, plan, self.state()) {
                Stop::End(end) => break end,
                Stop::Call(callback, op) => {
                    self.let_go();
                    slots::call_back(callback);
                    if let Some(Did::Fault(words)) = stage.returned(op, self.state()) {
                        break End::Fault(words);
                    }
                }
            }
        };
        self.left(&stage, &end);
        Ok(stage.report(seed, end))
    }

    /// Remembers how a run left the operations.
    pub(super) fn left(&mut self, stage: &Stage, end: &End) {
        *self.left = Some(Left {
            ops: stage.operations().iter().map(|(id, _)| id).collect(),
            end: end.clone(),
        });
    }
}

impl State {
    /// Lets a held machine go on as the last run left it.
    pub(super) fn release(&mut self, start: Option<&Start>, left: Option<Left>) {
        self.phase = Phase::Free;
        let (Some(start), Some(left)) = (start, left) else {
            return;
        };
        if left.end != End::Complete {
            self.faults.push(left.end.to_string());
        }
        for (id, op) in start.snapshot.ops.iter() {
            match op.work {
                // The machine has yet to give the graph or the memory up.
                Work::Retire(_) | Work::Free(_) => {}
                _ if left.ops.contains(&id) => {
                    let error = &mut self.devices[op.device as usize].error;
                    error.get_or_insert(Code::LAUNCH_TIMEOUT);
                    self.engine.abort(op.device);
                }
                _ => self.engine.complete(id),
            }
        }
    }
}
