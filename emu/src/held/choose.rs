//! Policies: who goes on next, and for how long.

use std::collections::BTreeMap;

use super::crew::{Agent, Role};
use super::name::Name;
use super::plan::Policy;
use super::random::Random;

/// Instructions of a turn in round robin.
const TURN: u32 = 64;
/// A stall begins once in so many choices.
const STALLS: usize = 96;
/// Once in so many stalls the stalled one goes on only when nobody else can.
const LONG: usize = 4;

/// Somebody who polls goes on polling once in so many choices: wait loops look at time and poison only now and then.
const SPINS: usize = 64;
/// Instructions of one poll, which ends it earlier.
const SPIN: u32 = 4096;

/// Who goes on, and how far.
pub(super) struct Choice {
    /// Who.
    pub(super) name: Name,
    /// Instructions of a turn.
    pub(super) fuel: u32,
    /// Most turns in a row, of which all but the last do nothing but poll.
    pub(super) turns: u32,
}

impl Choice {
    fn once(name: Name, fuel: u32) -> Choice {
        let turns = 1;
        Choice { name, fuel, turns }
    }
}

/// What is stalled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stall {
    name: Name,
    /// 0: its device, 1: its block, 2: itself.
    depth: usize,
    until: u64,
}

impl Stall {
    fn covers(&self, name: Name) -> bool {
        let stalled = self.name;
        name.device == stalled.device
            && (self.depth < 1 || (name.op, name.block) == (stalled.op, stalled.block))
            && (self.depth < 2 || name.warp == stalled.warp)
    }
}

/// The choices of one run.
pub(super) enum Chooser {
    /// Everybody in turn.
    RoundRobin { last: Option<Name> },
    /// Anybody.
    Random {
        random: Random,
        stalls: Vec<Stall>,
        /// Those who are ready and not stalled, by their place.
        free: Vec<usize>,
        choices: u64,
    },
    /// The highest priority.
    Priorities {
        random: Random,
        priorities: BTreeMap<Name, u64>,
        /// Who has the highest priority of those who were ready at the last choice.
        highest: Option<Name>,
        /// Instructions of the run at which the highest loses its priority, the next one last.
        changes: Vec<u64>,
        /// What the next one that loses its priority gets.
        lowest: u64,
    },
}

impl Chooser {
    /// The choices of a seed. `length` is about how many instructions a run takes.
    pub(super) fn new(policy: Policy, seed: u64, length: u64) -> Chooser {
        let mut random = Random::new(seed);
        match policy.of(seed) {
            Policy::RoundRobin => Chooser::RoundRobin { last: None },
            Policy::Random | Policy::Mixed { .. } => Chooser::Random {
                random,
                stalls: Vec::new(),
                free: Vec::new(),
                choices: 0,
            },
            Policy::Priorities { changes } => {
                let place = |_| random.below(length as usize) as u64;
                let mut changes: Vec<u64> = (0..changes).map(place).collect();
                changes.sort_unstable_by(|one, other| other.cmp(one));
                Chooser::Priorities {
                    random,
                    priorities: BTreeMap::new(),
                    highest: None,
                    changes,
                    lowest: u64::from(u32::MAX),
                }
            }
        }
    }

    /// Chooses one of those that are ready (at least one, in canonical order), or now and then of those that poll.
    /// `changed` is whether these are others than at the last choice; `executed`, how many instructions lie behind.
    pub(super) fn choose(
        &mut self,
        ready: &[Agent],
        polling: &[Agent],
        mut changed: bool,
        executed: u64,
    ) -> Choice {
        match self {
            Chooser::RoundRobin { last } => {
                let first = ready
                    .iter()
                    .find(|agent| !matches!(agent.role, Role::Warp(_)));
                let next = || ready.iter().find(|agent| Some(agent.name) > *last);
                let agent = first.or_else(next).unwrap_or(&ready[0]);
                *last = Some(agent.name);
                Choice::once(agent.name, TURN)
            }
            Chooser::Random {
                random,
                stalls,
                free,
                choices,
            } => {
                *choices += 1;
                let before = stalls.len();
                stalls.retain(|stall| stall.until > *choices);
                changed |= stalls.len() != before;
                if changed {
                    // Also where somebody who polls is chosen: the next choice may find nothing changed.
                    free.clear();
                }
                if !polling.is_empty() && random.once_in(SPINS) {
                    return Choice {
                        name: polling[random.below(polling.len())].name,
                        fuel: SPIN,
                        turns: 1 << random.below(9),
                    };
                }
                if random.once_in(STALLS) {
                    let until = match random.once_in(LONG) {
                        true => u64::MAX,
                        false => *choices + (1 << (4 + random.below(9))),
                    };
                    stalls.push(Stall {
                        name: ready[random.below(ready.len())].name,
                        depth: random.below(3),
                        until,
                    });
                    free.clear();
                }
                if free.is_empty() {
                    let goes =
                        |&at: &usize| !stalls.iter().any(|stall| stall.covers(ready[at].name));
                    free.extend((0..ready.len()).filter(goes));
                }
                let name = match free.get(random.below(free.len())) {
                    Some(&at) => ready[at].name,
                    None => {
                        stalls.clear();
                        ready[random.below(ready.len())].name
                    }
                };
                Choice::once(name, 1 << random.below(7))
            }
            Chooser::Priorities {
                random,
                priorities,
                highest,
                changes,
                lowest,
            } => {
                let first = |priorities: &BTreeMap<Name, u64>| {
                    let highest = ready.iter().max_by_key(|agent| priorities.get(&agent.name));
                    highest.unwrap_or(&ready[0]).name
                };
                let mut name = match *highest {
                    Some(name) if !changed => name,
                    _ => {
                        for agent in ready {
                            let drawn = || random.next() | 1 << 63;
                            priorities.entry(agent.name).or_insert_with(drawn);
                        }
                        first(priorities)
                    }
                };
                while changes.pop_if(|at| *at <= executed).is_some() {
                    *lowest -= 1;
                    priorities.insert(name, *lowest);
                    name = first(priorities);
                }
                *highest = Some(name);
                Choice::once(name, 1 + random.below(16) as u32)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::crew::Standing;
    use super::*;

    fn warps(devices: u32, blocks: u64) -> Vec<Agent> {
        let places = (0..devices).flat_map(|device| (0..blocks).map(move |block| (device, block)));
        let agent = |(device, block)| Agent {
            name: Name {
                device,
                op: 1,
                block,
                warp: 0,
            },
            role: Role::Warp(0),
            standing: Standing::Ready,
        };
        places.map(agent).collect()
    }

    fn names(policy: Policy, seed: u64, ready: &[Agent], count: usize) -> Vec<Name> {
        let mut chooser = Chooser::new(policy, seed, count as u64);
        (0..count)
            .map(|at| chooser.choose(ready, &[], at == 0, at as u64).name)
            .collect()
    }

    #[test]
    fn round_robin_gives_everybody_a_turn_and_starts_operations_first() {
        let mut ready = warps(2, 2);
        let turns = names(Policy::RoundRobin, 1, &ready, 5);
        let wanted: Vec<Name> = ready.iter().chain(&ready[..1]).map(|a| a.name).collect();
        assert_eq!(turns, wanted);
        ready[3].role = Role::Start;
        assert_eq!(names(Policy::RoundRobin, 1, &ready, 2), [ready[3].name; 2]);
    }

    #[test]
    fn random_choices_stall_a_device_for_long_and_reach_everybody() {
        let ready = warps(2, 4);
        let turns = names(Policy::Random, 3, &ready, 4000);
        assert!(ready.iter().all(|agent| turns.contains(&agent.name)));
        let same = |window: &[Name]| window.iter().all(|name| name.device == window[0].device);
        // Without stalls a run of 64 on one of two devices has a chance of 4000 in 2^63.
        assert!(turns.windows(64).any(same));
        assert_eq!(turns, names(Policy::Random, 3, &ready, 4000));
        assert_ne!(turns, names(Policy::Random, 4, &ready, 4000));
    }

    #[test]
    fn a_priority_holds_until_a_change_and_goes_below_all_others_there() {
        let ready = warps(2, 2);
        let policy = Policy::Priorities { changes: 2 };
        for seed in 0..50 {
            let turns = names(policy, seed, &ready, 100);
            let mut kept = turns.clone();
            kept.dedup();
            assert!(kept.len() <= 3, "seed {seed}: {kept:?}");
            let distinct: std::collections::BTreeSet<_> = kept.iter().collect();
            assert_eq!(
                distinct.len(),
                kept.len(),
                "seed {seed}: who lost stays behind"
            );
        }
    }

    #[test]
    fn somebody_who_polls_goes_on_now_and_then_many_times_in_a_row() {
        let (ready, polling) = (warps(1, 2), warps(2, 1));
        let mut chooser = Chooser::new(Policy::Random, 5, 0);
        let choices: Vec<Choice> = (0..2000)
            .map(|at| chooser.choose(&ready, &polling, at == 0, 0))
            .collect();
        let spins = choices
            .iter()
            .filter(|choice| choice.name == polling[1].name);
        assert!((5..40).contains(&spins.clone().count()));
        assert!(spins.map(|choice| choice.turns).max() >= Some(64));
    }
}
