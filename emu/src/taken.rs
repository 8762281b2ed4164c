//! Addresses in the parameters of launches. A graph keeps them as long as it lives, and memory may come and go meanwhile:
//! then they mean something else than what they were taken for.

use std::sync::Arc;

use crate::memory::Memory;

/// The addresses in a launch's parameters, each with the generation of the memory that was there when they were taken.
#[derive(Clone, Debug)]
pub(crate) struct Taken(Arc<[(u64, u64)]>);

/// An address that means something else by now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stale {
    /// The address.
    pub(crate) address: u64,
    /// What was there, in words.
    pub(crate) was: String,
}

impl Memory {
    /// What distinguishes the memory at an address, or what the library said of it, from all that had or will have its
    /// address.
    fn generation_at(&self, address: u64) -> Option<u64> {
        let range = self.map.find(address)?;
        let announced = self.announced_since(address).unwrap_or(0);
        Some(range.id.max(announced))
    }

    /// The addresses in parameters that are taken now. Words that point to nothing may well point to something later.
    pub(crate) fn take(&self, params: &[u8]) -> Taken {
        let words = params.chunks_exact(8).filter_map(|bytes| {
            let address = u64::from_le_bytes(bytes.try_into().ok()?);
            Some((address, self.generation_at(address)?))
        });
        Taken(words.collect())
    }

    /// Those of the taken addresses at which there is other memory now, or memory that the library uses for something else.
    /// At those that are freed there is nothing, which an access itself shows.
    pub(crate) fn stale(&self, taken: &Taken) -> Vec<Stale> {
        let stale = |&(address, then): &(u64, u64)| {
            let now = self.generation_at(address)?;
            let was = || match self.map.removed(then) {
                Some(range) => range.words(),
                None => "something else".to_owned(),
            };
            (now != then).then(|| Stale {
                address,
                was: was(),
            })
        };
        taken.0.iter().filter_map(stale).collect()
    }
}

#[cfg(test)]
mod tests {
    use slabfence_sys::{RangeKind, RangeNote};

    use super::*;

    const GRANULE: u64 = 2 << 20;

    fn map(memory: &mut Memory, base: u64) -> u64 {
        let handle = memory.create(0, GRANULE, false).expect("memory");
        memory.map(base, GRANULE, 0, handle).expect("a mapping");
        handle
    }

    #[test]
    fn an_address_is_stale_once_other_memory_is_mapped_there() {
        let mut memory = Memory::new(&[0], 64 << 20, GRANULE).expect("a memory");
        let base = memory.reserve(2 * GRANULE, 0).expect("addresses");
        map(&mut memory, base);
        let words = [base + 64, 7, base + GRANULE].map(u64::to_le_bytes);
        let taken = memory.take(words.as_flattened());
        assert_eq!(memory.stale(&taken), []);
        map(&mut memory, base + GRANULE);
        assert_eq!(memory.stale(&taken), [], "it was not there before");
        memory.unmap(base, GRANULE).expect("no mapping");
        assert_eq!(memory.stale(&taken), [], "an access faults");
        map(&mut memory, base);
        let stale = Stale {
            address: base + 64,
            was: "a cuMemMap mapping of device 0, 2097152 bytes".to_owned(),
        };
        assert_eq!(memory.stale(&taken), [stale]);
        assert_eq!(memory.stale(&memory.take(words.as_flattened())), []);
    }

    #[test]
    fn an_address_is_stale_once_the_library_says_that_it_is_for_something_else() {
        let mut memory = Memory::new(&[0], 64 << 20, GRANULE).expect("a memory");
        let base = memory.reserve(GRANULE, 0).expect("addresses");
        map(&mut memory, base);
        let note = |channel| RangeNote {
            base,
            bytes: 128,
            kind: RangeKind::OUTBOX,
            slot: 0,
            rank: 0,
            source: 0,
            channel,
            phase: RangeNote::NONE,
            reserved: 0,
        };
        memory.announce(note(1)).expect("a note");
        let words = [base, base + 128].map(u64::to_le_bytes);
        let taken = memory.take(words.as_flattened());
        memory.announce(note(1)).expect("the same again");
        assert_eq!(memory.stale(&taken), []);
        memory.announce(note(2)).expect("another channel");
        let stale: Vec<u64> = memory.stale(&taken).iter().map(|s| s.address).collect();
        assert_eq!(stale, [base]);
    }
}
