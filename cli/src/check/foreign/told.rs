//! Which step of the file an operation is, where what is found has no kernel to name.

use std::ops::RangeInclusive;

use slabfence_emu::held::{End, Run};

use super::plan::{Task, Work};

/// The fills and copies of a scenario, by device and place among its operations.
#[derive(Debug, Default)]
pub struct Steps(Vec<(u32, RangeInclusive<u32>, String)>);

impl Steps {
    /// A step has been enqueued, with so many operations of its rank's device before it and behind it.
    pub fn add(&mut self, task: &Task, before: u32, behind: u32) {
        let words = match &task.work {
            Work::Fill { line, .. } => format!("the `fill` in line {line}"),
            Work::Copy { line, .. } => format!("the `copy` in line {line}"),
            Work::Launch(_) | Work::Replay(_) | Work::Record(_) | Work::Wait(_) => return,
        };
        self.0.push((task.rank, before + 1..=behind, words));
    }

    fn of(&self, device: u32, operation: u32) -> Option<&str> {
        let is = |step: &&(u32, RangeInclusive<u32>, String)| {
            step.0 == device && step.1.contains(&operation)
        };
        self.0.iter().find(is).map(|(.., words)| words.as_str())
    }

    /// Names the steps in all that a run has to tell.
    pub fn name(&self, run: &mut Run) {
        for finding in &mut run.findings {
            for party in [&mut finding.earlier, &mut finding.later]
                .into_iter()
                .flatten()
            {
                if let (None, Some(step)) = (&party.thread, self.of(party.device, party.ordinal()))
                {
                    party.access = format!("{} ({step})", party.access);
                }
            }
        }
        if let End::Deadlock(waiters) | End::Unfinished(waiters) = &mut run.end {
            for waiter in waiters {
                if let Some(step) = self.of(waiter.device, waiter.operation) {
                    waiter.what = format!("{} ({step})", waiter.what);
                }
            }
        }
    }
}
