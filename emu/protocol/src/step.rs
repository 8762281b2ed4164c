//! The transition relation: what each warp may do next.

use crate::explore::Kind;
use crate::memory::{Access, Place};
use crate::operation::{Operation, Transport};
use crate::program::{Program, Role};
use crate::rules::{Boundary, Rules, Scrub};
use crate::scenario::{Call, Caller, Calls, Scenario};
use crate::state::{Agent, Host, Issuer, State};

/// A scenario under rules.
#[derive(Debug)]
pub(crate) struct Model<'a> {
    pub scenario: &'a Scenario,
    pub rules: &'a Rules,
    /// `[operation][rank][CTA][role]`.
    programs: Vec<Vec<Vec<[Program; 2]>>>,
}

/// A step, where it leads, and what it breaks.
#[derive(Debug)]
pub(crate) struct Successor {
    pub action: Action,
    pub state: State,
    pub broken: Option<Kind>,
}

/// Names a step among those of one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// A call's operation is chosen.
    Choose(u8),
    Jump(u8),
    Host {
        rank: u8,
        to: Host,
    },
    /// A late access is performed.
    Perform(u8),
    Warp(Issuer, Way),
}

/// How a warp's step goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Straight,
    /// The entry line of this peer.
    Met(u8),
    GivesUp,
    SeesPoison,
}

impl<'a> Model<'a> {
    pub fn new(scenario: &'a Scenario, rules: &'a Rules) -> Self {
        scenario.check();
        let program =
            |op: &Operation, rank, cta, role| Program::new(scenario, rules, op, rank, cta, role);
        let programs = scenario.operations.iter().map(|op| {
            let of_cta = |rank, cta| Role::BOTH.map(|role| program(op, rank, cta, role));
            let of_rank = |rank| (0..op.grid.into()).map(|cta| of_cta(rank, cta)).collect();
            (0..scenario.world).map(of_rank).collect()
        });
        Self {
            programs: programs.collect(),
            scenario,
            rules,
        }
    }

    pub fn program(&self, call: Call, at: Issuer) -> &Program {
        &self.programs[usize::from(call.operation)][usize::from(at.rank)][usize::from(at.cta)]
            [usize::from(at.role)]
    }

    /// The call that this stream runs or may start.
    pub fn call(&self, s: &State, rank: usize, stream: usize) -> Option<Call> {
        let r = &s.ranks[rank];
        let position = r.streams[stream].position;
        let listed = |list: &[(u8, u8)]| {
            let &(operation, number) = list.get(usize::from(position))?;
            let ordinal = position
                .checked_rem(self.scenario.capture)
                .unwrap_or(position);
            Some(Call {
                operation,
                number,
                ordinal,
            })
        };
        match (r.host, &self.scenario.calls, &self.scenario.seam) {
            (Host::Behind, _, Some((_, lists))) if stream == 0 => listed(&lists[rank]),
            (Host::Before, Calls::Listed(lists), _) => listed(lists[rank].get(stream)?),
            (Host::Before, Calls::Any { .. }, _) if stream == 0 && position != s.chosen => {
                let operation = s.window[usize::from(position & 3)];
                Some(Call {
                    operation,
                    number: position,
                    ordinal: position,
                })
            }
            _ => None,
        }
    }

    /// Nothing runs on this rank, and nothing is left to run.
    pub fn at_rest(&self, s: &State, rank: usize) -> bool {
        (0..self.scenario.streams(rank)).all(|stream| self.call(s, rank, stream).is_none())
            && s.pending
                .iter()
                .all(|(issuer, _)| usize::from(issuer.rank) != rank)
    }

    /// Every step that can be taken. `stuck`: waits give up, which they do when nothing else is possible.
    pub fn successors(&self, s: &State, stuck: bool, out: &mut Vec<Successor>) {
        out.clear();
        if self.diagnosed(s) || self.choose(s, out) {
            return;
        }
        self.host(s, out);
        for index in 0..s.pending.len() {
            self.perform(s, index, out);
        }
        for rank in 0..self.scenario.world {
            for stream in 0..self.scenario.streams(rank) {
                let Some(call) = self.call(s, rank, stream) else {
                    continue;
                };
                for cta in 0..self.operation(call).grid {
                    for role in Role::BOTH {
                        let position = s.ranks[rank].streams[stream].position;
                        let [rank, stream, role] = [rank as u8, stream as u8, role as u8];
                        let at = Issuer {
                            rank,
                            stream,
                            position,
                            cta,
                            role,
                        };
                        let before = out.len();
                        let own = self.warp(s, call, at, stuck, out);
                        if own && self.reduces(usize::from(rank)) && out.len() > before {
                            out.drain(..before);
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Calls that overlap watch each other's counters, so their rank takes every step in every order.
    fn reduces(&self, rank: usize) -> bool {
        self.scenario.reduced && self.scenario.streams(rank) == 1
    }

    /// Where a report is all that is asked for, nothing is explored behind the first: it tells every rank, and what
    /// ranks do then is explored with [`Scenario::give_ups`].
    pub fn diagnosed(&self, s: &State) -> bool {
        self.scenario.caller == Caller::BreaksInTheEnd
            && s.ranks.iter().any(|rank| rank.reported != 0)
    }

    pub fn operation(&self, call: Call) -> &Operation {
        &self.scenario.operations[usize::from(call.operation)]
    }

    /// Performs a late access, if nothing that must be performed earlier is left.
    fn perform(&self, s: &State, index: usize, out: &mut Vec<Successor>) {
        let (issuer, access) = s.pending[index];
        let blocks = |(other, earlier): &(Issuer, Access)| {
            (*other == issuer && earlier.place == access.place)
                || (access.release && other.same_cta(&issuer))
        };
        if s.pending[..index].iter().any(blocks) {
            return;
        }
        let mut state = s.clone();
        state.pending.remove(index);
        let broken = self.access(&mut state, issuer, &access);
        out.push(Successor {
            action: Action::Perform(index as u8),
            state,
            broken,
        });
    }

    /// Does what an access does to memory.
    fn access(&self, state: &mut State, issuer: Issuer, access: &Access) -> Option<Kind> {
        if access.load {
            let row = state.load(access.place);
            return self.take(state, issuer, row, access.value);
        }
        state.store(access);
        None
    }

    /// A row has been read.
    pub fn take(&self, state: &mut State, issuer: Issuer, row: u16, expected: u16) -> Option<Kind> {
        if self.scenario.interchangeable && row != 0 {
            let stream =
                &mut state.ranks[usize::from(issuer.rank)].streams[usize::from(issuer.stream)];
            let number = ((row - 1) / 6) as u8 + 1;
            stream.wrong |= stream.got != 0 && stream.got != number;
            stream.got = number;
            return None;
        }
        if row == expected {
            return None;
        }
        let rank = &mut state.ranks[usize::from(issuer.rank)];
        let stream = &mut rank.streams[usize::from(issuer.stream)];
        if stream.position == issuer.position {
            stream.wrong = true;
        } else {
            rank.late = true;
        }
        (self.scenario.caller == Caller::Keeps).then_some(Kind::WrongRow)
    }

    /// Issues an access: performed at once, or left pending.
    pub fn issue(&self, state: &mut State, issuer: Issuer, access: Access) -> Option<Kind> {
        if self.scenario.delayed {
            state.pending.push((issuer, access));
            return None;
        }
        self.access(state, issuer, &access)
    }

    pub fn next(&self, epoch: u8, by: i16) -> u8 {
        (i16::from(epoch) + by).rem_euclid(self.scenario.lap as i16) as u8
    }

    pub fn stamp(&self, epoch: u8) -> u8 {
        (u32::from(epoch) & ((1 << self.scenario.stamp_bits) - 1)) as u8
    }

    /// The staging slot.
    pub fn slot(&self, call: Call, epoch: u8) -> u8 {
        match (self.rules.two_slots, self.rules.slot_by_epoch) {
            (false, _) => 0,
            (true, true) => epoch & 1,
            (true, false) => call.ordinal & 1,
        }
    }

    pub fn entry_slot(&self, epoch: u8) -> u8 {
        if self.rules.two_entry_slots {
            epoch & 1
        } else {
            0
        }
    }

    /// The scrub of this epoch towards `to`, if there is one.
    pub fn scrub(&self, call: Call, rank: u8, to: u8, epoch: u8) -> Option<Access> {
        let op = self.operation(call);
        let period = self.scenario.scrub_period;
        let index = epoch / period % self.scenario.capacity;
        let spared = op.transport == Transport::Packet
            && index < op.rows[usize::from(rank)][usize::from(to)]
            && self.rules.scrub != Scrub::WriterAlways;
        let ahead = self.rules.scrub == Scrub::OwnerAhead;
        if epoch % period >= 2 || (spared && !ahead) {
            return None;
        }
        let target = if ahead { self.next(epoch, 1) } else { epoch };
        let slot = self.slot(call, target);
        let place = if ahead {
            Place::Packet {
                rank,
                slot,
                source: to,
                index,
            }
        } else {
            Place::Packet {
                rank: to,
                slot,
                source: rank,
                index,
            }
        };
        let other_parity = u8::from(self.rules.scrub != Scrub::WriterOwnStamp);
        Some(store(place, 0, self.stamp(target) ^ other_parity))
    }

    /// May the last warp of a call end?
    pub fn performed(&self, s: &State, at: Issuer) -> bool {
        self.rules.boundary == Boundary::Open
            || s.pending.iter().all(|(issuer, _)| !issuer.same_call(&at))
    }

    /// What a row of this call holds.
    pub fn row(call: Call, phase: u8, source: u8) -> u16 {
        1 + (u16::from(call.number) * 2 + u16::from(phase)) * 3 + u16::from(source)
    }

    pub fn agent(s: &mut State, at: Issuer) -> &mut Agent {
        let stream = &mut s.ranks[usize::from(at.rank)].streams[usize::from(at.stream)];
        &mut stream.agents[usize::from(at.cta)][usize::from(at.role)]
    }
}

pub(crate) fn store(place: Place, value: u16, mark: u8) -> Access {
    Access {
        place,
        value,
        mark,
        load: false,
        release: false,
    }
}
