//! The steps of the model. `docs/memory-model.md` has them as pseudo code.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::head::{Head, Knowledge};
use crate::history::Message;
use crate::order::Order;
use crate::race::{Kind, Race};
use crate::rules::Rules;
use crate::scope::{Place, Scope};
use crate::state::State;
use crate::strength::{Agent, Party, morally_strong};

/// One access of a seat's thread.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Who.
    pub seat: usize,
    /// To which location.
    pub location: usize,
    /// Its order.
    pub order: Order,
    /// Its scope; `None` for weak accesses.
    pub scope: Option<Scope>,
    /// Its instruction, for races.
    pub pc: u32,
}

/// What a message gets from what came before its write.
#[derive(Debug, Default)]
struct Carried {
    heads: BTreeSet<Head>,
    chain: BTreeSet<u32>,
}

/// The model for one arrangement of threads.
#[derive(Clone, Debug)]
pub struct Model {
    places: Vec<Place>,
    pub(crate) rules: Rules,
    pub(crate) races: bool,
    pub(crate) ordered: BTreeSet<usize>,
}

impl Model {
    /// For one thread at each of `places`.
    pub fn new(places: Vec<Place>, rules: Rules) -> Self {
        Self {
            places,
            rules,
            races: false,
            ordered: BTreeSet::new(),
        }
    }

    /// Looks for races. On `ordered` locations a write must come after every earlier access, morally strong or not.
    pub fn with_races(mut self, ordered: BTreeSet<usize>) -> Self {
        self.races = true;
        self.ordered = ordered;
        self
    }

    /// The state at the start: `initial` has the value of every location.
    pub fn start(&self, initial: &[i64]) -> State {
        State::new(initial, self.places.len(), self.races)
    }

    pub(crate) fn party(&self, state: &State, seat: usize, scope: Option<Scope>) -> Party {
        Party {
            agent: Agent {
                seat: seat as u32,
                life: state.lanes[seat].life,
            },
            place: self.places[seat],
            scope,
        }
    }

    pub(crate) fn strong(&self, a: &Party, b: &Party) -> bool {
        if self.rules.scopes {
            return morally_strong(a, b, true);
        }
        a.agent == b.agent || (a.scope.is_some() && b.scope.is_some())
    }

    fn meets(&self, reader: &Party, message: &Message) -> bool {
        message.by.is_none_or(|writer| self.strong(reader, &writer))
    }

    /// The messages that a load may read, as a range of numbers.
    pub fn readable(
        &self,
        state: &State,
        seat: usize,
        location: usize,
    ) -> std::ops::RangeInclusive<u32> {
        let oldest = state.lanes[seat].knows.view.get(location);
        oldest..=state.memory[location].newest()
    }

    /// Loads message `number`, one of [`Model::readable`]; the value.
    pub fn load(
        &self,
        state: &mut State,
        access: &Access,
        number: u32,
        races: &mut BTreeSet<Race>,
    ) -> i64 {
        self.note(state, access, Kind::Read, races);
        let message = state.memory[access.location].get(number).clone();
        self.observe(state, access, &message, number, true);
        message.value
    }

    /// What reading a message does to the reader.
    fn observe(
        &self,
        state: &mut State,
        access: &Access,
        message: &Message,
        number: u32,
        keeps: bool,
    ) {
        let reader = self.party(state, access.seat, access.scope);
        if self.meets(&reader, message) {
            let lane = state.lane_mut(access.seat);
            // A racy read gives its reader no knowledge, not even that older messages are gone.
            if self.rules.coherence {
                lane.knows.view.raise(access.location, number);
            }
            if keeps && reader.scope.is_some() {
                let heads = message.heads.iter().cloned();
                lane.pending
                    .extend(heads.map(|head| (access.location, head)));
            }
        }
        if keeps && access.order.acquires() {
            self.take(state, access.seat, &reader, Some(access.location));
        }
        if keeps && self.meets(&reader, message) {
            self.remember(state, access, &message.chain);
        }
    }

    /// The acquire side of an operation: joins pending heads that are morally strong with it, of one location or all.
    pub(crate) fn take(
        &self,
        state: &mut State,
        seat: usize,
        last: &Party,
        location: Option<usize>,
    ) {
        let lane = &state.lanes[seat];
        let mut learnt = Knowledge::default();
        for (at, head) in &lane.pending {
            if location.is_none_or(|only| only == *at) && self.strong(&head.first, last) {
                learnt.join(&head.knows);
            }
        }
        state.lane_mut(seat).knows.join(&learnt);
    }

    /// What a write of a thread carries before its own release.
    fn carried(&self, state: &State, access: &Access) -> Carried {
        let mut carried = Carried::default();
        if access.scope.is_some() {
            let lane = &state.lanes[access.seat];
            let here = (access.location, Scope::Cta)..=(access.location, Scope::Sys);
            let releases = lane.releases.range(here).map(|(_, head)| head);
            carried.heads = releases.chain(lane.fences.values()).cloned().collect();
        }
        carried
    }

    fn append(&self, state: &mut State, access: &Access, value: i64, carried: Carried) {
        let Carried {
            mut heads,
            mut chain,
        } = carried;
        let writer = self.party(state, access.seat, access.scope);
        let number = state.memory[access.location].newest() + 1;
        let lane = state.lane_mut(access.seat);
        lane.knows.view.raise(access.location, number);
        if let (true, Some(scope)) = (access.order.releases(), access.scope) {
            let head = Head {
                first: writer,
                knows: Rc::new(lane.knows.clone()),
            };
            lane.releases.insert((access.location, scope), head.clone());
            heads.insert(head);
            self.tick(state, access.seat);
        }
        if self.races {
            chain.insert(number);
        }
        let message = Message {
            value,
            by: Some(writer),
            chain,
            heads,
        };
        Rc::make_mut(&mut state.memory[access.location]).push(message);
    }

    /// Stores a value.
    pub fn store(
        &self,
        state: &mut State,
        access: &Access,
        value: i64,
        races: &mut BTreeSet<Race>,
    ) {
        self.note(state, access, Kind::Write, races);
        let carried = self.carried(state, access);
        self.append(state, access, value, carried);
    }

    /// The messages that a read-modify-write may read: those after which no morally strong write is. (An update may be lost
    /// to others only.)
    pub fn updatable(&self, state: &State, access: &Access) -> Vec<u32> {
        let me = self.party(state, access.seat, access.scope);
        let history = &state.memory[access.location];
        self.readable(state, access.seat, access.location)
            .filter(|&number| {
                !history
                    .after(number)
                    .iter()
                    .any(|later| self.meets(&me, later))
            })
            .collect()
    }

    /// A read-modify-write of message `number`, one of [`Model::updatable`]. `new` gives what to write, if anything, for what
    /// was read; `returns` is false for `red`, which is a link of a chain and never acquires. The value that was read.
    pub fn update(
        &self,
        state: &mut State,
        access: &Access,
        number: u32,
        returns: bool,
        new: impl FnOnce(i64) -> Option<i64>,
        races: &mut BTreeSet<Race>,
    ) -> i64 {
        let message = state.memory[access.location].get(number).clone();
        let written = new(message.value);
        // A compare-and-swap that fails has read only.
        let kind = written.map_or(Kind::Read, |_| Kind::ReadWrite);
        self.note(state, access, kind, races);
        let link = self.meets(&self.party(state, access.seat, access.scope), &message);
        self.observe(state, access, &message, number, returns);
        if let Some(value) = written {
            let mut carried = self.carried(state, access);
            if link && self.rules.chains {
                carried.heads.extend(message.heads);
                carried.chain = message.chain;
            }
            self.append(state, access, value, carried);
        }
        message.value
    }

    /// `fence`, with its order and whether it is `.sc`.
    pub fn fence(&self, state: &mut State, seat: usize, order: Order, sc: bool, scope: Scope) {
        if !self.rules.fences {
            return;
        }
        let me = self.party(state, seat, Some(scope));
        if order.acquires() {
            self.take(state, seat, &me, None);
        }
        if sc && self.rules.sc_order {
            let earlier = state
                .sc
                .values()
                .filter(|head| self.strong(&head.first, &me));
            let mut learnt = Knowledge::default();
            earlier.for_each(|head| learnt.join(&head.knows));
            state.lane_mut(seat).knows.join(&learnt);
        }
        let head = Head {
            first: me,
            knows: Rc::new(state.lanes[seat].knows.clone()),
        };
        if sc {
            Rc::make_mut(&mut state.sc).insert((me.agent, scope), head.clone());
        }
        if order.releases() {
            state.lane_mut(seat).fences.insert(scope, head);
        }
        self.tick(state, seat);
    }
}
