//! All executions of a litmus test.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::condition::{Quantifier, Term};
use super::machine::{Machine, World};
use super::program::Litmus;
use crate::race::Race;
use crate::rules::Rules;

/// How far to explore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Most different states.
    pub states: usize,
}

impl Default for Bounds {
    /// A million states: some seconds, and some hundred megabytes.
    fn default() -> Self {
        Self { states: 1_000_000 }
    }
}

/// What the executions of a test come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcomes {
    /// How the condition is meant.
    pub quantifier: Quantifier,
    /// Different states met.
    pub states: usize,
    /// Whether all states were met; false if the bound was hit.
    pub complete: bool,
    /// What the condition asks for.
    pub terms: Vec<Term>,
    /// The values of `terms` at the end of each finished execution, and whether they fulfil the condition.
    pub finals: BTreeMap<Vec<i64>, bool>,
    /// Races that some execution has, if they were looked for.
    pub races: Option<BTreeSet<Race>>,
    /// Whether some execution comes to a point from which it cannot finish: a deadlock, or a wait for what nobody does.
    /// `None` if the bound was hit.
    pub stuck: Option<bool>,
}

impl Outcomes {
    /// Whether some finished execution fulfils the condition (for `forall`: violates it); `None` if none was found before
    /// the bound was hit.
    pub fn reached(&self) -> Option<bool> {
        let wanted = self.quantifier != Quantifier::ForAll;
        match self.finals.values().any(|&holds| holds == wanted) {
            true => Some(true),
            false => self.complete.then_some(false),
        }
    }

    /// Whether the test's last line is true, as far as that is known.
    pub fn holds(&self) -> Option<bool> {
        let reached = self.reached()?;
        Some(match self.quantifier {
            Quantifier::Exists => reached,
            Quantifier::NotExists | Quantifier::ForAll => !reached,
        })
    }
}

/// Explores a test under rules, with or without looking for races.
pub fn explore(litmus: &Litmus, rules: Rules, races: bool, bounds: Bounds) -> Outcomes {
    let machine = Machine::new(litmus, rules, races);
    let terms = litmus.condition.terms();
    let mut found = BTreeSet::new();
    let mut finals = BTreeMap::new();
    let mut graph = Graph::default();
    let start = machine.start(&mut found);
    let (first, _) = graph.enter(&start);
    let mut open = vec![(first, start)];
    let mut complete = true;
    while let Some((from, world)) = open.pop() {
        if machine.is_over(&world) {
            graph.ends.push(from);
            let value = |term| value(&world, term);
            let values = terms.iter().map(|&term| value(term)).collect();
            finals.insert(values, litmus.condition.holds(&value));
            continue;
        }
        for next in machine.successors(&world, &mut found) {
            let (to, is_new) = graph.enter(&next);
            graph.edges.push((to, from));
            if is_new {
                if graph.known.len() > bounds.states {
                    complete = false;
                    break;
                }
                open.push((to, next));
            }
        }
        if !complete {
            break;
        }
    }
    Outcomes {
        quantifier: litmus.quantifier,
        states: graph.known.len().min(bounds.states),
        complete,
        terms,
        finals,
        races: races.then_some(found),
        stuck: complete.then(|| graph.has_state_without_end()),
    }
}

fn value(world: &World, term: Term) -> i64 {
    match term {
        Term::Number(number) => number,
        Term::Register { thread, register } => world.processes[thread].registers[register],
        Term::Location(location) => world.state.last_value(location),
    }
}

/// States by their hashes, and who comes from whom.
#[derive(Debug, Default)]
struct Graph {
    /// 128 bits: that two of a million states share them is not to be expected in the life of the universe.
    known: HashMap<(u64, u64), u32>,
    /// Pairs of a state and one before it.
    edges: Vec<(u32, u32)>,
    ends: Vec<u32>,
}

impl Graph {
    fn enter(&mut self, world: &World) -> (u32, bool) {
        let hash = |salt: u64| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(salt);
            world.hash(&mut hasher);
            hasher.finish()
        };
        let next = self.known.len() as u32;
        let number = *self.known.entry((hash(0), hash(1))).or_insert(next);
        (number, number == next)
    }

    fn has_state_without_end(&mut self) -> bool {
        self.edges.sort_unstable();
        let mut ends = vec![false; self.known.len()];
        let mut open = self.ends.clone();
        while let Some(state) = open.pop() {
            if std::mem::replace(&mut ends[state as usize], true) {
                continue;
            }
            let first = self.edges.partition_point(|&(to, _)| to < state);
            let before = self.edges[first..]
                .iter()
                .take_while(|&&(to, _)| to == state);
            open.extend(before.map(|&(_, from)| from));
        }
        ends.contains(&false)
    }
}
