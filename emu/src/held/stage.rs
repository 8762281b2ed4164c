//! One run of what was enqueued, as far as it has come: whoever drives it chooses which agent goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use slabfence_emu_check::{Finding, Touch};
use slabfence_emu_exec::{Cta, Env, Launch, Step};

use crate::callback::Callback;
use crate::code::Code;
use crate::faults;
use crate::machine::State;
use crate::occupancy::Room;
use crate::operations::{OpId, Operations, Source, Work};
use crate::residency::View;
use crate::task;

use super::crew::{Agent, Crew, Role, Standing};
use super::floor::Floor;
use super::name::{Name, Names};
use super::random::Random;
use super::watch::Watch;

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

/// What an agent did when it was chosen.
pub(super) enum Did {
    /// Something.
    Moved,
    /// A warp polled, and nothing else.
    Polled,
    /// A host function is due; [`Stage::returned`] when it has returned.
    Call(Callback, OpId),
    /// The run cannot go on.
    Fault(String),
}

/// A run.
pub(super) struct Stage {
    ops: Operations,
    names: Arc<Names>,
    starts: BTreeMap<Name, OpId>,
    floor: Floor,
    /// Grids by the name of their start.
    pub(super) grids: BTreeMap<Name, Grid>,
    /// Resident blocks by number; numbers are not used again.
    pub(super) blocks: BTreeMap<usize, Block>,
    next_block: usize,
    /// Who can be chosen.
    pub(super) crew: Crew,
    /// What is seen of it.
    pub(super) watch: Watch,
    /// Draws the order of blocks and their multiprocessors, if they are to be drawn.
    draw: Option<Random>,
    /// `%globaltimer`, virtual nanoseconds.
    pub(super) now: u64,
    tick: u64,
    /// Warp-instructions executed.
    pub(super) executed: u64,
    /// Operations that have completed and those that they waited for, for who follows the order of things.
    pub(super) ended: Vec<(Name, Vec<Name>)>,
    /// What the detector says of the fault that ended the run.
    pub(super) finding: Option<Finding>,
}

/// `%globaltimer` at the start of every run.
pub(super) const BEGINNING: u64 = 1_000_000_000;

impl Stage {
    /// The beginning of a run.
    pub(super) fn new(
        ops: Operations,
        names: Arc<Names>,
        floor: Floor,
        watch: Watch,
        draw: Option<Random>,
        tick: u64,
    ) -> Stage {
        Stage {
            ops,
            names,
            starts: BTreeMap::new(),
            floor,
            grids: BTreeMap::new(),
            blocks: BTreeMap::new(),
            next_block: 0,
            crew: Crew::default(),
            watch,
            draw,
            now: BEGINNING,
            tick,
            executed: 0,
            ended: Vec::new(),
            finding: None,
        }
    }

    /// Whether all operations have completed.
    pub(super) fn complete(&self) -> bool {
        self.ops.is_empty()
    }

    /// The operations that have not completed.
    pub(super) fn operations(&self) -> &Operations {
        &self.ops
    }

    /// The operations that an operation of this run waits for, as numbers.
    fn after(&self, id: OpId) -> Vec<u64> {
        let op = self.ops.get(id);
        op.map_or_else(Vec::new, |op| self.names.numbers(&op.after))
    }

    /// The names of the operations that one waits for.
    pub(super) fn names_after(&self, id: OpId) -> Vec<Name> {
        let op = self.ops.get(id);
        let after = op.map_or(&[][..], |op| &op.after);
        after.iter().filter_map(|&id| self.names.get(id)).collect()
    }

    /// The name of an operation's start.
    pub(super) fn name_of(&self, id: OpId) -> Option<Name> {
        self.names.get(id)
    }

    /// Makes agents of the operations that can start. What has no effect that anyone could see is done at once.
    pub(super) fn open(&mut self, state: &mut State) -> Option<Did> {
        while let Some(id) = self.ops.take_ready() {
            let (Some(op), Some(name)) = (self.ops.get(id), self.names.get(id)) else {
                continue;
            };
            match op.work {
                Work::Marker | Work::Record(_) | Work::Retire(_) => {
                    if let Some(did) = self.perform(id, name, state) {
                        return Some(did);
                    }
                }
                Work::Kernel(_) | Work::Copy { .. } | Work::Fill { .. } | Work::Host(_) => {
                    self.starts.insert(name, id);
                    self.crew.add(name, Role::Start);
                }
            }
        }
        None
    }

    /// Does an operation that is over at once.
    fn perform(&mut self, id: OpId, name: Name, state: &mut State) -> Option<Did> {
        let work = self.ops.get(id)?.work.clone();
        let touches = self.touches(&work);
        let mut world = state.world(self.now);
        if let Err((code, words)) = task::perform(work, id, name.device, &mut world) {
            return Some(self.fault(state, name.device, code, words));
        }
        self.watch.name = name;
        if !touches.is_empty() {
            self.watch.note(&[]);
            self.watch.writes += 1;
            self.crew.wake(Standing::Parked, |_| true);
        }
        let after = self.after(id);
        let number = name.op_number();
        let detector = &mut self.watch.detector;
        detector.task(number, name.device, &after, &touches);
        self.completed(id, name);
        None
    }

    fn touches(&mut self, work: &Work) -> Vec<Touch> {
        let mut touch = |address, len, write| {
            let address = self.watch.home(address);
            Touch {
                address,
                len,
                write,
            }
        };
        match *work {
            Work::Copy {
                to,
                ref from,
                len,
                checked,
            } => {
                let mut touches = Vec::new();
                match from {
                    Source::Address(from) if checked.1 => touches.push(touch(*from, len, false)),
                    _ => {}
                }
                if checked.0 {
                    touches.push(touch(to, len, true));
                }
                touches
            }
            Work::Fill {
                to, width, count, ..
            } => vec![touch(to, count * width as u64, true)],
            _ => Vec::new(),
        }
    }

    fn fault(&mut self, state: &mut State, device: u32, code: Code, words: String) -> Did {
        log::info!("emulator: in a held run: {words}");
        state.devices[device as usize].error = Some(code);
        Did::Fault(words)
    }

    /// Lets an agent go on; a warp for at most `fuel` instructions.
    pub(super) fn advance(&mut self, name: Name, fuel: u32, state: &mut State) -> Did {
        let Some(agent) = self.crew.get(name) else {
            return Did::Moved;
        };
        let did = match agent.role {
            Role::Start => self.start(name, state),
            Role::Dispatch => self.dispatch(name),
            Role::Warp(block) => self.warp(agent, block, fuel, state),
        };
        if matches!(did, Did::Moved | Did::Polled)
            && let Some(other) = self.open(state)
        {
            return other;
        }
        did
    }

    fn start(&mut self, name: Name, state: &mut State) -> Did {
        self.crew.remove(name);
        let Some(id) = self.starts.remove(&name) else {
            return Did::Moved;
        };
        let Some(op) = self.ops.get(id) else {
            return Did::Moved;
        };
        match &op.work {
            Work::Kernel(launch) => {
                let launch = Launch {
                    tag: name.op_number(),
                    ..Launch::clone(launch)
                };
                self.admit(id, name, launch);
                Did::Moved
            }
            &Work::Host(callback) => Did::Call(callback, id),
            _ => self.perform(id, name, state).unwrap_or(Did::Moved),
        }
    }

    /// A host function has returned.
    pub(super) fn returned(&mut self, id: OpId, state: &mut State) -> Option<Did> {
        let name = self.names.get(id)?;
        let after = self.after(id);
        let detector = &mut self.watch.detector;
        detector.task(name.op_number(), name.device, &after, &[]);
        self.completed(id, name);
        self.open(state)
    }

    fn completed(&mut self, id: OpId, name: Name) {
        let after = self.names_after(id);
        self.ops.complete(id);
        self.ended.push((name, after));
    }

    fn admit(&mut self, op: OpId, name: Name, launch: Launch) {
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
    fn dispatch(&mut self, name: Name) -> Did {
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

    fn warp(&mut self, agent: Agent, number: usize, fuel: u32, state: &mut State) -> Did {
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
        };
        let mut env = Env {
            memory: &mut memory,
            hook: &mut self.watch,
            globaltimer: self.now,
            clock: self.executed,
            executed: 0,
        };
        let step = block.cta.step(name.warp as usize, &mut env, fuel);
        let did = env.executed;
        self.executed += did;
        state.engine.executed += did;
        self.now += did * self.tick;
        let cta = &block.cta;
        let same_block = |other: &Agent| other.role == Role::Warp(number);
        self.crew.wake(Standing::Blocked, |other| {
            same_block(other) && cta.runnable(other.name.warp as usize)
        });
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
                let checker = self.watch.detector.0.as_deref();
                self.finding = checker.and_then(|checker| checker.fault(op, &fault));
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
