//! What happened before what in a run, as far as the order of strong accesses decides it: vector clocks of agents, and who
//! touched which word.

use std::collections::BTreeMap;

use super::name::Name;
use super::seen::Strong;

/// A vector clock: how many events of each agent, by its number, lie before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock(Vec<u32>);

impl Clock {
    fn of(&self, agent: usize) -> u32 {
        self.0.get(agent).copied().unwrap_or(0)
    }

    fn set(&mut self, agent: usize, count: u32) {
        if self.0.len() <= agent {
            self.0.resize(agent + 1, 0);
        }
        self.0[agent] = count;
    }

    /// Whatever lies before the other lies before this too.
    pub(super) fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (own, &other) in self.0.iter_mut().zip(&other.0) {
            *own = (*own).max(other);
        }
    }
}

impl Strong {
    /// Whether exchanging the two may change something.
    pub(super) fn conflicts(&self, other: &Strong) -> bool {
        let commute = self.commutes.is_some() && self.commutes == other.commutes;
        (self.write || other.write)
            && !commute
            && self.words.iter().any(|word| other.words.contains(word))
    }
}

/// An event that a later one of another agent may have been exchanged with.
#[derive(Clone, Debug)]
struct Past {
    agent: usize,
    count: u32,
    /// Place in the run.
    at: usize,
    access: Strong,
    clock: Clock,
}

/// The order of a run so far.
#[derive(Debug, Default)]
pub(super) struct Order {
    numbers: BTreeMap<Name, usize>,
    clocks: BTreeMap<Name, Clock>,
    words: BTreeMap<u64, Vec<Past>>,
    /// Events that the last one took the place of, with their words.
    replaced: Vec<(u64, Past)>,
}

impl Order {
    /// Forgets the run, and keeps the agents' numbers.
    pub(super) fn restart(&mut self) {
        self.clocks.clear();
        self.words.clear();
    }

    fn number(&mut self, name: Name) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(name).or_insert(next)
    }

    /// The clock of an agent, a barrier or an operation.
    pub(super) fn clock(&mut self, name: Name) -> &mut Clock {
        self.clocks.entry(name).or_default()
    }

    /// Whether an agent has a clock.
    pub(super) fn knows(&self, name: Name) -> bool {
        self.clocks.contains_key(&name)
    }

    /// Lets everything before `from` lie before `to`.
    pub(super) fn follow(&mut self, to: Name, from: Name) {
        if let Some(clock) = self.clocks.get(&from).cloned() {
            self.clock(to).join(&clock);
        }
    }

    /// Takes a barrier's clock away.
    pub(super) fn forget(&mut self, name: Name) {
        self.clocks.remove(&name);
    }

    /// The places of events that the access of an agent conflicts with and that nothing orders before it.
    pub(super) fn races(&mut self, name: Name, access: &Strong) -> Vec<usize> {
        let own = self.number(name);
        let clock = self.clocks.entry(name).or_default();
        let all = access.words.iter().filter_map(|word| self.words.get(word));
        let races = all.flatten().filter(|past| {
            past.agent != own && clock.of(past.agent) < past.count && past.access.conflicts(access)
        });
        let mut places: Vec<usize> = races.map(|past| past.at).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// An agent performed an access, at a place of the run; gives the count of its events.
    pub(super) fn perform(&mut self, name: Name, access: &Strong, at: usize) -> u32 {
        let agent = self.number(name);
        let mut clock = self.clock(name).clone();
        for past in access.words.iter().filter_map(|word| self.words.get(word)) {
            for past in past.iter().filter(|past| past.access.conflicts(access)) {
                clock.join(&past.clock);
            }
        }
        let count = clock.of(agent) + 1;
        clock.set(agent, count);
        *self.clock(name) = clock.clone();
        let past = Past {
            agent,
            count,
            at,
            access: access.clone(),
            clock,
        };
        self.replaced.clear();
        for &word in &access.words {
            let all = self.words.entry(word).or_default();
            match access.write && access.commutes.is_none() {
                // Whatever conflicts with an earlier one conflicts with this one, which lies behind all of them.
                true => all.clear(),
                false => {
                    let same =
                        |old: &mut Past| old.agent == agent && old.access.write == access.write;
                    let gone = all.extract_if(.., same);
                    self.replaced.extend(gone.map(|past| (word, past)));
                }
            }
            all.push(past.clone());
        }
        count
    }

    /// The access, event `count` of the agent and the last that was performed, was nothing that others could notice.
    pub(super) fn take_back(&mut self, name: Name, access: &Strong, count: u32) {
        let agent = self.number(name);
        for word in &access.words {
            if let Some(all) = self.words.get_mut(word) {
                all.retain(|past| (past.agent, past.count) != (agent, count));
            }
        }
        for (word, past) in self.replaced.drain(..) {
            self.words.entry(word).or_default().push(past);
        }
    }

    /// Whether event `count` of `earlier` lies before the next event of `name`.
    pub(super) fn before(&mut self, earlier: Name, count: u32, name: Name) -> bool {
        let agent = self.number(earlier);
        self.clock(name).of(agent) >= count
    }
}

#[cfg(test)]
mod tests {
    use slabfence_emu_exec::Operation;

    use super::*;

    fn warp(device: u32) -> Name {
        Name {
            device,
            op: 1,
            block: 0,
            warp: 0,
        }
    }

    fn access(word: u64, write: bool, commutes: Option<Operation>) -> Strong {
        Strong {
            words: vec![word],
            found: 0,
            write,
            commutes,
        }
    }

    #[test]
    fn a_read_races_with_the_write_it_sees_and_not_with_what_the_writer_did_before() {
        let mut order = Order::default();
        order.perform(warp(0), &access(1, true, None), 0);
        order.perform(warp(0), &access(2, true, None), 1);
        let (flag, data) = (access(2, false, None), access(1, false, None));
        assert_eq!(order.races(warp(1), &data), [0]);
        assert_eq!(order.races(warp(1), &flag), [1]);
        order.perform(warp(1), &flag, 2);
        assert_eq!(order.races(warp(1), &data), [0; 0]);
    }

    #[test]
    fn additions_that_return_nothing_commute_and_race_with_reads() {
        let mut order = Order::default();
        let add = access(1, true, Some(Operation::Add));
        order.perform(warp(0), &add, 0);
        assert_eq!(order.races(warp(1), &add), [0; 0]);
        order.perform(warp(1), &add, 1);
        assert_eq!(order.races(warp(2), &access(1, false, None)), [0, 1]);
        assert_eq!(
            order.races(warp(2), &access(1, true, Some(Operation::MaxU))),
            [0, 1]
        );
    }

    #[test]
    fn a_barrier_orders_what_was_before_it_of_one_agent_before_the_other() {
        let mut order = Order::default();
        let count = order.perform(warp(0), &access(1, true, None), 0);
        let barrier = Name {
            warp: u32::MAX,
            ..warp(0)
        };
        order.follow(barrier, warp(0));
        assert!(!order.before(warp(0), count, warp(1)));
        order.follow(warp(1), barrier);
        assert!(order.before(warp(0), count, warp(1)));
        assert_eq!(order.races(warp(1), &access(1, true, None)), [0; 0]);
    }
}
