//! Device work: a graph of operations, and the execution of those whose dependencies are done.
//!
//! Everything that a stream orders becomes edges here: the previous operation of the stream, an event's operation, the
//! legacy stream's barrier, a graph's edges. The engine has no thread and no clock of its own; whoever drives it calls
//! [`Engine::step`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use slabfence_emu_exec::Launch;

use crate::callback::Callback;
use crate::code::Code;
use crate::faults;
use crate::host;
use crate::residency::{Residency, Turn};
use crate::va::Kind;
use crate::world::World;

/// One operation, never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct OpId(u64);

/// Where a copy reads.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// An address.
    Address(u64),
    /// Bytes that were taken when the copy was enqueued (pageable host memory).
    Bytes(Arc<[u8]>),
}

/// What an operation does.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// Nothing: joins its dependencies.
    Marker,
    /// Runs a grid.
    Kernel(Arc<Launch>),
    /// Copies bytes. `checked` says which ends are memory of the machine (to, from).
    Copy {
        to: u64,
        from: Source,
        len: u64,
        checked: (bool, bool),
    },
    /// Stores an element of `width` bytes `count` times.
    Fill {
        to: u64,
        element: [u8; 4],
        width: usize,
        count: u64,
    },
    /// Calls a host function.
    Host(Callback),
    /// Frees an allocation.
    Free(u64),
    /// Stamps an event with the time.
    Record(u64),
    /// Gives up a graph exec that was destroyed while it ran.
    Retire(u64),
}

struct Op {
    device: u32,
    work: Work,
    waiting: usize,
    dependents: Vec<OpId>,
}

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
    next: u64,
    ops: BTreeMap<OpId, Op>,
    ready: VecDeque<OpId>,
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
        let (ops, ready, calls) = (BTreeMap::new(), VecDeque::new(), VecDeque::new());
        Engine {
            next: 0,
            ops,
            ready,
            residency,
            calls,
            executed: 0,
            news: false,
        }
    }

    /// Enqueues work of a device behind operations, of which those that are done do not count.
    pub(crate) fn enqueue(&mut self, device: u32, work: Work, after: &[OpId]) -> OpId {
        self.next += 1;
        let id = OpId(self.next);
        let mut after = after.to_vec();
        after.sort_unstable();
        after.dedup();
        let mut waiting = 0;
        for before in after {
            if let Some(op) = self.ops.get_mut(&before) {
                op.dependents.push(id);
                waiting += 1;
            }
        }
        if waiting == 0 {
            self.ready.push_back(id);
        }
        self.ops.insert(
            id,
            Op {
                device,
                work,
                waiting,
                dependents: Vec::new(),
            },
        );
        id
    }

    /// Whether the operation has not completed.
    pub(crate) fn pending(&self, id: OpId) -> bool {
        self.ops.contains_key(&id)
    }

    /// The operations of a device (of all devices for `None`) that have not completed.
    pub(crate) fn outstanding(&self, device: Option<u32>) -> Vec<OpId> {
        let of = |op: &Op| device.is_none_or(|device| op.device == device);
        self.ops
            .iter()
            .filter(|(_, op)| of(op))
            .map(|(&id, _)| id)
            .collect()
    }

    /// Whether operations have completed since this was last asked.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// Whether operations can start.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Completes an operation and makes ready what waited for it.
    pub(crate) fn complete(&mut self, id: OpId) {
        let Some(op) = self.ops.remove(&id) else {
            return;
        };
        self.news = true;
        for next in op.dependents {
            if let Some(dependent) = self.ops.get_mut(&next) {
                dependent.waiting -= 1;
                if dependent.waiting == 0 {
                    self.ready.push_back(next);
                }
            }
        }
    }

    /// Ends all work of a device whose context broke: grids stop where they are, the rest completes without effect.
    pub(crate) fn abort(&mut self, device: u32) {
        for id in self.residency.evict(device) {
            self.complete(id);
        }
        for op in self.ops.values_mut().filter(|op| op.device == device) {
            // A host function that is being called completes when it returns.
            if !matches!(op.work, Work::Retire(_) | Work::Record(_)) {
                op.work = Work::Marker;
            }
        }
    }

    /// Runs for about `budget` warp-instructions.
    pub(crate) fn step(&mut self, world: &mut World<'_>, budget: u64) -> Progress {
        let mut started = 0;
        while let Some(id) = self.ready.pop_front() {
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
                let device = self.ops.get(&id).map_or(0, |op| op.device);
                let words = faults::describe(&fault, device, &world.memory.map);
                self.fault(world, id, device, faults::code(&fault.kind), words);
                Progress::Ran
            }
            Turn::Empty | Turn::Polled | Turn::Ran => Progress::Ran,
        };
        // Completing may have made more ready: then there is more to do.
        if progress == Progress::Idle && !self.ready.is_empty() {
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
        let Some(op) = self.ops.get(&id) else { return };
        let device = op.device;
        match op.work.clone() {
            Work::Marker => {}
            Work::Kernel(launch) => return self.residency.admit(id, device, launch),
            Work::Host(callback) => return self.calls.push_back((callback, Some(id))),
            Work::Free(base) => {
                if let Err(code) = world.memory.free(base, Kind::Device) {
                    log::warn!("emulator: freeing {base:#x} in stream order failed with {code:?}");
                }
            }
            Work::Record(event) => world.events.stamp(event, id, world.now),
            Work::Retire(exec) => self.calls.extend(
                world
                    .graphs
                    .retire(exec)
                    .into_iter()
                    .map(|call| (call, None)),
            ),
            Work::Copy {
                to,
                from,
                len,
                checked,
            } => {
                let from_ok = match from {
                    Source::Address(from) => {
                        !checked.1 || world.memory.copyable(device, from, len, false)
                    }
                    Source::Bytes(_) => true,
                };
                if !from_ok || checked.0 && !world.memory.copyable(device, to, len, true) {
                    let (bad, write) = match from {
                        Source::Address(from) if !from_ok => (from, false),
                        _ => (to, true),
                    };
                    let there = world.memory.map.describe(device, bad, write);
                    let words = format!(
                        "copy of {len} bytes on device {device}: {bad:#x} is not accessible ({there})"
                    );
                    return self.fault(world, id, device, Code::ILLEGAL_ADDRESS, words);
                }
                match &from {
                    Source::Address(from) => host::copy(to, *from, len),
                    Source::Bytes(bytes) => host::store(to, bytes),
                }
            }
            Work::Fill {
                to,
                element,
                width,
                count,
            } => {
                let len = count * width as u64;
                if !world.memory.copyable(device, to, len, true) {
                    let there = world.memory.map.describe(device, to, true);
                    let words = format!(
                        "fill of {len} bytes on device {device}: {to:#x} is not accessible ({there})"
                    );
                    return self.fault(world, id, device, Code::ILLEGAL_ADDRESS, words);
                }
                host::fill(to, width, &element, count);
            }
        }
        self.complete(id);
    }
}
