//! The steps that wait for another rank.

use crate::agent::found;
use crate::program::Step;
use crate::rules::{EntryLine, FlagMatch, Meeting};
use crate::scenario::Call;
use crate::state::{Agent, Cause, Issuer, State};
use crate::step::{Action, Model, Successor, Way};

impl Model<'_> {
    /// Entry lines that this warp has yet to see, if it looks at them before it arrives.
    pub fn unseen(&self, agent: Agent, at: Issuer, step: Step) -> Vec<u8> {
        let looks = self.rules.early_look
            && self.rules.meeting != Meeting::BehindData
            && self.rules.entry != EntryLine::Unread;
        if step != Step::Arrive || at.cta != 0 || agent.stopped || !looks {
            return Vec::new();
        }
        self.open(agent, at)
    }

    /// Peers of whose entry into this operation the warp does not know.
    pub fn open(&self, agent: Agent, at: Issuer) -> Vec<u8> {
        let all = (0..self.scenario.world as u8).filter(|&peer| peer != at.rank);
        all.filter(|peer| agent.seen & 1 << peer == 0).collect()
    }

    /// The look at one entry line before the arrival, where it finds that the peer has entered. One that finds nothing
    /// changes nothing.
    pub fn look_early(
        &self,
        s: &State,
        call: Call,
        at: Issuer,
        agent: Agent,
        peer: u8,
    ) -> Option<State> {
        let differs = self.entered(s, call, at, agent, peer)?;
        let mut state = s.clone();
        let here = Self::agent(&mut state, at);
        here.seen |= 1 << peer;
        if differs {
            found(here, Cause::TagMismatch);
        }
        Some(state)
    }

    /// Whether the peer's entry line counts, and if so, whether its tag differs.
    fn entered(&self, s: &State, call: Call, at: Issuer, agent: Agent, peer: u8) -> Option<bool> {
        let rank = &s.ranks[usize::from(at.rank)];
        let line = rank.entry[usize::from(self.entry_slot(agent.epoch))][usize::from(peer)];
        let second = self.rules.entry == EntryLine::FirstWord || line.check == agent.epoch;
        let counts = line.epoch == agent.epoch && second;
        counts.then(|| line.tag != self.operation(call).tag && self.rules.entry != EntryLine::NoTag)
    }

    /// Waits: what they wait for, poison, and giving up.
    #[allow(
        clippy::too_many_arguments,
        reason = "one private function, called once"
    )]
    pub fn wait(
        &self,
        s: &State,
        call: Call,
        at: Issuer,
        agent: Agent,
        step: Step,
        stuck: bool,
        out: &mut Vec<Successor>,
    ) {
        let rank = &s.ranks[usize::from(at.rank)];
        let mut ready = false;
        let mut push = |way, state, broken| {
            out.push(Successor {
                action: Action::Warp(at, way),
                state,
                broken,
            })
        };
        match step {
            Step::Meet => {
                let open = self.open(agent, at);
                for &peer in &open {
                    let Some(differs) = self.entered(s, call, at, agent, peer) else {
                        continue;
                    };
                    ready |= open.len() == 1;
                    let mut state = s.clone();
                    let here = Self::agent(&mut state, at);
                    here.seen |= 1 << peer;
                    if differs {
                        found(here, Cause::TagMismatch);
                    }
                    if differs && self.rules.meeting == Meeting::Beside {
                        here.at = self.program(call, at).report;
                    } else if open.len() == 1 {
                        here.at += 1;
                        self.settle(&mut state, call, at);
                    }
                    push(Way::Met(peer), state, None);
                }
            }
            Step::Await { phase, from } => {
                let flags = &rank.flags[usize::from(self.slot(call, agent.epoch))];
                let phase = if self.rules.flag_each_phase { phase } else { 0 };
                let cta = if self.rules.flag_each_cta { at.cta } else { 0 };
                let flag = flags[usize::from(phase)][usize::from(cta)][usize::from(from)];
                ready = self.flag_counts(flag, agent.epoch);
                if ready {
                    let mut state = s.clone();
                    Self::agent(&mut state, at).at += 1;
                    self.settle(&mut state, call, at);
                    push(Way::Straight, state, None);
                }
            }
            Step::AwaitPacket { from, row } => {
                let packets = &rank.packets[usize::from(self.slot(call, agent.epoch))];
                let packet = packets[usize::from(from)][usize::from(row)];
                ready = packet.stamp == self.stamp(agent.epoch);
                if ready {
                    let mut state = s.clone();
                    Self::agent(&mut state, at).at += 1;
                    let broken = self.take(&mut state, at, packet.row, Self::row(call, 0, from));
                    self.settle(&mut state, call, at);
                    push(Way::Straight, state, broken);
                }
            }
            _ => unreachable!("{step:?} is no wait"),
        }
        let mut end = |way, cause, spent| {
            let mut state = s.clone();
            state.give_ups -= spent;
            let agent = Self::agent(&mut state, at);
            found(agent, cause);
            agent.at = self.program(call, at).report;
            if step != Step::Meet || self.rules.meeting == Meeting::BehindData {
                state.ranks[usize::from(at.rank)].streams[usize::from(at.stream)].wrong = true;
            }
            push(way, state, None);
        };
        if rank.poison != 0 && self.rules.poison_in_waits {
            end(Way::SeesPoison, Cause::PeerFailed, 0);
        } else if !ready && (stuck || s.give_ups > 0) {
            let cause = if step == Step::Meet {
                Cause::EntryTimeout
            } else {
                Cause::DataTimeout
            };
            end(Way::GivesUp, cause, u8::from(!stuck));
        }
    }

    fn flag_counts(&self, flag: u8, epoch: u8) -> bool {
        let mask = |bits: u32| ((1u16 << bits) - 1) as u8;
        match self.rules.flag {
            FlagMatch::Equal => flag == epoch,
            FlagMatch::EqualLow(bits) => (flag ^ epoch) & mask(bits) == 0,
            FlagMatch::AtLeast(bits) => flag.wrapping_sub(epoch) & mask(bits) < 1 << (bits - 1),
        }
    }
}
