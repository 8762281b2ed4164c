//! Accesses as they are made: what is remembered of them, and which of them race.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::model::{Access, Model};
use crate::race::{Kind, Race, Seen, Site};
use crate::state::State;

impl Model {
    /// Begins a new time of a seat: what follows is not known to whoever takes what was published.
    pub(crate) fn tick(&self, state: &mut State, seat: usize) {
        if self.races {
            let clock = &mut state.lane_mut(seat).knows.clock;
            clock.raise(seat, clock.get(seat) + 1);
        }
    }

    /// Remembers that a read observed these messages, unless all before them is known anyway.
    pub(crate) fn remember(&self, state: &mut State, access: &Access, messages: &BTreeSet<u32>) {
        let location = access.location;
        for &number in messages {
            let is_it = |seen: &&Seen| seen.wrote == Some(number);
            let Some(seen) = state.seen[location].iter().find(is_it) else {
                continue;
            };
            if !seen.comes_before(&state.lanes[access.seat].knows, location) {
                let lane = state.lane_mut(access.seat);
                lane.knows.observed.insert((location, number));
            }
        }
    }

    /// Compares an access with earlier ones, and remembers it.
    pub(crate) fn note(
        &self,
        state: &mut State,
        access: &Access,
        kind: Kind,
        races: &mut BTreeSet<Race>,
    ) {
        if !self.races {
            return;
        }
        let lane = &state.lanes[access.seat];
        let now = Seen {
            by: self.party(state, access.seat, access.scope),
            kind,
            pc: access.pc,
            time: lane.knows.clock.get(access.seat),
            wrote: (kind != Kind::Read).then(|| state.memory[access.location].newest() + 1),
        };
        let ordered = self.ordered.contains(&access.location);
        for seen in state.seen[access.location].iter() {
            if seen.comes_before(&lane.knows, access.location) {
                continue;
            }
            let excused = self.strong(&seen.by, &now.by);
            if let Some(what) = seen.conflict(kind, excused, ordered) {
                races.insert(Race {
                    kind: what,
                    location: access.location,
                    earlier: Site {
                        seat: seen.by.agent.seat,
                        pc: seen.pc,
                    },
                    later: Site {
                        seat: access.seat as u32,
                        pc: access.pc,
                    },
                });
            }
        }
        let seen = Rc::make_mut(&mut state.seen[access.location]);
        seen.retain(|old| !old.is_superseded_by(&now));
        seen.insert(now);
    }
}
