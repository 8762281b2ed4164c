//! What a run changes, as it was before the first run.

use std::ops::Range;

use crate::code::Code;
use crate::event::Events;
use crate::host;
use crate::machine::State;
use crate::operations::Operations;

use super::changed::{Changed, PAGE};
use super::places::Places;

/// The state of a held machine from which every run starts.
pub(super) struct Snapshot {
    /// What was enqueued.
    pub(super) ops: Operations,
    events: Events,
    errors: Vec<Option<Code>>,
    faults: usize,
    memory: Vec<Piece>,
    generation: u64,
}

/// Memory of one allocation.
struct Piece {
    base: u64,
    bytes: Box<[u8]>,
    /// Its pages.
    pages: Range<usize>,
    /// Whether host functions, and whoever checks a run, may write to it unseen.
    hosts: bool,
}

impl Snapshot {
    /// Takes the state as it is, every byte of memory once.
    pub(super) fn take(state: &State, places: &Places) -> Snapshot {
        let memory = places.homes().map(|place| Piece {
            base: place.base,
            bytes: host::snapshot(place.base, place.len),
            pages: place.pages(),
            hosts: place.kind.is_host(),
        });
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

    /// Puts everything back, apart from the operations; of memory what has changed.
    pub(super) fn restore(&self, state: &mut State, changed: &Changed) {
        for piece in &self.memory {
            piece.restore(changed);
        }
        changed.clear();
        debug_assert!(
            self.memory.iter().all(Piece::is_there),
            "memory changed and was not marked"
        );
        state.events = self.events.clone();
        for (device, &error) in state.devices.iter_mut().zip(&self.errors) {
            device.error = error;
        }
        state.faults.truncate(self.faults);
    }
}

impl Piece {
    fn restore(&self, changed: &Changed) {
        if self.hosts {
            return host::store(self.base, &self.bytes);
        }
        for pages in changed.within(self.pages.clone()) {
            let place = |page: usize| (page - self.pages.start) * PAGE as usize;
            let (from, to) = (place(pages.start), place(pages.end));
            let bytes = &self.bytes[from..to.min(self.bytes.len())];
            host::store(self.base + from as u64, bytes);
        }
    }

    fn is_there(&self) -> bool {
        host::snapshot(self.base, self.bytes.len() as u64) == self.bytes
    }
}
