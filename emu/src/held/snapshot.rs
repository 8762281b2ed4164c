//! What a run changes, as it was before the first run.

use crate::code::Code;
use crate::event::Events;
use crate::host;
use crate::machine::State;
use crate::operations::Operations;

use super::places::Places;

/// The state of a held machine from which every run starts.
pub(super) struct Snapshot {
    /// What was enqueued.
    pub(super) ops: Operations,
    events: Events,
    errors: Vec<Option<Code>>,
    faults: usize,
    memory: Vec<(u64, Box<[u8]>)>,
    generation: u64,
}

impl Snapshot {
    /// Takes the state as it is, every byte of memory once.
    pub(super) fn take(state: &State, places: &Places) -> Snapshot {
        let bytes = |base, len| (base, host::snapshot(base, len));
        let memory = places.homes().map(|place| bytes(place.base, place.len));
        Snapshot {
            ops: state.engine.ops.clone(),
            events: state.events.clone(),
            errors: state.devices.iter().map(|device| device.error).collect(),
            faults: state.faults.len(),
            memory: memory.collect(),
            generation: state.memory.map.generation(),
        }
    }

    /// Whether the machine still has the memory and the operations that the snapshot is of.
    pub(super) fn fits(&self, state: &State) -> bool {
        self.generation == state.memory.map.generation()
            && self.ops.enqueued() == state.engine.ops.enqueued()
    }

    /// Puts everything back, apart from the operations.
    pub(super) fn restore(&self, state: &mut State) {
        for (base, bytes) in &self.memory {
            host::store(*base, bytes);
        }
        state.events = self.events.clone();
        for (device, &error) in state.devices.iter_mut().zip(&self.errors) {
            device.error = error;
        }
        state.faults.truncate(self.faults);
    }
}
