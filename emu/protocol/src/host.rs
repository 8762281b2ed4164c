//! What hosts do: choosing calls, moving epochs ahead, resets and reuse.

use crate::explore::Kind;
use crate::memory::Packet;
use crate::operation::{RANKS, ROWS, SLOTS};
use crate::rules::ResetEpoch;
use crate::scenario::{Calls, Seam};
use crate::state::{Agent, Host, Rank, State};
use crate::step::{Action, Model, Successor};

impl Model<'_> {
    pub fn initial(&self) -> State {
        let mut s = State {
            give_ups: self.scenario.give_ups,
            jumps: self.scenario.jump.times,
            ..State::default()
        };
        for rank in &mut s.ranks[..self.scenario.world] {
            rank.epoch = self.scenario.epoch;
            rank.started_epoch = self.scenario.epoch;
            rank.cta_epoch.fill(self.scenario.epoch);
            self.fill(rank);
        }
        s
    }

    /// Stamps of the other parity in all packet ranges.
    fn fill(&self, rank: &mut Rank) {
        if self.rules.fill {
            for (slot, stamp) in (0..SLOTS).zip([1, 0]) {
                rank.packets[slot] = [[Packet { row: 0, stamp }; ROWS]; RANKS];
            }
        }
    }

    /// Where any sequence is allowed, the first rank to come to a new call chooses. True: it does.
    pub fn choose(&self, s: &State, out: &mut Vec<Successor>) -> bool {
        let Calls::Any { length } = self.scenario.calls else {
            return false;
        };
        let ranks = &s.ranks[..self.scenario.world];
        if length.is_some_and(|length| s.chosen >= length) {
            return false;
        }
        let behind = |rank: &Rank| {
            s.chosen.wrapping_sub(rank.streams[0].position) % self.scenario.lap.min(255) as u8
        };
        let waits = ranks
            .iter()
            .any(|rank| rank.streams[0].position == s.chosen);
        // The window holds four calls.
        if !waits || ranks.iter().any(|rank| behind(rank) > 3) {
            return false;
        }
        for operation in 0..self.scenario.operations.len() as u8 {
            let mut state = s.clone();
            state.window[usize::from(s.chosen & 3)] = operation;
            state.chosen = self.next(s.chosen, 1);
            out.push(Successor {
                action: Action::Choose(operation),
                state,
                broken: None,
            });
        }
        if s.jumps > 0
            && ranks
                .iter()
                .all(|rank| rank.streams[0].position == s.chosen)
        {
            for by in (2..=self.scenario.jump.farthest).step_by(2) {
                let mut state = s.clone();
                state.jumps -= 1;
                for rank in &mut state.ranks[..self.scenario.world] {
                    rank.epoch = self.next(rank.epoch, by.into());
                    rank.started_epoch = rank.epoch;
                    self.fill(rank);
                }
                out.push(Successor {
                    action: Action::Jump(by),
                    state,
                    broken: None,
                });
            }
        }
        true
    }

    /// The steps of a seam.
    pub fn host(&self, s: &State, out: &mut Vec<Successor>) {
        let Some((seam, _)) = self.scenario.seam else {
            return;
        };
        let world = self.scenario.world;
        let all = |host| s.ranks[..world].iter().all(|rank| rank.host == host);
        let mut push = |rank: usize, to, state| {
            let action = Action::Host {
                rank: rank as u8,
                to,
            };
            out.push(Successor {
                action,
                state,
                broken: None,
            });
        };
        let rested = |rank| self.at_rest(s, rank);
        if !self.rules.reset_agrees_first {
            for rank in
                (0..world).filter(|&rank| s.ranks[rank].host == Host::Before && rested(rank))
            {
                let mut state = s.clone();
                state.ranks[rank].poison = 0;
                state.ranks[rank].host = Host::Agreed;
                push(rank, Host::Agreed, state);
            }
        }
        let first = if self.rules.reset_agrees_first {
            Host::Before
        } else {
            Host::Agreed
        };
        if all(first) && s.ranks[0].next_epoch == 0 && (0..world).all(rested) {
            push(0, Host::Agreed, self.agree(s));
        }
        for rank in 0..world {
            let mut state = s.clone();
            let to = match s.ranks[rank].host {
                Host::Agreed if s.ranks[rank].next_epoch != 0 => {
                    self.clear(&mut state.ranks[rank], seam);
                    Host::Cleared
                }
                Host::Cleared => {
                    let r = &mut state.ranks[rank];
                    r.epoch = r.next_epoch;
                    r.started_epoch = r.next_epoch;
                    r.cta_epoch.fill(r.next_epoch);
                    if self.rules.reset_barrier {
                        Host::Written
                    } else {
                        Host::Behind
                    }
                }
                _ => continue,
            };
            state.ranks[rank].host = to;
            push(rank, to, state);
        }
        if all(Host::Written) {
            let mut state = s.clone();
            state.ranks[..world]
                .iter_mut()
                .for_each(|rank| rank.host = Host::Behind);
            push(0, Host::Behind, state);
        }
    }

    fn agree(&self, s: &State) -> State {
        let mut state = s.clone();
        state.give_ups = 0;
        let ranks = &mut state.ranks[..self.scenario.world];
        let largest = ranks.iter().map(|rank| rank.epoch).max().unwrap_or(0);
        for rank in ranks {
            rank.host = Host::Agreed;
            rank.next_epoch = match self.rules.reset_epoch {
                ResetEpoch::AboveAll(by) => self.next(largest, by.into()),
                ResetEpoch::AboveOwn => self.next(rank.epoch, 2),
                ResetEpoch::First => self.scenario.epoch,
            };
        }
        state
    }

    fn clear(&self, rank: &mut Rank, seam: Seam) {
        (rank.arrived, rank.sum, rank.reported) = (0, 0, 0);
        (rank.failed, rank.succeeded, rank.wrong, rank.late) = (0, 0, false, false);
        if self.rules.reset_agrees_first {
            rank.poison = 0;
        }
        match seam {
            Seam::Reset if self.rules.reset_guard => rank.retired = rank.started,
            Seam::Reset => {}
            Seam::Reuse => (rank.started, rank.retired) = (0, 0),
        }
        self.fill(rank);
        for stream in &mut rank.streams {
            *stream = Default::default();
        }
    }

    /// What is wrong with a state in which nothing can move.
    pub fn at_the_end(&self, s: &State) -> Option<Kind> {
        if self.diagnosed(s) {
            return None;
        }
        let ranks = &s.ranks[..self.scenario.world];
        if !(0..ranks.len()).all(|rank| self.at_rest(s, rank)) || self.scenario.endless() {
            return Some(Kind::Hang);
        }
        if self.scenario.seam.is_some() {
            if ranks.iter().any(|rank| rank.host != Host::Behind) {
                return Some(Kind::Hang);
            }
            if ranks.iter().any(|rank| rank.poison != 0) {
                return Some(Kind::FalseReport);
            }
        }
        let silent = |rank: &Rank| rank.late && rank.reported == 0 && rank.poison == 0;
        ranks.iter().any(silent).then_some(Kind::Silent)
    }

    /// What a step is called in a trace.
    pub fn describe(&self, s: &State, action: Action) -> String {
        match action {
            Action::Choose(operation) => format!("call {} is operation {operation}", s.chosen),
            Action::Jump(by) => format!("all epochs move ahead by {by}"),
            Action::Host { rank, to } => format!("rank {rank}'s host: {to:?}"),
            Action::Perform(index) => {
                let (issuer, access) = s.pending[usize::from(index)];
                format!(
                    "performed: rank {} call {} {access:?}",
                    issuer.rank, issuer.position
                )
            }
            Action::Warp(at, way) => {
                let agent: Agent = *Self::agent(&mut s.clone(), at);
                let call = self.call(s, at.rank.into(), at.stream.into());
                let (number, step) = call.map_or((0, None), |call| {
                    (
                        call.number,
                        Some(self.program(call, at).steps[usize::from(agent.at)]),
                    )
                });
                let role = ["control", "worker"][usize::from(at.role)];
                let epoch = if agent.at == 0 {
                    String::new()
                } else {
                    format!(" in epoch {}", agent.epoch)
                };
                let step = step.map(|step| format!("{step:?}")).unwrap_or_default();
                format!(
                    "rank {} call {number} CTA {} {role}{epoch}: {step} {way:?}",
                    at.rank, at.cta
                )
            }
        }
    }
}
