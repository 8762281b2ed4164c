//! What the engine works on: the machine's state without the engine itself.

use crate::device::Device;
use crate::event::Events;
use crate::graph::Graphs;
use crate::memory::Memory;

/// Everything that an operation may change.
pub(crate) struct World<'a> {
    /// Memory.
    pub(crate) memory: &'a mut Memory,
    /// Devices, for their error state.
    pub(crate) devices: &'a mut [Device],
    /// Events, for their times.
    pub(crate) events: &'a mut Events,
    /// Graph execs, for those that end with their last launch.
    pub(crate) graphs: &'a mut Graphs,
    /// Faults in words.
    pub(crate) faults: &'a mut Vec<String>,
    /// `%globaltimer` now, nanoseconds.
    pub(crate) now: u64,
}
