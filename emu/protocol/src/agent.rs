//! One warp's steps.

use crate::explore::Kind;
use crate::memory::{Access, Place};
use crate::operation::Transport;
use crate::program::{Role, Step};
use crate::rules::{EpochRule, FlagOrder, Guard};
use crate::scenario::{Call, Caller, Grain};
use crate::state::{Agent, Cause, Host, Issuer, State};
use crate::step::{Action, Model, Successor, Way, store};

impl Model<'_> {
    /// Adds what this warp may do next. True: a step that touches nothing but the rank's own counters.
    pub fn warp(
        &self,
        s: &State,
        call: Call,
        at: Issuer,
        stuck: bool,
        out: &mut Vec<Successor>,
    ) -> bool {
        let agent = s.ranks[usize::from(at.rank)].streams[usize::from(at.stream)].agents
            [usize::from(at.cta)][usize::from(at.role)];
        if agent.at == Agent::DONE {
            return false;
        }
        let program = self.program(call, at);
        let step = program.steps[usize::from(agent.at)];
        // Poison is other ranks' to write, and in the larger steps read in the first. Where exploration ends with the
        // first report, there is none.
        let alone =
            !self.scenario.faults_expected() || self.scenario.caller == Caller::BreaksInTheEnd;
        let unseen = self.unseen(agent, at, step);
        let own = match step {
            Step::ReadPoison => alone,
            Step::ReadEpoch => alone || self.scenario.grain == Grain::Access,
            Step::ReadStarted | Step::ReadRetired | Step::Barrier | Step::Retire => true,
            Step::Arrive => unseen.is_empty(),
            Step::ZeroTicket | Step::CountStarted | Step::Advance => true,
            _ => false,
        };
        for peer in unseen {
            if let Some(state) = self.look_early(s, call, at, agent, peer) {
                let action = Action::Warp(at, Way::Met(peer));
                let broken = None;
                out.push(Successor {
                    action,
                    state,
                    broken,
                });
            }
        }
        match step {
            Step::Meet | Step::Await { .. } | Step::AwaitPacket { .. } => {
                self.wait(s, call, at, agent, step, stuck, out);
            }
            _ if self.blocked(s, call, at, step) => {}
            _ => {
                let mut state = s.clone();
                let mut broken = self.straight(&mut state, call, at, step);
                if self.scenario.grain == Grain::Cta && step == Step::ReadEpoch {
                    let worker = Issuer {
                        role: Role::Worker as u8,
                        ..at
                    };
                    while Self::agent(&mut state, worker).at < self.begun() {
                        let next = program.steps[usize::from(Self::agent(&mut state, worker).at)];
                        self.straight(&mut state, call, worker, next);
                    }
                }
                let mut last = step;
                while self.scenario.grain >= Grain::Warp && broken.is_none() {
                    let next = program
                        .steps
                        .get(usize::from(Self::agent(&mut state, at).at));
                    let Some(&next) = next.filter(|next| last.joins(**next)) else {
                        break;
                    };
                    if self.blocked(&state, call, at, next) {
                        break;
                    }
                    broken = self.straight(&mut state, call, at, next);
                    last = next;
                }
                out.push(Successor {
                    action: Action::Warp(at, Way::Straight),
                    state,
                    broken,
                });
            }
        }
        own
    }

    /// Steps that every warp begins with.
    fn begun(&self) -> u8 {
        3 + u8::from(self.rules.poison_at_start)
    }

    /// Steps that are no waits, but need another warp or an earlier access.
    fn blocked(&self, s: &State, call: Call, at: Issuer, step: Step) -> bool {
        let agents = &s.ranks[usize::from(at.rank)].streams[usize::from(at.stream)].agents;
        match step {
            // One step of both warps, where steps are coarse.
            Step::ReadEpoch => self.scenario.grain == Grain::Cta && at.role == Role::Worker as u8,
            // Both warps pass in one step, which is the control warp's.
            Step::Barrier => {
                let worker = Issuer {
                    role: Role::Worker as u8,
                    ..at
                };
                at.role == Role::Worker as u8
                    || agents[usize::from(at.cta)][Role::Worker as usize].at
                        != self.program(call, worker).barrier
            }
            // Made of rows that must have been loaded.
            Step::Stage { phase: 1, .. } => s
                .pending
                .iter()
                .any(|(issuer, access)| access.load && issuer.same_cta(&at)),
            Step::Retire => {
                let grid = usize::from(self.operation(call).grid);
                let running = agents[..grid]
                    .iter()
                    .flatten()
                    .filter(|agent| agent.at != Agent::DONE);
                running.count() == 1 && !self.performed(s, at)
            }
            _ => false,
        }
    }

    fn straight(&self, s: &mut State, call: Call, at: Issuer, step: Step) -> Option<Kind> {
        let (r, cta) = (usize::from(at.rank), usize::from(at.cta));
        let agent = *Self::agent(s, at);
        let slot = self.slot(call, agent.epoch);
        let stage = |phase| {
            if self.rules.staging_each_phase {
                phase
            } else {
                0
            }
        };
        let row = |phase, source| Self::row(call, phase, source);
        let mut broken = None;
        match step {
            Step::ReadEpoch => {
                let rank = &s.ranks[r];
                let each = self.rules.epoch == EpochRule::EachCta;
                let epoch = if each {
                    rank.cta_epoch[cta]
                } else {
                    rank.epoch
                };
                Self::agent(s, at).epoch = epoch;
            }
            Step::ReadStarted => {
                let rank = &s.ranks[r];
                let (seen, named) = (rank.started, rank.started_epoch);
                let named_by_last = self.rules.epoch == EpochRule::LastArrival;
                let agent = Self::agent(s, at);
                agent.seen = seen;
                if self.rules.started_named && named_by_last && named != agent.epoch {
                    agent.cause = Cause::Overlap.bit();
                }
            }
            Step::ReadRetired => {
                let retired = s.ranks[r].retired;
                let overlap = match self.rules.guard {
                    Guard::Below => retired < agent.seen,
                    Guard::Differs => retired != agent.seen,
                    Guard::Off => false,
                };
                if overlap {
                    Self::agent(s, at).cause = Cause::Overlap.bit();
                }
            }
            Step::ReadPoison => {
                if s.ranks[r].poison != 0 {
                    Self::agent(s, at).cause = Cause::Skipped.bit();
                }
            }
            Step::EnterEpoch { to } | Step::EnterCheck { to } => {
                let (rank, slot, source) = (to, self.entry_slot(agent.epoch), at.rank);
                let place = match step {
                    Step::EnterEpoch { .. } => Place::EntryEpoch { rank, slot, source },
                    _ => Place::EntryCheck { rank, slot, source },
                };
                let access = store(place, agent.epoch.into(), self.operation(call).tag);
                broken = self.issue(s, at, access);
            }
            Step::Stage {
                phase,
                to,
                row: index,
            } => {
                let (value, phase) = (row(phase, at.rank), stage(phase));
                let place = match self.operation(call).transport {
                    Transport::Pull => {
                        let part = self.operation(call).part(usize::from(to)) as u8;
                        Place::Outbox {
                            rank: at.rank,
                            slot,
                            phase,
                            part,
                            row: index,
                        }
                    }
                    _ => Place::Inbox {
                        rank: to,
                        slot,
                        phase,
                        source: at.rank,
                        row: index,
                    },
                };
                broken = self.issue(s, at, store(place, value, 0));
            }
            Step::StagePacket { to, row: index } => {
                let place = Place::Packet {
                    rank: to,
                    slot,
                    source: at.rank,
                    index,
                };
                broken = self.issue(
                    s,
                    at,
                    store(place, row(0, at.rank), self.stamp(agent.epoch)),
                );
            }
            Step::Scrub { to } => {
                if let Some(access) = self.scrub(call, at.rank, to, agent.epoch) {
                    broken = self.issue(s, at, access);
                }
            }
            Step::Barrier => {
                self.barrier(s, call, at);
                return None;
            }
            Step::Arrive => self.arrive(s, call, at),
            Step::ZeroTicket => (s.ranks[r].arrived, s.ranks[r].sum) = (0, 0),
            Step::CountStarted => {
                let next = self.next(s.ranks[r].started_epoch, 1);
                let rank = &mut s.ranks[r];
                rank.started += 2 * self.operation(call).grid;
                rank.started_epoch = next;
            }
            Step::Advance => {
                let next = self.next(agent.epoch, 1);
                if self.rules.epoch == EpochRule::EachCta {
                    s.ranks[r].cta_epoch[cta] = next;
                } else {
                    let old = s.ranks[r].epoch;
                    if self.rules.epoch_checked && old != agent.epoch {
                        found(Self::agent(s, at), Cause::Overlap);
                    }
                    // Epochs of calls that overlap do not wrap around.
                    let overtaken = old != agent.epoch && old > next;
                    if overtaken && !self.rules.epoch_rises {
                        broken = Some(Kind::EpochFell);
                    }
                    if !overtaken || !self.rules.epoch_rises {
                        s.ranks[r].epoch = next;
                    }
                }
            }
            Step::Signal { phase, to } => {
                let place = Place::Flag {
                    rank: to,
                    slot,
                    phase: if self.rules.flag_each_phase { phase } else { 0 },
                    cta: at.cta,
                    source: at.rank,
                };
                let release = self.rules.flag_order != FlagOrder::StoredFirst;
                let access = Access {
                    release,
                    ..store(place, agent.epoch.into(), 0)
                };
                broken = self.issue(s, at, access);
            }
            Step::Read {
                phase,
                from,
                row: index,
            } => {
                let value = row(phase, from);
                let phase = stage(phase);
                let place = match self.operation(call).transport {
                    Transport::Pull => {
                        let part = self.operation(call).part(r) as u8;
                        Place::Outbox {
                            rank: from,
                            slot,
                            phase,
                            part,
                            row: index,
                        }
                    }
                    _ => Place::Inbox {
                        rank: at.rank,
                        slot,
                        phase,
                        source: from,
                        row: index,
                    },
                };
                let access = Access {
                    load: true,
                    ..store(place, value, 0)
                };
                broken = self.issue(s, at, access);
            }
            Step::Report => {
                let cause = agent.cause;
                let rank = &mut s.ranks[r];
                rank.reported |= cause;
                if cause == Cause::Skipped.bit() {
                    Self::agent(s, at).at = self.program(call, at).steps.len() as u8 - 1;
                    return self.false_report(s, at, cause);
                }
                rank.poison |= 1 << at.rank;
                broken = self.false_report(s, at, cause);
            }
            Step::Poison { at: peer } => s.ranks[usize::from(peer)].poison |= 1 << at.rank,
            Step::Retire => return self.retire(s, call, at),
            Step::Conclude | Step::Meet | Step::Await { .. } | Step::AwaitPacket { .. } => {
                unreachable!("{step:?} is no step of its own")
            }
        }
        Self::agent(s, at).at += 1;
        self.settle(s, call, at);
        broken
    }

    /// A report that nothing calls for.
    fn false_report(&self, s: &State, at: Issuer, cause: u8) -> Option<Kind> {
        let rules_hold = self.scenario.caller == Caller::Keeps;
        let never = Cause::Overlap.bit() | Cause::TagMismatch.bit();
        let behind = s.ranks[usize::from(at.rank)].host == Host::Behind;
        (rules_hold && (behind || self.scenario.give_ups == 0 || cause & never != 0))
            .then_some(Kind::FalseReport)
    }

    /// Leaves out the steps that this warp does not come to.
    pub fn settle(&self, s: &mut State, call: Call, at: Issuer) {
        let program = self.program(call, at);
        loop {
            let agent = Self::agent(s, at);
            let step = program.steps[usize::from(agent.at)];
            let reading = matches!(
                step,
                Step::ReadStarted | Step::ReadRetired | Step::ReadPoison
            );
            let skips = match step {
                _ if agent.at < program.barrier => {
                    !reading
                        && (agent.cause != 0
                            || matches!(step, Step::Scrub { to } if self.scrub(call, at.rank, to, agent.epoch).is_none()))
                }
                Step::Arrive => {
                    agent.cause == Cause::Skipped.bit()
                        && agent.stopped
                        && !self.rules.skipped_arrive
                }
                Step::ZeroTicket | Step::CountStarted | Step::Advance => {
                    !agent.last && self.rules.epoch == EpochRule::LastArrival
                }
                // All may have entered before this CTA arrived.
                Step::Meet => agent.stopped || self.open(*agent, at).is_empty(),
                Step::Signal { .. } | Step::Stage { .. } => agent.stopped,
                Step::Await { .. } | Step::AwaitPacket { .. } | Step::Read { .. } => agent.stopped,
                Step::Conclude => {
                    let silent = agent.cause == Cause::Skipped.bit() && !self.rules.skipped_report;
                    // A stopped CTA is its control warp's to report.
                    let other = agent.stopped && at.role == Role::Worker as u8;
                    if agent.cause != 0 && !silent && !other {
                        agent.at = program.report;
                        return;
                    }
                    true
                }
                _ => false,
            };
            if !skips {
                return;
            }
            agent.at += 1;
        }
    }
}

/// The first cause stays.
pub(crate) fn found(agent: &mut Agent, cause: Cause) {
    if agent.cause == 0 {
        agent.cause = cause.bit();
    }
}
