//! Device work: a graph of operations, and the execution of those whose dependencies are done.
//!
//! Everything that a stream orders becomes edges here: the previous operation of the stream, an event's operation, the
//! legacy stream's barrier, a graph's edges. The engine has no thread and no clock of its own; whoever drives it calls
//! [`Engine::step`].

use std::collections::VecDeque;

use crate::callback::Callback;
use crate::code::Code;
use crate::faults;
use crate::operations::{OpId, Operations, Work};
use crate::residency::{Residency, Turn};
use crate::task;
use crate::world::World;

/// What a step of the engine came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// There is nothing to do until something is enqueued or a callback returns.
    Idle,
    /// Work was done and there is more.
    Ran,
    /// All resident warps only poll, and nothing has changed for some rounds.
    Polled,
}

/// The operations of a machine.
pub(crate) struct Engine {
    /// What has not completed.
    pub(crate) ops: Operations,
    residency: Residency,
    /// Host functions that are due, with the operation that each one is.
    pub(crate) calls: VecDeque<(Callback, Option<OpId>)>,
    /// Warp-instructions executed so far.
    pub(crate) executed: u64,
    /// Whether operations completed that nobody was told of.
    news: bool,
}

impl Engine {
    /// An engine with nothing to do.
    pub(crate) fn new(residency: Residency) -> Engine {
        Engine {
            ops: Operations::default(),
            residency,
            calls: VecDeque::new(),
            executed: 0,
            news: false,
        }
    }

    /// Enqueues work of a device behind operations, of which those that are done do not count.
    pub(crate) fn enqueue(&mut self, device: u32, work: Work, after: &[OpId]) -> OpId {
        self.ops.enqueue(device, work, after)
    }

    /// Whether the operation has not completed.
    pub(crate) fn pending(&self, id: OpId) -> bool {
        self.ops.get(id).is_some()
    }

    /// The operations of a device (of all devices for `None`) that have not completed.
    pub(crate) fn outstanding(&self, device: Option<u32>) -> Vec<OpId> {
        let of = |op: &crate::operations::Op| device.is_none_or(|device| op.device == device);
        let ops = self.ops.iter().filter(|(_, op)| of(op));
        ops.map(|(id, _)| id).collect()
    }

    /// Whether operations have completed since this was last asked.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// Whether operations can start.
    pub(crate) fn has_ready(&self) -> bool {
        self.ops.has_ready()
    }

    /// Whether there is nothing to do until something is enqueued or a callback returns.
    pub(crate) fn rests(&self) -> bool {
        !self.ops.has_ready() && self.residency.is_empty()
    }

    /// Completes an operation and makes ready what waited for it.
    pub(crate) fn complete(&mut self, id: OpId) {
        self.news |= self.ops.complete(id);
    }

    /// Ends all work of a device whose context broke: grids stop where they are, the rest completes without effect.
    pub(crate) fn abort(&mut self, device: u32) {
        for id in self.residency.evict(device) {
            self.complete(id);
        }
        self.ops.void(device);
    }

    /// Runs for about `budget` warp-instructions.
    pub(crate) fn step(&mut self, world: &mut World<'_>, budget: u64) -> Progress {
        let mut started = 0;
        while let Some(id) = self.ops.take_ready() {
            self.start(id, world);
            started += 1;
        }
        let turn = self.residency.run(world, budget, &mut self.executed);
        let progress = match turn {
            Turn::Empty if started == 0 => Progress::Idle,
            Turn::Polled if started == 0 => Progress::Polled,
            Turn::Finished(id) => {
                self.complete(id);
                Progress::Ran
            }
            Turn::Faulted(id, fault) => {
                let device = self.ops.get(id).map_or(0, |op| op.device);
                let words = faults::describe(&fault, device, &world.memory.map);
                self.fault(world, id, device, faults::code(&fault.kind), words);
                Progress::Ran
            }
            Turn::Empty | Turn::Polled | Turn::Ran => Progress::Ran,
        };
        // Completing may have made more ready: then there is more to do.
        if progress == Progress::Idle && self.ops.has_ready() {
            Progress::Ran
        } else {
            progress
        }
    }

    /// Breaks the context of a device with what its operation `id` did. The operation ends with the device's other work:
    /// nobody else would end it, and whoever waits for it would wait for ever.
    fn fault(&mut self, world: &mut World<'_>, id: OpId, device: u32, code: Code, words: String) {
        log::error!("emulator: {words}");
        world.devices[device as usize].error = Some(code);
        world.faults.push(words);
        self.abort(device);
        self.complete(id);
    }

    fn start(&mut self, id: OpId, world: &mut World<'_>) {
        let Some(op) = self.ops.get(id) else { return };
        let device = op.device;
        match op.work.clone() {
            Work::Kernel(launch, taken) => {
                let stale = world.memory.stale(&taken);
                return self.residency.admit(id, device, launch, stale);
            }
            Work::Host(callback) => return self.calls.push_back((callback, Some(id))),
            Work::Retire(exec) => self.calls.extend(
                world
                    .graphs
                    .retire(exec)
                    .into_iter()
                    .map(|call| (call, None)),
            ),
            work => {
                if let Err((code, words)) = task::perform(work, id, device, world) {
                    return self.fault(world, id, device, code, words);
                }
            }
        }
        self.complete(id);
    }
}
