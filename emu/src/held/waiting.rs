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
/// How often time doubles before it passes in equal steps: of 2^20 seconds.
const DOUBLINGS: u32 = 20;
/// Rounds before anybody's stand is compared with an earlier one: who looks at the time has done so by then.
const FIRST_MARK: u32 = 64;
/// How often somebody is let look who never stands where he stood: he may count. So often if he is alone; many together
/// have `LOOKS_OF_ALL`, and each `LEAST_LOOKS`.
const LOOKS: u32 = 1 << 18;
const LOOKS_OF_ALL: u32 = 1 << 19;
const LEAST_LOOKS: u32 = 1 << 9;
/// Where time passes, each: as many as it takes until it has doubled as often as it does, and a little more.
const LEAST_TIMED_LOOKS: u32 = ROUNDS * (DOUBLINGS + 4);
/// So often if he has looked at the time, and time does not pass, or has passed again and again.
const TIMED_LOOKS: u32 = 1 << 12;
const PASSED_LOOKS: u32 = 1 << 15;
/// How often somebody may move without anything coming of it: blocks whose warps meet at barriers between two polls. Time
/// passes between.
const MOVES: u32 = 1 << 13;
const MOVES_BEFORE_TIME: u32 = 64;

/// What came of everybody's waiting so far.
#[derive(Debug, Default)]
pub(super) struct Calm {
    /// Tells whether anything has come of it: writes, operations that ended, and blocks.
    since: Option<(u64, usize, usize)>,
    /// How often somebody has moved since.
    moves: u32,
    /// How often time has passed since.
    passed: u32,
}

/// One of whom it is not known yet that he waits for ever.
struct Doubted {
    name: Name,
    block: usize,
    /// Where he stood, and how many stores there were, some rounds ago.
    mark: Option<(Stand, u64)>,
    /// How often he had read the time at first.
    clocks: u64,
}

impl Stage {
    /// Lets those who poll go on polling until something changes, or time pass. `None`: nothing will ever change, or the
    /// run's limit is reached.
    pub(super) fn wait(&mut self, patience: Patience, state: &mut State) -> Option<Did> {
        let now = (self.watch.writes, self.ended.len(), self.next_block);
        if self.calm.since.replace(now) != Some(now) {
            (self.calm.moves, self.calm.passed) = (0, 0);
        }
        self.calm.moves += 1;
        if self.calm.moves > MOVES {
            return None;
        }
        if self.calm.moves.is_multiple_of(MOVES_BEFORE_TIME) {
            self.pass(patience);
        }
        let parked = |agent: &&Agent| agent.standing == Standing::Parked;
        let parked = self.crew.agents().iter().filter(parked);
        let mut doubted: Vec<Doubted> = parked.filter_map(|agent| self.doubt(agent)).collect();
        let looks = LOOKS_OF_ALL / (doubted.len() as u32).max(1);
        let (least, timed) = match patience {
            Patience::None => (LEAST_LOOKS, TIMED_LOOKS),
            Patience::Time => (LEAST_TIMED_LOOKS, PASSED_LOOKS),
        };
        let looks = looks.clamp(least, LOOKS);
        for round in 1..=looks {
            // A period of any length is found if marks are made at ever longer intervals.
            let mark = round >= FIRST_MARK && round.is_power_of_two();
            let mut at = 0;
            while let Some(one) = doubted.get_mut(at) {
                if let Some(did) = self.look(one.name, state) {
                    return Some(did);
                }
                match self.for_ever(one, mark, round >= timed) {
                    true => _ = doubted.remove(at),
                    false => at += 1,
                }
            }
            if doubted.is_empty() || self.executed > self.limit {
                return None;
            }
            if round.is_multiple_of(ROUNDS) {
                self.pass(patience);
            }
        }
        None
    }

    /// How a run ends in which nobody goes on any more.
    pub(super) fn given_up(&mut self, state: &State) -> End {
        let waiters = self.waiters(state);
        match self.executed > self.limit {
            true => End::Unfinished(waiters),
            false => End::Deadlock(waiters),
        }
    }

    /// Time passes, and nothing else; a cycle a nanosecond.
    fn pass(&mut self, patience: Patience) {
        if patience == Patience::Time {
            let nanoseconds = 1_000_000_000 << self.calm.passed.min(DOUBLINGS);
            self.calm.passed += 1;
            self.now = self.now.saturating_add(nanoseconds);
            self.idle = self.idle.saturating_add(nanoseconds);
        }
    }

    /// One poll of one; what he did if it was anything else.
    fn look(&mut self, name: Name, state: &mut State) -> Option<Did> {
        let writes = self.watch.writes;
        match self.advance(name, POLL, state) {
            Did::Polled if self.watch.writes == writes => None,
            did => Some(did),
        }
    }

    fn doubt(&self, agent: &Agent) -> Option<Doubted> {
        let Role::Warp(block) = agent.role else {
            return None;
        };
        let (name, cta) = (agent.name, &self.blocks.get(&block)?.cta);
        Some(Doubted {
            name,
            block,
            mark: None,
            clocks: cta.clocks(name.warp as usize),
        })
    }

    /// Whether somebody who has looked once more is known to wait for ever: he comes round to the very same, or he looks at
    /// the time too and has done so `enough`. Who does neither may count his looks, and have enough of them in the end.
    fn for_ever(&self, one: &mut Doubted, mark: bool, enough: bool) -> bool {
        let Some(cta) = self.blocks.get(&one.block).map(|block| &block.cta) else {
            return true;
        };
        let warp = one.name.warp as usize;
        if cta.clocks(warp) != one.clocks {
            return enough;
        }
        let stores = self.watch.stores;
        let same = |(stand, before): &(Stand, u64)| *before == stores && cta.stands(warp, stand);
        if one.mark.as_ref().is_some_and(same) {
            return true;
        }
        if mark {
            one.mark = cta.stand(warp).map(|stand| (stand, stores));
        }
        false
    }
}
