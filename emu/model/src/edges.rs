//! Edges between threads that are not memory: barriers, and what the API orders.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::head::{Head, Knowledge};
use crate::model::Model;
use crate::scope::Scope;
use crate::state::{Lane, State};

impl Model {
    /// What a seat's thread knows, to be handed over an edge; what it does next is not part of it.
    pub fn publish(&self, state: &mut State, seat: usize) -> Knowledge {
        let knows = state.lanes[seat].knows.clone();
        self.tick(state, seat);
        knows
    }

    /// The other end of an edge: of a barrier, or of the API (launch, event, stream order, synchronisation with the host).
    pub fn learn(&self, state: &mut State, seat: usize, what: &Knowledge) {
        state.lane_mut(seat).knows.join(what);
    }

    /// A barrier of a block: what `arrived` knew, and what those who waited know, is known to those who waited.
    pub fn barrier(&self, state: &mut State, arrived: &Knowledge, waited: &[usize]) {
        if self.rules.barriers {
            self.join(state, arrived.clone(), waited);
        }
    }

    fn join(&self, state: &mut State, mut all: Knowledge, seats: &[usize]) {
        for &seat in seats {
            all.join(&self.publish(state, seat));
        }
        for &seat in seats {
            self.learn(state, seat, &all);
        }
    }

    /// The end of a kernel and the start of the next one of its stream, in `seats`: other threads, ordered after all of the
    /// first. Under the assumption each starts as after a release fence of system scope: whoever acquires what it writes
    /// comes after all that was retired. Polls get nothing from it: a relaxed one ends no acquire pattern at the boundary.
    pub fn next_kernel(&self, state: &mut State, seats: &[usize]) {
        self.join(state, Knowledge::default(), seats);
        for &seat in seats {
            let lane = &state.lanes[seat];
            let next = Lane {
                life: lane.life + 1,
                knows: lane.knows.clone(),
                pending: BTreeSet::new(),
                fences: BTreeMap::new(),
                releases: BTreeMap::new(),
            };
            state.lanes[seat] = Rc::new(next);
            if self.rules.kernel_boundary {
                let head = Head {
                    first: self.party(state, seat, Some(Scope::Sys)),
                    knows: Rc::new(state.lanes[seat].knows.clone()),
                };
                state.lane_mut(seat).fences.insert(Scope::Sys, head);
                self.tick(state, seat);
            }
        }
    }
}
