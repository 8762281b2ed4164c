//! A run from its beginning to its end, by a policy.

use crate::callback::Callback;
use crate::machine::State;
use crate::operations::OpId;

use super::choose::Chooser;
use super::crew::{Agent, Role, Standing};
use super::plan::Plan;
use super::report::End;
use super::stage::{Did, Stage};

/// How a stretch of a run ended.
pub(super) enum Stop {
    /// The run has ended.
    End(End),
    /// A host function is due, without the machine's lock.
    Call(Callback, OpId),
}

impl Stage {
    /// Runs until the end or a host function.
    pub(super) fn drive(&mut self, chooser: &mut Chooser, plan: &Plan, state: &mut State) -> Stop {
        let mut did = self.open(state).unwrap_or(Did::Moved);
        let (mut ready, mut polling) = (Vec::<Agent>::new(), Vec::<Agent>::new());
        // Most choices leave everybody as they are.
        let mut known = None;
        loop {
            match did {
                Did::Moved | Did::Polled => {}
                Did::Call(callback, op) => return Stop::Call(callback, op),
                Did::Fault(words) => return Stop::End(End::Fault(words)),
            }
            if self.executed > self.limit {
                return Stop::End(End::Unfinished(self.waiters(state)));
            }
            let changed = known.replace(self.crew.changes()) != Some(self.crew.changes());
            if changed {
                let all = self.crew.agents().iter();
                ready.clear();
                ready.extend(
                    all.clone()
                        .filter(|agent| agent.standing == Standing::Ready),
                );
                polling.clear();
                polling.extend(all.filter(|agent| agent.standing == Standing::Parked));
            }
            if ready.is_empty() {
                if self.complete() {
                    return Stop::End(End::Complete);
                }
                did = match self.wait(plan.patience, state) {
                    Some(did) => did,
                    None => return Stop::End(self.given_up(state)),
                };
                continue;
            }
            let choice = chooser.choose(&ready, &polling, changed, self.executed);
            for _ in 0..choice.turns {
                did = self.advance(choice.name, choice.fuel, state);
                if !matches!(did, Did::Polled) {
                    break;
                }
            }
        }
    }

    /// Starts every operation that can start and makes every block resident that there is room for, in canonical order.
    pub(super) fn dispatch_all(&mut self, state: &mut State) -> Did {
        let waits = |agent: &&Agent| {
            agent.standing == Standing::Ready && !matches!(agent.role, Role::Warp(_))
        };
        while let Some(agent) = self.crew.agents().iter().find(waits) {
            match self.advance(agent.name, 0, state) {
                Did::Moved | Did::Polled => {}
                did => return did,
            }
        }
        Did::Moved
    }
}
