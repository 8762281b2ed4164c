//! What a detector is told besides accesses: memory, and when operations begin and end.

use slabfence_emu_exec::{Fast, Hook};
use slabfence_sys::RangeNote;

use super::places::Place;

/// Bytes that a copy or a fill touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    /// First byte, at its home address.
    pub(super) address: u64,
    /// Bytes.
    pub(super) len: u64,
    /// Whether they are written.
    pub(super) write: bool,
}

/// A hook that also follows operations. Numbers of operations are those of grids' tags.
pub(super) trait Observe: Hook {
    /// There is memory.
    fn memory(&mut self, place: &Place);
    /// The library said what part of it is; `base` is the home address.
    fn announced(&mut self, note: &RangeNote);
    /// A grid begins behind these operations.
    fn begin(&mut self, op: u64, device: u32, after: &[u64]);
    /// A grid has ended.
    fn end(&mut self, op: u64);
    /// An operation that is over at once is done, behind these.
    fn task(&mut self, op: u64, device: u32, after: &[u64], touches: &[Touch]);
}

impl Observe for Fast {
    fn memory(&mut self, _: &Place) {}
    fn announced(&mut self, _: &RangeNote) {}
    fn begin(&mut self, _: u64, _: u32, _: &[u64]) {}
    fn end(&mut self, _: u64) {}
    fn task(&mut self, _: u64, _: u32, _: &[u64], _: &[Touch]) {}
}
