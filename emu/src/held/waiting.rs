//! When nobody can go on but those who poll: whether something changes yet, or they wait for ever.

use slabfence_emu_exec::Stand;

use crate::machine::State;

use super::crew::{Agent, Role, Standing};
use super::name::Name;
use super::plan::Patience;
use super::report::End;
use super::stage::{Did, Stage};

/// Rounds in which everybody polls once before time passes: wait loops look at some words, and at the time, only now and
/// then.
const ROUNDS: u32 = 256;
/// Instructions of a poll; enough to come round the longest wait loop.
const POLL: u32 = 4096;
/// How often time doubles before it is said that time does not help either: 2^20 seconds.
const DOUBLINGS: u32 = 20;
/// How often somebody is let look who never stands where he stood and does not look at the time: he may count.
const LOOKS: u32 = 1 << 18;
/// Of how many stretches of time somebody must have read the time and gone on waiting: in the first he may have begun to.
const STRETCHES: u32 = 3;

/// One of whom it is not known yet that he waits for ever.
struct Doubted {
    name: Name,
    block: usize,
    /// Where he stood, and how many stores there were, some rounds ago. None once he has read the time: he never stands
    /// there again.
    mark: Option<(Stand, u64)>,
    /// How often he had read the time when it passed last.
    clocks: u64,
    /// Stretches of time in which he read it.
    stretches: u32,
}

impl Stage {
    /// Lets those who poll go on polling until something changes, or time pass. `None`: nothing will ever change, or the
    /// run's limit is reached.
    pub(super) fn wait(&mut self, patience: Patience, state: &mut State) -> Option<Did> {
        let mut doublings = 0;
        loop {
            if let Some(did) = self.poll(state) {
                return Some(did);
            }
            if patience == Patience::None || doublings == DOUBLINGS {
                return self.outlast(patience, state);
            }
            self.pass(1_000_000_000 << doublings);
            doublings += 1;
        }
    }

    /// How a run ends in which nobody goes on any more.
    pub(super) fn given_up(&mut self, state: &State) -> End {
        let waiters = self.waiters(state);
        match self.executed > self.limit {
            true => End::Unfinished(waiters),
            false => End::Deadlock(waiters),
        }
    }

    fn poll(&mut self, state: &mut State) -> Option<Did> {
        let parked: Vec<Name> = self.parked().map(|agent| agent.name).collect();
        (0..ROUNDS).find_map(|_| parked.iter().find_map(|&name| self.look(name, state)))
    }

    fn parked(&self) -> impl Iterator<Item = &Agent> {
        let all = self.crew.agents().iter();
        all.filter(|agent| agent.standing == Standing::Parked)
    }

    /// One poll of one; what he did if it was anything else.
    fn look(&mut self, name: Name, state: &mut State) -> Option<Did> {
        let writes = self.watch.writes;
        match self.advance(name, POLL, state) {
            Did::Polled if self.watch.writes == writes => None,
            did => Some(did),
        }
    }

    /// Lets everybody look until it is known that he waits for ever: he comes round to the same again, or he has read the
    /// time again and again while it passed (where it does not pass, once). Who does neither may count his looks, and
    /// have enough of them.
    fn outlast(&mut self, patience: Patience, state: &mut State) -> Option<Did> {
        let wanted = match patience {
            Patience::None => 1,
            Patience::Time => STRETCHES,
        };
        let all: Vec<Agent> = self.parked().copied().collect();
        let mut doubted: Vec<Doubted> = all.iter().filter_map(|one| self.doubt(one)).collect();
        for round in 1..=LOOKS {
            // A period of any length is found if marks are made at ever longer intervals.
            let mark = round.is_power_of_two();
            if mark && patience == Patience::Time {
                self.pass(1_000_000_000 << DOUBLINGS);
            }
            for at in (0..doubted.len()).rev() {
                if let Some(did) = self.look(doubted[at].name, state) {
                    return Some(did);
                }
                if self.for_ever(&mut doubted[at], mark, wanted) {
                    doubted.swap_remove(at);
                }
            }
            if doubted.is_empty() || self.executed > self.limit {
                return None;
            }
        }
        None
    }

    fn doubt(&self, agent: &Agent) -> Option<Doubted> {
        let Role::Warp(block) = agent.role else {
            return None;
        };
        let (name, cta) = (agent.name, &self.blocks.get(&block)?.cta);
        let stand = cta.stand(name.warp as usize)?;
        Some(Doubted {
            name,
            block,
            mark: Some((stand, self.watch.stores)),
            clocks: cta.clocks(name.warp as usize),
            stretches: 0,
        })
    }

    /// Whether somebody who has looked once more is known to wait for ever. `mark`: a stretch of time begins.
    fn for_ever(&self, one: &mut Doubted, mark: bool, wanted: u32) -> bool {
        let Some(cta) = self.blocks.get(&one.block).map(|block| &block.cta) else {
            return true;
        };
        let (warp, clocks) = (one.name.warp as usize, cta.clocks(one.name.warp as usize));
        if clocks != one.clocks {
            one.mark = None;
            if mark {
                one.stretches += 1;
                one.clocks = clocks;
            }
            return one.stretches >= wanted;
        }
        let Some((stand, stores)) = &mut one.mark else {
            return false;
        };
        if *stores == self.watch.stores && cta.stands(warp, stand) {
            return true;
        }
        if mark && let Some(now) = cta.stand(warp) {
            (*stand, *stores) = (now, self.watch.stores);
        }
        false
    }
}
