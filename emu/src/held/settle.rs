//! A run that stops before every strong access: between two stops an agent does what no other can notice.

use std::collections::BTreeSet;

use slabfence_emu_exec::Upcoming;

use crate::machine::State;

use super::crew::{Agent, Role, Standing};
use super::name::Name;
use super::order::Order;
use super::seen::{Meeting, Strong};
use super::stage::{Did, Stage};

/// Instructions between two looks at whether a warp has stopped.
const FUEL: u32 = 1 << 16;

impl Stage {
    /// The strong access that an agent performs next.
    pub(super) fn upcoming(&self, agent: &Agent) -> Option<Upcoming> {
        let Role::Warp(number) = agent.role else {
            return None;
        };
        let block = self.blocks.get(&number)?;
        block.cta.upcoming(agent.name.warp as usize)
    }

    /// Lets an agent perform its next strong access; gives that access.
    pub(super) fn perform_one(&mut self, name: Name, state: &mut State) -> Result<Strong, Did> {
        self.watch.pause = false;
        self.watch.strong.get_or_insert_default().clear();
        // Lanes that stepped back from a poll take a step of no instructions to come back.
        for _ in 0..4 {
            match self.advance(name, 1, state) {
                Did::Moved | Did::Polled => {}
                did => return Err(did),
            }
            if let Some(strong) = self.watch.strong.get_or_insert_default().pop() {
                return Ok(strong);
            }
        }
        let words =
            format!("{name:?} was to perform a strong access and did not: a bug of the emulator");
        Err(Did::Fault(words))
    }

    /// Starts what can start, and runs every warp to its next strong access, its next barrier or its end. One that comes to
    /// none of these runs into the run's limit.
    pub(super) fn settle(&mut self, order: &mut Order, state: &mut State) -> Did {
        self.watch.pause = true;
        loop {
            if self.executed > self.limit {
                return Did::Moved;
            }
            match self.dispatch_all(state) {
                Did::Moved | Did::Polled => self.begin(order),
                did => return did,
            }
            let runs = |agent: &&Agent| {
                matches!(agent.role, Role::Warp(_))
                    && agent.standing != Standing::Blocked
                    && self.upcoming(agent).is_none()
            };
            let Some(agent) = self.crew.agents().iter().find(runs).copied() else {
                return Did::Moved;
            };
            match self.advance(agent.name, FUEL, state) {
                Did::Moved | Did::Polled => self.follow(agent, order),
                did => return did,
            }
        }
    }

    /// New warps begin behind what their operation waited for.
    fn begin(&mut self, order: &mut Order) {
        for (ended, after) in std::mem::take(&mut self.ended) {
            after.iter().for_each(|&before| order.follow(ended, before));
        }
        let blocks: BTreeSet<Name> = self.blocks.values().map(|block| block.name).collect();
        for block in blocks {
            if order.knows(block) {
                continue;
            }
            let start = Name {
                block: Name::NO_BLOCK,
                warp: 0,
                ..block
            };
            let after = self.grids.get(&start).map(|grid| grid.op);
            let after = after.map_or_else(Vec::new, |op| self.names_after(op));
            let warps = self.crew.agents().iter().map(|agent| agent.name);
            let own = |name: &Name| {
                (name.device, name.op, name.block) == (block.device, block.op, block.block)
            };
            for warp in warps.filter(own) {
                order.clock(warp);
                after.iter().for_each(|&before| order.follow(warp, before));
            }
        }
    }

    /// What an agent did orders others: barriers of its block, the end of its grid.
    pub(super) fn follow(&mut self, agent: Agent, order: &mut Order) {
        let name = agent.name;
        let barrier = |id| Name {
            warp: u32::MAX - id,
            ..name
        };
        for meeting in std::mem::take(&mut self.watch.meetings) {
            match meeting {
                Meeting::Arrived { id } => order.follow(barrier(id), name),
                Meeting::Completed { id, waited } => {
                    for warp in waited {
                        order.follow(Name { warp, ..name }, barrier(id));
                    }
                    order.forget(barrier(id));
                }
            }
        }
        if self.crew.get(name).is_none() {
            let start = Name {
                block: Name::NO_BLOCK,
                warp: 0,
                ..name
            };
            order.follow(start, name);
        }
    }
}
