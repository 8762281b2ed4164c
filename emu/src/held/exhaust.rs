//! All schedules of held work that differ in the order of strong accesses.
//!
//! Dynamic partial-order reduction (Flanagan, Godefroid 2005) with sleep sets, by repeated runs: a schedule is run to its
//! end; wherever two accesses of it conflict and nothing orders them, the place before the first becomes one at which the
//! other goes first in a later run. A poll that sees nothing new is no event: its warp waits until the word is written. One
//! that sees another value than before and goes on polling is one, for it may have acquired what came with that value.

use std::collections::BTreeMap;
use std::ops::Range;

use slabfence_emu_exec::{AccessKind, Upcoming};

use crate::slots;

use super::crew::{Agent, Role, Standing};
use super::explore::Looked;
use super::name::Name;
use super::plan::Plan;
use super::report::{End, Run};
use super::running::Running;
use super::search::Search;
use super::seen::Strong;
use super::stage::Did;
use super::{Held, HeldError};

/// How far all schedules are run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Most runs that are made, those included that are broken off.
    pub runs: u64,
    /// Addresses of words whose order is not varied: statistics, and counters that only guard against misuse. Every
    /// warp touches them, and their orders alone would be too many.
    pub unvaried: Vec<Range<u64>>,
}

/// What came of running all schedules.
#[derive(Clone, Debug, PartialEq)]
pub struct Exhaustion {
    /// Schedules that were run to their end.
    pub runs: u64,
    /// Runs that were broken off: they would have repeated others.
    pub repeats: u64,
    /// Strong accesses in the longest run.
    pub longest: usize,
    /// Whether these were all: no bound was reached, and no run ended in waits that only time or a rare look at other words
    /// ends (the order of what comes then is not varied).
    pub complete: bool,
    /// The first run with a finding, a fault or no end. It is the last one that was made; its seed is its number.
    pub bad: Option<Run>,
}

/// How a run came out.
enum Outcome {
    Ended(End),
    Repeats,
}

impl Held<'_> {
    /// Runs what was enqueued under every schedule that differs in the order of strong accesses (flags, entry lines,
    /// atomics), within bounds. `check` is as for [`explore`](Self::explore). Ordinary accesses are not
    /// scheduled: who wants to know that their order does not matter looks for races. Operations start, and blocks become
    /// resident, as soon as they can, in order; copies and fills too.
    ///
    /// Of the plan, the policy and drawn dispatch do not count.
    pub fn exhaust(
        &mut self,
        plan: &Plan,
        bounds: &Bounds,
        mut check: impl FnMut(&Looked<'_>) -> Result<(), String>,
    ) -> Result<Exhaustion, HeldError> {
        let mut running = Running::begin(self)?;
        let mut search = Search {
            unvaried: running.words(&bounds.unvaried),
            ..Search::default()
        };
        let mut found = Exhaustion {
            runs: 0,
            repeats: 0,
            longest: 0,
            complete: false,
            bad: None,
        };
        loop {
            if found.runs + found.repeats >= bounds.runs {
                break;
            }
            match search.run(&mut running, plan, found.runs)? {
                None => found.repeats += 1,
                Some(mut run) => {
                    found.runs += 1;
                    if run.end == End::Complete {
                        running.let_go();
                        run.wrong = check(&running.look(&run)).err();
                    }
                    if !run.is_clean() {
                        found.bad = Some(run);
                        break;
                    }
                }
            }
            if !search.next() {
                found.complete = !search.blind;
                break;
            }
        }
        found.longest = search.longest;
        Ok(found)
    }
}

impl Search {
    /// Makes the next run: the places so far, then on to the end. `None`: it would repeat another.
    fn run(
        &mut self,
        running: &mut Running<'_>,
        plan: &Plan,
        number: u64,
    ) -> Result<Option<Run>, HeldError> {
        let mut stage = running.stage(plan, None, true)?;
        self.order.restart();
        let mut awaiting: BTreeMap<Name, Strong> = BTreeMap::new();
        // What warps found at their last look, where they go on polling.
        let mut looks: BTreeMap<Name, Strong> = BTreeMap::new();
        let mut at = 0;
        let mut did = stage
            .open(running.state())
            .unwrap_or_else(|| stage.settle(&mut self.order, running.state()));
        let outcome = loop {
            match did {
                Did::Moved | Did::Polled => {}
                Did::Fault(words) => break Outcome::Ended(End::Fault(words)),
                Did::Call(callback, op) => {
                    running.let_go();
                    slots::call_back(callback);
                    let state = running.state();
                    did = stage
                        .returned(op, state)
                        .unwrap_or_else(|| stage.settle(&mut self.order, state));
                    continue;
                }
            }
            let state = running.state();
            if stage.executed > stage.limit {
                break Outcome::Ended(End::Unfinished(stage.waiters(state)));
            }
            let can = |agent: &&Agent| {
                matches!(agent.role, Role::Warp(_))
                    && agent.standing != Standing::Blocked
                    && !awaiting.contains_key(&agent.name)
            };
            let enabled: Vec<Agent> = stage.crew.agents().iter().filter(can).copied().collect();
            if enabled.is_empty() {
                if stage.complete() {
                    break Outcome::Ended(End::Complete);
                }
                // Waits may look at other words now and then, or end with time.
                for (name, _) in std::mem::take(&mut awaiting) {
                    stage.crew.set(name, Standing::Parked);
                }
                stage.watch.pause = false;
                let Some(next) = stage.wait(plan.patience, state) else {
                    break Outcome::Ended(stage.given_up(state));
                };
                self.blind = true;
                did = match next {
                    Did::Moved | Did::Polled => stage.settle(&mut self.order, state),
                    other => other,
                };
                continue;
            }
            let loads = |agent: &Agent| {
                let next = stage.upcoming(agent);
                next.is_some_and(|next| next.kind == AccessKind::Load)
            };
            let replayed = at < self.nodes.len();
            let fresh = !replayed || at + 1 == self.nodes.len();
            if !replayed && !self.enter(&enabled, loads, &awaiting) {
                break Outcome::Repeats;
            }
            let name = self.nodes[at].chosen;
            let Some(&agent) = enabled.iter().find(|agent| agent.name == name) else {
                // What comes behind such a wait depends on how often somebody looked before.
                if self.blind {
                    break Outcome::Repeats;
                }
                let words = format!("{name:?} cannot go on where it could: a bug of the emulator");
                break Outcome::Ended(End::Fault(words));
            };
            let before = stage.upcoming(&agent);
            let access = match stage.perform_one(name, state) {
                Ok(mut access) => {
                    let varied = |word: &u64| !self.unvaried.iter().any(|all| all.contains(word));
                    access.words.retain(varied);
                    access
                }
                Err(other) => {
                    did = other;
                    continue;
                }
            };
            stage.follow(agent, &mut self.order);
            if fresh && !self.blind {
                self.race(name, &access, at);
            }
            let count = self.order.perform(name, &access, at);
            did = stage.settle(&mut self.order, state);
            let after = stage
                .crew
                .get(name)
                .and_then(|agent| stage.upcoming(&agent));
            // The loop of a wait may begin with a copy of its first look, so the instruction does not count.
            let same = |a: &Upcoming, b: &Upcoming| {
                (a.kind, a.lanes, a.space) == (b.kind, b.lanes, b.space)
                    && a.addresses == b.addresses
            };
            let again = before.zip(after).is_some_and(|(a, b)| same(&a, &b));
            let other = |last: &Strong| last.words == access.words && last.found != access.found;
            let learns = looks.get(&name).is_some_and(other);
            match again {
                true => _ = looks.insert(name, access.clone()),
                false => _ = looks.remove(&name),
            }
            if !access.write && again && !learns {
                // The same again: the place is as it was, with one who waits.
                self.order.take_back(name, &access, count);
                awaiting.insert(name, access);
                if replayed {
                    self.nodes[at].polls.insert(name);
                    break Outcome::Repeats;
                }
                self.nodes.pop();
                continue;
            }
            self.nodes[at].done.insert(name, access.clone());
            self.nodes[at].count = count;
            awaiting.retain(|_, waits| !waits.conflicts(&access));
            at += 1;
            self.longest = self.longest.max(at);
        };
        Ok(match outcome {
            Outcome::Repeats => None,
            Outcome::Ended(end) => {
                running.left(&stage, &end);
                Some(stage.report(number, end))
            }
        })
    }
}
