//! Where threads meet: barriers of a block, and the boundary between two kernels of a stream.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::machine::{Machine, World};
use crate::head::Knowledge;
use crate::scope::Place;

/// A meeting point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Gate {
    /// A barrier of the block at `place`. Without a count it opens when every thread that can still come to it is there;
    /// with one, for any that many threads.
    Barrier {
        place: Place,
        id: i64,
        count: Option<i64>,
    },
    /// The end of the running kernel of a device's stream.
    Kernel { gpu: u32 },
}

impl Gate {
    /// The boundary of the stream of the device at `place`.
    pub(super) fn kernel(place: Place) -> Self {
        match place {
            Place::Device { gpu, .. } => Self::Kernel { gpu },
            Place::Host => unreachable!("the parser refuses kernels on the host"),
        }
    }
}

/// Threads that arrived at barriers without waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Gates(BTreeMap<Gate, (BTreeSet<usize>, Knowledge)>);

impl Gates {
    pub(super) fn arrive(&mut self, gate: Gate, thread: usize, knows: &Knowledge) {
        let (threads, all) = self.0.entry(gate).or_default();
        threads.insert(thread);
        all.join(knows);
    }

    fn arrived(&self, gate: &Gate) -> (BTreeSet<usize>, Knowledge) {
        self.0.get(gate).cloned().unwrap_or_default()
    }
}

fn waiters(world: &World) -> BTreeMap<Gate, Vec<usize>> {
    let mut gates = BTreeMap::<Gate, Vec<usize>>::new();
    for (t, process) in world.processes.iter().enumerate() {
        if let Some(gate) = process.waits {
            gates.entry(gate).or_default().push(t);
        }
    }
    gates
}

impl Machine<'_> {
    /// Opens every gate that no thread is missing from. Whether one opened.
    pub(super) fn open_gates(&self, world: &mut World) -> bool {
        let mut opened = false;
        for (gate, waiting) in waiters(world) {
            let is_missing = |t: usize| match gate {
                Gate::Barrier { place, id, .. } => {
                    self.place(t) == place && self.ahead(world, t).barrier(id)
                }
                Gate::Kernel { gpu } => {
                    let here = matches!(self.place(t), Place::Device { gpu: g, .. } if g == gpu);
                    here && self.ahead(world, t).kernel
                }
            };
            let (arrived, knows) = world.gates.arrived(&gate);
            let mut others =
                (0..world.processes.len()).filter(|t| !waiting.contains(t) && !arrived.contains(t));
            if matches!(gate, Gate::Barrier { count: Some(_), .. }) || others.any(is_missing) {
                continue;
            }
            self.open(world, gate, &knows, &waiting);
            opened = true;
        }
        opened
    }

    fn open(&self, world: &mut World, gate: Gate, arrived: &Knowledge, waiting: &[usize]) {
        match gate {
            Gate::Barrier { .. } => self.model.barrier(&mut world.state, arrived, waiting),
            Gate::Kernel { .. } => self.model.next_kernel(&mut world.state, waiting),
        }
        for &t in waiting {
            Rc::make_mut(&mut world.processes[t]).waits = None;
        }
        if world.gates.0.contains_key(&gate) {
            Rc::make_mut(&mut world.gates).0.remove(&gate);
        }
    }

    /// All ways in which a counted barrier can open: for which threads depends on who came first.
    pub(super) fn counted_openings(&self, world: &World) -> Vec<World> {
        let mut openings = Vec::new();
        for (gate, waiting) in waiters(world) {
            let Gate::Barrier {
                count: Some(count), ..
            } = gate
            else {
                continue;
            };
            let (arrived, knows) = world.gates.arrived(&gate);
            for set in 1..1u32 << waiting.len() {
                let chosen = waiting
                    .iter()
                    .enumerate()
                    .filter(|(bit, _)| set >> bit & 1 == 1);
                let chosen: Vec<usize> = chosen.map(|(_, &t)| t).collect();
                if (chosen.len() + arrived.len()) as i64 == count {
                    let mut after = world.clone();
                    self.open(&mut after, gate, &knows, &chosen);
                    openings.push(after);
                }
            }
        }
        openings
    }
}
