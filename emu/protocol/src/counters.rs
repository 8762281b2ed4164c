//! The steps that touch a rank's own counters: barrier, ticket, end.

use crate::agent::found;
use crate::explore::Kind;
use crate::program::Role;
use crate::rules::{EpochRule, TicketSum};
use crate::scenario::{Call, Caller};
use crate::state::{Agent, Cause, Host, Issuer, State};
use crate::step::Model;

impl Model<'_> {
    /// Both warps pass the CTA barrier.
    pub fn barrier(&self, s: &mut State, call: Call, control: Issuer) {
        let worker = Issuer {
            role: Role::Worker as u8,
            ..control
        };
        let (a, b) = (*Self::agent(s, control), *Self::agent(s, worker));
        let rank = usize::from(control.rank);
        let differ = self.rules.warps_agree && a.epoch != b.epoch;
        let stopped = a.cause != 0 || b.cause != 0 || differ;
        if stopped && a.cause == 0 {
            let poisoned = s.ranks[rank].poison != 0;
            found(
                Self::agent(s, control),
                if poisoned {
                    Cause::Skipped
                } else {
                    Cause::Overlap
                },
            );
        }
        if stopped {
            s.ranks[rank].streams[usize::from(control.stream)].wrong = true;
        }
        if self.rules.epoch == EpochRule::FirstCta && control.cta == 0 {
            s.ranks[rank].epoch = self.next(a.epoch, 1);
        }
        for at in [control, worker] {
            let agent = Self::agent(s, at);
            (agent.stopped, agent.seen) = (stopped, 0);
            agent.at += 1;
            self.settle(s, call, at);
        }
    }

    /// The control warp adds its CTA to the ticket.
    pub fn arrive(&self, s: &mut State, call: Call, at: Issuer) {
        let op = self.operation(call);
        let agent = *Self::agent(s, at);
        let mine = match self.rules.ticket {
            TicketSum::Count => 0,
            TicketSum::Tag => u32::from(op.tag),
            TicketSum::TagAndEpoch => u32::from(op.tag) | u32::from(agent.epoch) << 16,
        };
        let rank = &mut s.ranks[usize::from(at.rank)];
        rank.arrived += 1;
        rank.sum += mine;
        let (count, sum) = (rank.arrived, rank.sum);
        let whole = count == op.grid && sum == mine * u32::from(op.grid);
        let agent = Self::agent(s, at);
        agent.last = count >= op.grid;
        if agent.last && !whole && self.rules.ticket != TicketSum::Count {
            found(agent, Cause::Overlap);
        }
    }

    /// A warp ends; the last one ends the call.
    pub fn retire(&self, s: &mut State, call: Call, at: Issuer) -> Option<Kind> {
        let grid = usize::from(self.operation(call).grid);
        let agent = Self::agent(s, at);
        let counts =
            self.rules.skipped_retire || agent.cause != Cause::Skipped.bit() && !agent.stopped;
        agent.at = Agent::DONE;
        let one_stream = self.scenario.streams(usize::from(at.rank)) == 1;
        let rank = &mut s.ranks[usize::from(at.rank)];
        rank.retired += u8::from(counts);
        let stream = &mut rank.streams[usize::from(at.stream)];
        if stream.agents[..grid]
            .iter()
            .flatten()
            .any(|agent| agent.at != Agent::DONE)
        {
            return None;
        }
        let bit = (1 << stream.got) >> 1;
        let (wrong, position) = (stream.wrong || rank.taken & bit != 0, stream.position);
        rank.taken |= bit;
        *stream = Default::default();
        stream.position = self.next(position, 1);
        if one_stream && rank.started == rank.retired {
            (rank.started, rank.retired) = (0, 0);
        }
        rank.wrong |= wrong && self.scenario.caller != Caller::Keeps;
        if wrong && rank.reported == 0 {
            if self.scenario.caller != Caller::BreaksInTheEnd {
                return Some(Kind::Silent);
            }
            rank.late = true;
        }
        if self.scenario.give_ups > 0
            && self.scenario.caller == Caller::Keeps
            && rank.host == Host::Before
        {
            if rank.reported == 0 {
                rank.succeeded = position + 1;
            } else if rank.failed == 0 {
                rank.failed = position + 1;
            }
            let ranks = &s.ranks[..self.scenario.world];
            let after =
                |failed: u8| failed != 0 && ranks.iter().any(|other| other.succeeded > failed);
            if ranks.iter().any(|rank| after(rank.failed)) {
                return Some(Kind::StaleSuccess);
            }
        }
        None
    }
}
