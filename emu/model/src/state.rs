//! The state of the model: messages, what every seat knows, what was accessed.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::head::{Head, Knowledge};
use crate::history::History;
use crate::race::Seen;
use crate::scope::Scope;
use crate::strength::Agent;

/// What one seat's thread carries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Lane {
    /// Kernels that ran in this seat before.
    pub(crate) life: u32,
    pub(crate) knows: Knowledge,
    /// Heads of messages that strong reads met, by location: an acquire or a fence may still take them.
    pub(crate) pending: BTreeSet<(usize, Head)>,
    /// The latest fence of each scope: begins a release pattern of every later strong write.
    pub(crate) fences: BTreeMap<Scope, Head>,
    /// The latest release of each location and scope: begins one of every later strong write there.
    pub(crate) releases: BTreeMap<(usize, Scope), Head>,
}

/// A state of the [`Model`](crate::Model). Clones share what does not change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(crate) memory: Vec<Rc<History>>,
    pub(crate) lanes: Vec<Rc<Lane>>,
    /// The latest `fence.sc` of each thread and scope.
    pub(crate) sc: Rc<BTreeMap<(Agent, Scope), Head>>,
    /// Accesses by location, if races are looked for.
    pub(crate) seen: Vec<Rc<BTreeSet<Seen>>>,
}

impl State {
    /// The state at the start: `initial` has the value of every location.
    pub(crate) fn new(initial: &[i64], seats: usize, races: bool) -> Self {
        let lane = |seat| {
            let mut lane = Lane::default();
            // Clocks start at 1: nobody knows anything about anybody.
            if races {
                lane.knows.clock.raise(seat, 1);
            }
            Rc::new(lane)
        };
        let seen = if races { initial.len() } else { 0 };
        Self {
            memory: initial
                .iter()
                .map(|&value| Rc::new(History::new(value)))
                .collect(),
            lanes: (0..seats).map(lane).collect(),
            sc: Rc::default(),
            seen: vec![Rc::default(); seen],
        }
    }

    /// The value that a location has when all is over: the newest in coherence order.
    pub fn last_value(&self, location: usize) -> i64 {
        let history = &self.memory[location];
        history.get(history.newest()).value
    }

    pub(crate) fn lane_mut(&mut self, seat: usize) -> &mut Lane {
        Rc::make_mut(&mut self.lanes[seat])
    }

    /// Forgets what cannot matter any more, so that states that differ only in it become one: messages that no thread
    /// can read, accesses that come before all that is still to be done, all that ended threads know.
    pub(crate) fn forget(&mut self, lives: impl Fn(usize) -> bool) {
        let seats = self.lanes.len();
        for seat in (0..seats).filter(|&seat| !lives(seat)) {
            if *self.lanes[seat] != Lane::default() {
                self.lanes[seat] = Rc::default();
            }
        }
        let living: Vec<usize> = (0..seats).filter(|&seat| lives(seat)).collect();
        for (location, history) in self.memory.iter_mut().enumerate() {
            let oldest = living
                .iter()
                .map(|&seat| self.lanes[seat].knows.view.get(location))
                .min()
                .unwrap_or(u32::MAX);
            if history.can_forget(oldest) {
                Rc::make_mut(history).forget(oldest);
            }
        }
        for (location, seen) in self.seen.iter_mut().enumerate() {
            let matters = |seen: &Seen| {
                let mut knows = living.iter().map(|&seat| &self.lanes[seat].knows);
                !knows.all(|knows| seen.comes_before(knows, location))
            };
            if !seen.iter().all(matters) {
                Rc::make_mut(seen).retain(matters);
            }
        }
        for seat in living {
            let seen = &self.seen;
            let clock = self.lanes[seat].knows.clock.clone();
            let matters = |&(location, number): &(usize, u32)| {
                seen[location].iter().any(|seen| {
                    let of = seen.by.agent.seat as usize;
                    seen.wrote == Some(number) && !clock.covers(of, seen.time)
                })
            };
            if !self.lanes[seat].knows.observed.iter().all(matters) {
                let lane = Rc::make_mut(&mut self.lanes[seat]);
                lane.knows.observed.retain(matters);
            }
        }
    }
}
