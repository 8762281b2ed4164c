//! Where addresses lie. The ranks of a process map one piece of memory at several addresses; whoever compares accesses
//! needs one address for each byte.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::memory::Memory;
use crate::va::Kind;

use super::changed::PAGE;

/// A valid range of addresses.
#[derive(Clone, Debug)]
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
    /// What it is called.
    pub(super) name: Arc<str>,
    /// What of it holds something, as offsets; `None`: all of it.
    pub(super) written: Option<Arc<[(u64, u64)]>>,
    /// The first page of its memory. All mappings of it have the same.
    page: usize,
}

impl Place {
    /// The pages of its memory.
    pub(super) fn pages(&self) -> Range<usize> {
        self.page..self.page + self.len.div_ceil(PAGE) as usize
    }

    /// The page that an address in it lies in.
    #[inline]
    pub(super) fn page(&self, address: u64) -> usize {
        self.page + ((address - self.base) / PAGE) as usize
    }
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
                page: 0,
                name: range.words().into(),
                written: memory.written(range).map(Arc::from),
            }
        };
        let mut places: Vec<Place> = memory.map.ranges().map(place).collect();
        let mut pages: BTreeMap<u64, usize> = BTreeMap::new();
        let mut next = 0;
        for place in places.iter().filter(|place| place.home == place.base) {
            pages.insert(place.base, next);
            next += place.pages().len();
        }
        for place in &mut places {
            place.page = pages.get(&place.home).copied().unwrap_or(next);
        }
        Places(places)
    }

    /// How many pages all memory has.
    pub(super) fn pages(&self) -> usize {
        self.homes().map(|place| place.pages().len()).sum()
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

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    const GRANULE: u64 = 2 << 20;

    #[test]
    fn memory_that_is_imported_has_its_home_where_its_owner_mapped_it() {
        let mut memory = Memory::new(&[0, 1], 64 << 20, GRANULE).expect("a memory");
        let other = memory.alloc(0, 100).expect("an allocation");
        let owned = memory.create(0, 2 * GRANULE, true).expect("memory");
        let fd = memory.export(owned).expect("a descriptor");
        let imported = memory.import(fd.as_raw_fd()).expect("the same memory");
        let mut map = |handle| {
            let base = memory.reserve(2 * GRANULE, 0).expect("addresses");
            memory.map(base, 2 * GRANULE, 0, handle).expect("a mapping");
            base
        };
        let (home, peer) = (map(owned), map(imported));
        assert_ne!(home, peer);
        let places = Places::of(&memory);
        let hint = &mut 0;
        assert_eq!(places.home(peer + GRANULE + 8, hint), home + GRANULE + 8);
        assert_eq!(places.home(home + 8, hint), home + 8);
        assert_eq!(places.home(other + 99, hint), other + 99);
        assert!(places.find(other + 100, hint).is_none());
        let homes: Vec<u64> = places.homes().map(|place| place.base).collect();
        assert_eq!(homes, [other, home]);
        let page = |address| {
            places
                .find(address, &mut 0)
                .map(|place| place.page(address))
        };
        assert_eq!(page(other + 99), Some(0));
        assert_eq!(page(home + 2 * GRANULE - 1), Some(1024));
        assert_eq!(page(peer + 2 * GRANULE - 1), Some(1024));
        assert_eq!(places.pages(), 1025);
    }
}
