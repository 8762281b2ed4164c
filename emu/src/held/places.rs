//! Where addresses lie. The ranks of a process map one piece of memory at several addresses; whoever compares accesses
//! needs one address for each byte.

use std::collections::BTreeMap;

use crate::memory::Memory;
use crate::va::Kind;

/// A valid range of addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// First address.
    pub(super) base: u64,
    /// Bytes.
    pub(super) len: u64,
    /// Where the same memory is mapped first; `base` unless there are several mappings.
    pub(super) home: u64,
    /// The device that owns the memory.
    pub(super) device: u32,
    /// What it is.
    pub(super) kind: Kind,
    /// Distinguishes it from others that had its addresses.
    pub(super) id: u64,
}

/// All valid ranges, as they are while a machine is held.
#[derive(Debug)]
pub(super) struct Places(Vec<Place>);

impl Places {
    /// The ranges of a memory.
    pub(super) fn of(memory: &Memory) -> Places {
        let identity = |kind| match kind {
            Kind::Mapping(handle) => memory.physical.get(&handle)?.identity(),
            _ => None,
        };
        // The longest mapping of each piece of memory, of equally long ones the first: its owner's.
        let mut homes: BTreeMap<u64, (u64, u64, u64)> = BTreeMap::new();
        for range in memory.map.ranges() {
            if let Some(identity) = identity(range.kind) {
                let this = (u64::MAX - range.len, range.id, range.base);
                let home = homes.entry(identity).or_insert(this);
                *home = (*home).min(this);
            }
        }
        let place = |range: &crate::va::Range| {
            let home = identity(range.kind).and_then(|identity| homes.get(&identity));
            Place {
                base: range.base,
                len: range.len,
                home: home.map_or(range.base, |&(_, _, base)| base),
                device: range.device,
                kind: range.kind,
                id: range.id,
            }
        };
        Places(memory.map.ranges().map(place).collect())
    }

    /// Ranges that are the home of their memory: each byte once.
    pub(super) fn homes(&self) -> impl Iterator<Item = &Place> {
        self.0.iter().filter(|place| place.home == place.base)
    }

    /// The range of an address. `hint` remembers where the last one was found.
    pub(super) fn find(&self, address: u64, hint: &mut usize) -> Option<&Place> {
        let holds = |place: &&Place| address.wrapping_sub(place.base) < place.len;
        if let Some(found) = self.0.get(*hint).filter(holds) {
            return Some(found);
        }
        let after = self.0.partition_point(|place| place.base <= address);
        *hint = after.checked_sub(1)?;
        self.0.get(*hint).filter(holds)
    }

    /// The one address of the byte at `address`; the address itself where there is no memory.
    pub(super) fn home(&self, address: u64, hint: &mut usize) -> u64 {
        let place = self.find(address, hint);
        place.map_or(address, |place| address - place.base + place.home)
    }
}
