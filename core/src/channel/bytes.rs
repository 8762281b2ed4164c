//! What a pool and its channels cost.

use crate::slab::{Arena, Kind};

use super::memory::{Memory, Staged};

/// Bytes of device memory by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindBytes {
    /// State that only the own device sees.
    pub local: u64,
    /// Entry lines, data flags and poison, which peers write.
    pub signal: u64,
    /// What peers push.
    pub inbox: u64,
    /// What peers pull.
    pub outbox: u64,
}

impl KindBytes {
    /// All of it.
    pub const fn total(self) -> u64 {
        self.local + self.signal + self.inbox + self.outbox
    }

    /// What is mapped.
    pub(super) fn mapped(memory: &Memory) -> Self {
        Self::of(memory, |size| size.mapped)
    }

    /// One channel's ranges.
    pub(super) fn per_channel(memory: &Memory) -> Self {
        Self::of(memory, |size| size.stride)
    }

    fn of(memory: &Memory, which: fn(Size) -> usize) -> Self {
        let bytes = |size: Size| which(size) as u64;
        let (inbox, outbox) = match &memory.staged {
            Staged::Push([a, b]) => (bytes(size(a)) + bytes(size(b)), 0),
            Staged::Pull([a, b]) => (0, bytes(size(a)) + bytes(size(b))),
        };
        Self {
            local: bytes(size(&memory.local)),
            signal: bytes(size(&memory.signal)),
            inbox,
            outbox,
        }
    }
}

/// Bytes of an arena, and of one of its ranges.
struct Size {
    mapped: usize,
    stride: usize,
}

fn size<K: Kind>(arena: &Arena<K>) -> Size {
    Size {
        mapped: arena.mapped(),
        stride: arena.stride(),
    }
}
