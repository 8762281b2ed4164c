//! Breadth-first exploration, so that the run to a failure is a shortest one.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use crate::rules::Rules;
use crate::scenario::Scenario;
use crate::state::{Cause, State};
use crate::step::{Action, Model, Successor};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A call took rows of another call, though its caller kept all assumptions.
    WrongRow,
    /// A call ended without its rows, and nothing was reported.
    Silent,
    /// Ranks wait for ever.
    Hang,
    /// A report that nothing calls for.
    FalseReport,
    /// A call succeeded although another rank had failed an earlier one.
    StaleSuccess,
    /// A channel's epoch was lowered: after a reset it might be one that flags have seen.
    EpochFell,
}

/// A failure and a shortest run to it.
#[derive(Debug, Clone)]
pub struct Failure {
    /// What is wrong.
    pub kind: Kind,
    /// The steps, in words.
    pub trace: Vec<String>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// Every cause that some rank reported.
    pub causes: Vec<Cause>,
    /// Ranks that neither reported anything nor were told of a failure.
    pub unaware: usize,
    /// Some call ended without its rows.
    pub wrong: bool,
    /// Some call ended without its rows before its rank reported anything.
    pub late: bool,
}

/// What an exploration found.
#[derive(Debug)]
pub struct Exploration {
    /// States visited.
    pub states: usize,
    /// The first failure, if any; then not all states were visited.
    pub failure: Option<Failure>,
    /// The ends, with how many states are such.
    pub ends: BTreeMap<End, usize>,
}

impl Exploration {
    /// The kind of the failure and the length of the run to it.
    pub fn found(&self) -> Option<(Kind, usize)> {
        self.failure
            .as_ref()
            .map(|failure| (failure.kind, failure.trace.len()))
    }
}

/// A hash that is one already.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

/// Every state seen, with the one it was first reached from and which of that one's successors it is.
type Seen = HashMap<u64, (u64, u32), BuildHasherDefault<Same>>;

/// Visits every state that `scenario` reaches under `rules`, or all up to the first failure.
///
/// # Panics
///
/// When there are more than `limit` states.
pub fn explore(scenario: &Scenario, rules: &Rules, limit: usize) -> Exploration {
    let model = Model::new(scenario, rules);
    let world = scenario.world;
    let first = model.initial();
    let start = first.fingerprint(world);
    let mut seen = Seen::default();
    seen.insert(start, (start, 0));
    let mut ends = BTreeMap::new();
    let (mut layer, mut next, mut out) = (vec![(start, first)], Vec::new(), Vec::new());
    while !layer.is_empty() {
        for (from, state) in layer.drain(..) {
            let broken = |kind, last| {
                let trace = retrace(&model, &seen, start, from, last);
                Some(Failure { kind, trace })
            };
            if !successors(&model, &state, &mut out) {
                if let Some(kind) = model.at_the_end(&state) {
                    return Exploration {
                        states: seen.len(),
                        failure: broken(kind, None),
                        ends,
                    };
                }
                *ends.entry(end(&state, world)).or_default() += 1;
            }
            if let Some((index, kind)) = out.iter().zip(0..).find_map(|(s, i)| Some((i, s.broken?)))
            {
                let failure = broken(kind, Some(index));
                return Exploration {
                    states: seen.len(),
                    failure,
                    ends,
                };
            }
            for (successor, index) in out.drain(..).zip(0..) {
                let print = successor.state.fingerprint(world);
                if let Entry::Vacant(place) = seen.entry(print) {
                    place.insert((from, index));
                    next.push((print, successor.state));
                }
            }
        }
        assert!(seen.len() <= limit, "more than {limit} states");
        std::mem::swap(&mut layer, &mut next);
    }
    Exploration {
        states: seen.len(),
        failure: None,
        ends,
    }
}

/// False: nothing can move.
fn successors(model: &Model<'_>, state: &State, out: &mut Vec<Successor>) -> bool {
    model.successors(state, false, out);
    if out.is_empty() && model.scenario.bounded && !model.diagnosed(state) {
        model.successors(state, true, out);
    }
    !out.is_empty()
}

fn end(state: &State, world: usize) -> End {
    let ranks = &state.ranks[..world];
    let reported = ranks.iter().fold(0, |all, rank| all | rank.reported);
    End {
        causes: Cause::ALL
            .into_iter()
            .filter(|cause| reported & cause.bit() != 0)
            .collect(),
        unaware: ranks
            .iter()
            .filter(|rank| rank.reported == 0 && rank.poison == 0)
            .count(),
        wrong: ranks.iter().any(|rank| rank.wrong),
        late: ranks.iter().any(|rank| rank.late),
    }
}

/// The run to `state`, and one step more.
fn retrace(
    model: &Model<'_>,
    seen: &Seen,
    start: u64,
    state: u64,
    last: Option<u32>,
) -> Vec<String> {
    let mut indices: Vec<u32> = last.into_iter().collect();
    let mut at = state;
    while at != start {
        let (from, index) = seen[&at];
        indices.push(index);
        at = from;
    }
    let (mut trace, mut state, mut out) = (Vec::new(), model.initial(), Vec::new());
    for &index in indices.iter().rev() {
        successors(model, &state, &mut out);
        let step = out.swap_remove(index as usize);
        let action: Action = step.action;
        trace.push(model.describe(&state, action));
        state = step.state;
    }
    trace
}
