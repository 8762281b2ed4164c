//! The graph of operations: what waits for what, and what can start.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use slabfence_emu_exec::Launch;

use crate::callback::Callback;
use crate::taken::Taken;

/// One operation, never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct OpId(pub(crate) u64);

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
    /// Runs a grid, with the addresses that its parameters held when they were taken.
    Kernel(Arc<Launch>, Taken),
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

/// An operation that has not completed.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    /// The device that does it.
    pub(crate) device: u32,
    /// What it does.
    pub(crate) work: Work,
    /// The operations that it was enqueued behind, those included that have completed since.
    pub(crate) after: Vec<OpId>,
    waiting: usize,
    dependents: Vec<OpId>,
}

impl Op {
    /// The operations that were enqueued behind it.
    pub(crate) fn dependents(&self) -> &[OpId] {
        &self.dependents
    }
}

/// All operations of a machine that have not completed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operations {
    next: u64,
    ops: BTreeMap<OpId, Op>,
    ready: VecDeque<OpId>,
}

impl Operations {
    /// Enqueues work of a device behind operations, of which those that are done do not count.
    pub(crate) fn enqueue(&mut self, device: u32, work: Work, after: &[OpId]) -> OpId {
        self.next += 1;
        let id = OpId(self.next);
        let mut after = after.to_vec();
        after.sort_unstable();
        after.dedup();
        after.retain(|before| match self.ops.get_mut(before) {
            Some(op) => {
                op.dependents.push(id);
                true
            }
            None => false,
        });
        if after.is_empty() {
            self.ready.push_back(id);
        }
        self.ops.insert(
            id,
            Op {
                device,
                work,
                waiting: after.len(),
                after,
                dependents: Vec::new(),
            },
        );
        id
    }

    /// How many were ever enqueued.
    pub(crate) fn enqueued(&self) -> u64 {
        self.next
    }

    /// The operation, unless it has completed.
    pub(crate) fn get(&self, id: OpId) -> Option<&Op> {
        self.ops.get(&id)
    }

    /// All of them, in the order in which they were enqueued.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (OpId, &Op)> {
        self.ops.iter().map(|(&id, op)| (id, op))
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Whether operations can start.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next operation that can start.
    pub(crate) fn take_ready(&mut self) -> Option<OpId> {
        self.ready.pop_front()
    }

    /// Completes an operation and makes ready what waited for it; false if it had completed.
    pub(crate) fn complete(&mut self, id: OpId) -> bool {
        let Some(op) = self.ops.remove(&id) else {
            return false;
        };
        for next in op.dependents {
            if let Some(dependent) = self.ops.get_mut(&next) {
                dependent.waiting -= 1;
                if dependent.waiting == 0 {
                    self.ready.push_back(next);
                }
            }
        }
        true
    }

    /// Takes the effect away from what a device was to do.
    pub(crate) fn void(&mut self, device: u32) {
        for op in self.ops.values_mut().filter(|op| op.device == device) {
            // A host function that is being called completes when it returns.
            if !matches!(op.work, Work::Retire(_) | Work::Record(_)) {
                op.work = Work::Marker;
            }
        }
    }
}
