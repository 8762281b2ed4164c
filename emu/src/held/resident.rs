//! Grids and blocks of a run: dispatch, turns, ends.

use std::sync::Arc;

use slabfence_emu_exec::{Cta, Env, Launch, Step};

use crate::faults;
use crate::machine::State;
use crate::occupancy::Room;
use crate::operations::OpId;
use crate::residency::View;

use super::crew::{Agent, Role, Standing};
use super::name::Name;
use super::stage::{Did, Stage};

/// Blocks of a grid whose order is drawn; larger grids are dispatched in order.
const DRAWN: u64 = 1 << 16;

/// A grid that has not ended.
pub(super) struct Grid {
    pub(super) op: OpId,
    pub(super) launch: Arc<Launch>,
    room: Room,
    /// Blocks that were not resident yet, the next one last; empty for a grid too large to draw.
    order: Vec<u64>,
    /// Blocks that became resident.
    placed: u64,
    pub(super) total: u64,
    live: u64,
}

impl Grid {
    /// Blocks that were never resident.
    pub(super) fn waiting(&self) -> u64 {
        self.total - self.placed
    }
}

/// A resident block.
pub(super) struct Block {
    pub(super) name: Name,
    sm: u32,
    pub(super) cta: Cta,
}

impl Stage {
    pub(super) fn admit(&mut self, op: OpId, name: Name, launch: Launch) {
        let room = Room::block(
            &launch.kernel,
            launch.threads() as u32,
            launch.dynamic_shared,
        );
        let total = launch.grid.iter().map(|&n| u64::from(n)).product();
        let mut order = Vec::new();
        if let Some(draw) = &mut self.draw
            && total <= DRAWN
        {
            order.extend(0..total);
            draw.shuffle(&mut order);
        }
        let after = self.after(op);
        let detector = &mut self.watch.detector;
        detector.begin(name.op_number(), name.device, &after);
        let grid = Grid {
            op,
            launch: Arc::new(launch),
            room,
            order,
            placed: 0,
            total,
            live: 0,
        };
        self.grids.insert(name, grid);
        self.crew.add(name, Role::Dispatch);
    }

    /// Makes the next block of a grid resident, if there is room.
    pub(super) fn dispatch(&mut self, name: Name) -> Did {
        let Some(grid) = self.grids.get_mut(&name) else {
            return Did::Moved;
        };
        let multiprocessors = grid.launch.multiprocessors as usize;
        let first = match &mut self.draw {
            Some(draw) => draw.below(multiprocessors),
            None => grid.placed as usize % multiprocessors.max(1),
        };
        let Some(sm) = self.floor.take(name.device, grid.room, first) else {
            self.crew.set(name, Standing::Blocked);
            return Did::Moved;
        };
        let block = grid.order.pop().unwrap_or(grid.placed);
        grid.placed += 1;
        grid.live += 1;
        let [x, y, _] = grid.launch.grid.map(u64::from);
        let at = [block % x, block / x % y, block / x / y].map(|n| n as u32);
        let cta = Cta::new(&grid.launch, at, sm);
        if grid.waiting() == 0 {
            self.crew.remove(name);
        }
        let name = Name { block, ..name };
        for warp in 0..cta.warps() as u32 {
            let name = Name { warp, ..name };
            self.crew.add(name, Role::Warp(self.next_block));
        }
        self.blocks.insert(self.next_block, Block { name, sm, cta });
        self.next_block += 1;
        Did::Moved
    }

    pub(super) fn warp(
        &mut self,
        agent: Agent,
        number: usize,
        fuel: u32,
        state: &mut State,
    ) -> Did {
        let Some(block) = self.blocks.get_mut(&number) else {
            return Did::Moved;
        };
        let (name, device) = (agent.name, agent.name.device);
        self.watch.name = name;
        self.watch.block = number as u64;
        let writes = self.watch.writes;
        let mut memory = View {
            map: &state.memory.map,
            device,
            stale: &[],
            used: &Default::default(),
        };
        let mut env = Env {
            memory: &mut memory,
            hook: &mut self.watch,
            globaltimer: self.now,
            clock: self.executed + self.idle,
            executed: 0,
        };
        let step = block.cta.step(name.warp as usize, &mut env, fuel);
        let did = env.executed;
        self.executed += did;
        state.engine.executed += did;
        self.now += did * self.tick;
        let cta = &block.cta;
        let same_block = |other: &Agent| other.role == Role::Warp(number);
        if std::mem::take(&mut self.watch.released) {
            self.crew.wake(Standing::Blocked, |other| {
                same_block(other) && cta.runnable(other.name.warp as usize)
            });
        }
        if self.watch.writes != writes {
            self.crew.wake(Standing::Parked, |_| true);
        }
        match step {
            Step::Ran => self.crew.set(name, Standing::Ready),
            Step::Polled => {
                self.crew.set(name, Standing::Parked);
                return Did::Polled;
            }
            Step::Barrier => self.crew.set(name, Standing::Blocked),
            Step::Exited => self.crew.remove(name),
            Step::CtaDone => {
                self.crew.remove_all(same_block);
                self.leave(number);
            }
            Step::Fault(fault) => {
                let op = name.op_number();
                let address = fault.kind.global_address();
                let home = address.map(|address| self.watch.home(address));
                let checker = self.watch.detector.0.as_deref();
                let was = || Some(state.memory.map.removed_at(address?)?.words());
                self.finding = checker.and_then(|checker| checker.fault(op, &fault, home, was));
                let words = faults::describe(&fault, device, &state.memory.map);
                return self.fault(state, device, faults::code(&fault.kind), words);
            }
        }
        Did::Moved
    }

    /// A block ended: frees its room, and completes the operation if it was the grid's last.
    fn leave(&mut self, number: usize) {
        let Some(block) = self.blocks.remove(&number) else {
            return;
        };
        let device = block.name.device;
        let name = Name {
            block: Name::NO_BLOCK,
            warp: 0,
            ..block.name
        };
        let Some(grid) = self.grids.get_mut(&name) else {
            return;
        };
        self.floor.give(device, grid.room, block.sm);
        grid.live -= 1;
        self.crew.wake(Standing::Blocked, |other| {
            other.role == Role::Dispatch && other.name.device == device
        });
        if grid.live == 0 && grid.waiting() == 0 {
            let op = grid.op;
            self.grids.remove(&name);
            self.watch.detector.end(name.op_number());
            self.completed(op, name);
        }
    }
}
