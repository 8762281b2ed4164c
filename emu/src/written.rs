//! Which bytes of memory hold something: what the checking mode starts from when a machine is held.
//!
//! Copies and fills are known to the byte. Of what kernels of ordinary runs store only the allocation is known, since the
//! fast interpreter tells of no access: it counts as written all over, and so does what other processes may write.

use std::collections::BTreeMap;

use crate::memory::Memory;
use crate::va::{Kind, Range};

/// A piece of memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Piece {
    /// The memory of the range of this [id](Range::id).
    Own(u64),
    /// A physical allocation, by handle, however often it is mapped.
    Physical(u64),
}

/// Spans of bytes, each from its key to its value; they neither meet nor overlap.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Written(BTreeMap<u64, u64>);

impl Written {
    /// Adds the bytes from one offset to another.
    pub(crate) fn add(&mut self, from: u64, to: u64) {
        let (mut from, mut to) = (from, to);
        while let Some((&start, &end)) = self.0.range(..=to).next_back()
            && end >= from
        {
            self.0.remove(&start);
            (from, to) = (from.min(start), to.max(end));
        }
        self.0.insert(from, to);
    }

    /// Takes out the bytes from one offset to another.
    pub(crate) fn remove(&mut self, from: u64, to: u64) {
        while let Some((&start, &end)) = self.0.range(..to).next_back()
            && end > from
        {
            self.0.remove(&start);
            if start < from {
                self.0.insert(start, from);
            }
            if end > to {
                self.0.insert(to, end);
            }
            if start < from {
                break;
            }
        }
    }

    /// The spans, as far as they lie in the first `len` bytes.
    pub(crate) fn within(&self, len: u64) -> Vec<(u64, u64)> {
        let spans = self.0.range(..len);
        spans.map(|(&from, &to)| (from, to.min(len))).collect()
    }
}

/// The memory that a range shows, if its bytes are told apart: the host may write its own at any time, and variables
/// have values from the start.
pub(crate) fn piece(range: &Range) -> Option<Piece> {
    match range.kind {
        Kind::Device => Some(Piece::Own(range.id)),
        Kind::Mapping(handle) => Some(Piece::Physical(handle)),
        Kind::Global | Kind::Host => None,
    }
}

impl Memory {
    /// A fill, or a copy of what holds something, has written `len` bytes.
    pub(crate) fn wrote(&mut self, address: u64, len: u64) {
        self.mark(address, len, Written::add);
    }

    /// A copy has written `len` bytes: those hold something that do so where they come from.
    pub(crate) fn copied(&mut self, address: u64, from: u64, len: u64) {
        let unwritten = self.unwritten(from, len);
        self.wrote(address, len);
        for (start, end) in unwritten {
            self.mark(address + start, end - start, Written::remove);
        }
    }

    /// The bytes that hold nothing, as spans of offsets.
    fn unwritten(&self, address: u64, len: u64) -> Vec<(u64, u64)> {
        let end = address.saturating_add(len);
        let mut spans = Vec::new();
        for range in self.map.within(address, len) {
            let (mut at, to) = (address.max(range.base), end.min(range.end()));
            for (from, until) in self.written(range).unwrap_or(vec![(0, range.len)]) {
                let (from, until) = (range.base + from, range.base + until);
                if at < from.min(to) {
                    spans.push((at - address, from.min(to) - address));
                }
                at = at.max(until);
            }
            if at < to {
                spans.push((at - address, to - address));
            }
        }
        spans
    }

    fn mark(&mut self, address: u64, len: u64, how: fn(&mut Written, u64, u64)) {
        let end = address.saturating_add(len);
        let spans = self.map.within(address, len).filter_map(|range| {
            let (from, to) = (address.max(range.base), end.min(range.end()));
            Some((piece(range)?, from - range.base, to - range.base))
        });
        let spans: Vec<_> = spans.filter(|(_, from, to)| from < to).collect();
        for (piece, from, to) in spans {
            how(self.written.entry(piece).or_default(), from, to);
        }
    }

    /// What of a range holds something, as offsets in it; `None`: all of it.
    pub(crate) fn written(&self, range: &Range) -> Option<Vec<(u64, u64)>> {
        let piece = piece(range)?;
        let whole = match piece {
            Piece::Own(_) => range.stored.get(),
            Piece::Physical(handle) => {
                let same = |other: &&Range| other.kind == range.kind && other.stored.get();
                self.physical
                    .get(&handle)
                    .is_none_or(|physical| physical.opaque)
                    || self.map.ranges().any(|other| same(&other))
            }
        };
        if whole {
            return None;
        }
        let spans = self.written.get(&piece);
        let spans = spans.map_or_else(Vec::new, |written| written.within(range.len));
        (spans != [(0, range.len)]).then_some(spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_meet_become_one_and_others_stay_apart() {
        let mut written = Written::default();
        written.add(0, 16);
        written.add(32, 48);
        assert_eq!(written.within(40), [(0, 16), (32, 40)]);
        written.add(16, 20);
        assert_eq!(written.within(100), [(0, 20), (32, 48)]);
        written.add(10, 64);
        assert_eq!(written.within(100), [(0, 64)]);
        written.add(80, 90);
        written.add(70, 75);
        assert_eq!(written.within(100), [(0, 64), (70, 75), (80, 90)]);
        assert_eq!(written.within(64), [(0, 64)]);
    }

    #[test]
    fn spans_are_parted_where_bytes_are_taken_out() {
        let without = |from, to| {
            let mut written = Written::default();
            written.add(0, 16);
            written.add(32, 48);
            written.remove(from, to);
            written.within(100)
        };
        assert_eq!(without(4, 8), [(0, 4), (8, 16), (32, 48)]);
        assert_eq!(without(8, 40), [(0, 8), (40, 48)]);
        assert_eq!(without(0, 32), [(32, 48)]);
        assert_eq!(without(16, 32), [(0, 16), (32, 48)]);
        assert_eq!(without(0, 50), []);
    }

    #[test]
    fn what_is_copied_is_written_as_far_as_it_was_where_it_comes_from() {
        let mut memory = Memory::new(&[0], 64 << 20, 2 << 20).expect("a memory");
        let mut alloc = || memory.alloc(0, 256).expect("an allocation");
        let (from, to) = (alloc(), alloc());
        let spans = |memory: &Memory, base| {
            let range = memory.map.at(base).expect("the range");
            memory.written(range)
        };
        memory.wrote(from + 16, 32);
        memory.wrote(to, 24);
        memory.copied(to + 8, from + 8, 64);
        assert_eq!(spans(&memory, to), Some(vec![(0, 8), (16, 48)]));
        memory.map.at(from).expect("the range").stored.set(true);
        memory.copied(to, from, 256);
        assert_eq!(spans(&memory, to), None);
        // What no memory of the machine holds is the host's own.
        memory.copied(to, 0x1000, 8);
        assert_eq!(spans(&memory, to), None);
    }

    #[test]
    fn memory_is_written_as_far_as_copies_went_and_all_over_once_a_kernel_stored_or_others_have_it()
    {
        let mut memory = Memory::new(&[0], 64 << 20, 2 << 20).expect("a memory");
        let base = memory.alloc(0, 256).expect("an allocation");
        let spans = |memory: &Memory, base| {
            let range = memory.map.at(base).expect("the range");
            memory.written(range)
        };
        assert_eq!(spans(&memory, base), Some(Vec::new()));
        memory.wrote(base + 16, 32);
        assert_eq!(spans(&memory, base), Some(vec![(16, 48)]));
        memory.map.at(base).expect("the range").stored.set(true);
        assert_eq!(spans(&memory, base), None);
        let next = memory.alloc(0, 64).expect("an allocation");
        memory.wrote(next, 64);
        assert_eq!(spans(&memory, next), None);

        let handle = memory.create(0, 2 << 20, true).expect("memory");
        let mut map = || {
            let base = memory.reserve(2 << 20, 0).expect("addresses");
            memory.map(base, 2 << 20, 0, handle).expect("a mapping");
            base
        };
        let (one, two) = (map(), map());
        memory.wrote(one + 8, 8);
        assert_eq!(spans(&memory, two), Some(vec![(8, 16)]));
        memory.map.at(two).expect("the range").stored.set(true);
        memory.unmap(two, 2 << 20).expect("no mapping");
        assert_eq!(spans(&memory, one), None, "what was stored stays");
        let handle = memory.create(0, 2 << 20, true).expect("memory");
        let base = memory.reserve(2 << 20, 0).expect("addresses");
        memory.map(base, 2 << 20, 0, handle).expect("a mapping");
        assert_eq!(spans(&memory, base), Some(Vec::new()));
        let _fd = memory.export(handle).expect("a descriptor");
        assert_eq!(spans(&memory, base), None);
    }
}
