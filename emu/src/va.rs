//! The machine's address space: which addresses are reserved, what is mapped where, and who may touch it.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};

use slabfence_emu_exec::Region;

use crate::host::Span;
use crate::lost::{Lost, LostPaths};

/// Addresses that a machine can hand out, bytes. Reserved, not committed.
const SPAN: u64 = 256 << 30;
/// Addresses are handed out in pages of this size, with a page left free behind each allocation.
pub(crate) const PAGE: u64 = 4096;
/// How many removed ranges are remembered, to say of a stale address what it was.
const REMEMBERED: usize = 512;

/// What the memory of a range is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// `cuMemAlloc`.
    Device,
    /// A module's global variable.
    Global,
    /// `cuMemMap` of this physical allocation.
    Mapping(u64),
    /// `cuMemHostAlloc`.
    Host,
}

impl Kind {
    /// Whether the memory is the host's.
    pub(crate) fn is_host(self) -> bool {
        self == Kind::Host
    }

    /// Its name in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Kind::Device => "cuMemAlloc memory",
            Kind::Global => "a module's global variable",
            Kind::Mapping(_) => "a cuMemMap mapping",
            Kind::Host => "page-locked host memory",
        }
    }
}

/// One valid range of addresses.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    /// First address.
    pub(crate) base: u64,
    /// Exact length, bytes: an access beyond it faults though the host would have memory there.
    pub(crate) len: u64,
    /// What it is.
    pub(crate) kind: Kind,
    /// The device that owns the memory; for host memory the one current at allocation.
    pub(crate) device: u32,
    /// Devices that may read, a bit each.
    pub(crate) read: u32,
    /// Devices that may write, a bit each.
    pub(crate) write: u32,
    /// Distinguishes this range from any other that had or will have the same address.
    pub(crate) id: u64,
    /// Whether a kernel may have stored there.
    pub(crate) stored: Cell<bool>,
}

impl Range {
    /// One past the last address.
    pub(crate) fn end(&self) -> u64 {
        self.base + self.len
    }

    /// What it is in words.
    pub(crate) fn words(&self) -> String {
        let (what, device, len) = (self.kind.words(), self.device, self.len);
        format!("{what} of device {device}, {len} bytes")
    }

    fn allows(&self, device: u32, write: bool) -> bool {
        let mask = if write { self.write } else { self.read };
        mask >> device & 1 == 1
    }
}

/// The table of addresses.
pub(crate) struct AddressMap {
    span: Span,
    next: u64,
    retired: VecDeque<(u64, u64)>,
    /// `cuMemAddressReserve`: base to length.
    pub(crate) reservations: BTreeMap<u64, u64>,
    ranges: BTreeMap<u64, Range>,
    removed: VecDeque<Range>,
    lost: LostPaths,
    generation: u64,
}

impl AddressMap {
    /// Reserves the machine's addresses from the host.
    pub(crate) fn new(granularity: u64) -> Result<AddressMap, rustix::io::Errno> {
        let span = Span::reserve(SPAN, granularity)?;
        Ok(AddressMap {
            next: span.base(),
            span,
            retired: VecDeque::new(),
            reservations: BTreeMap::new(),
            ranges: BTreeMap::new(),
            removed: VecDeque::new(),
            lost: LostPaths::default(),
            generation: 1,
        })
    }

    /// The host side of the addresses.
    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// Changes whenever a range comes, goes or changes its access: who caches a range compares it.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Takes `len` bytes of fresh addresses (whole pages) at a multiple of `align`, a power of two.
    ///
    /// Addresses that were given back come again only when the span is used up, oldest first, so that a stale
    /// pointer does not silently mean a newer allocation.
    pub(crate) fn take(&mut self, len: u64, align: u64) -> Option<u64> {
        let end = self.span.base() + self.span.len();
        let base = self.next.checked_next_multiple_of(align)?;
        if let Some(next) = base.checked_add(len)?.checked_add(PAGE)
            && next <= end
        {
            self.next = next;
            return Some(base);
        }
        let fits = |&(base, size): &(u64, u64)| base.next_multiple_of(align) + len <= base + size;
        let at = self.retired.iter().position(fits)?;
        let (base, _) = self.retired.remove(at)?;
        Some(base.next_multiple_of(align))
    }

    /// Gives addresses back.
    pub(crate) fn give(&mut self, base: u64, len: u64) {
        self.retired.push_back((base, len));
    }

    /// Makes a range valid. It must not overlap another.
    pub(crate) fn insert(&mut self, mut range: Range) {
        range.id = self.change();
        self.ranges.insert(range.base, range);
    }

    /// Makes the range that starts at `base` invalid.
    pub(crate) fn remove(&mut self, base: u64) -> Option<Range> {
        let range = self.ranges.remove(&base)?;
        self.generation += 1;
        self.lost.forget(range.id);
        if self.removed.len() == REMEMBERED {
            self.removed.pop_front();
        }
        self.removed.push_back(range.clone());
        Some(range)
    }

    /// The range of this [id](Range::id), if it was removed not long ago.
    pub(crate) fn removed(&self, id: u64) -> Option<&Range> {
        self.removed.iter().find(|range| range.id == id)
    }

    /// The last range that held an address and was removed, not long ago.
    pub(crate) fn removed_at(&self, address: u64) -> Option<&Range> {
        let held = |range: &&Range| address >= range.base && address < range.end();
        self.removed.iter().rev().find(held)
    }

    /// A number for a change of what addresses mean, greater than all before.
    pub(crate) fn change(&mut self) -> u64 {
        self.generation += 1;
        self.generation
    }

    /// The range that starts at `base`.
    pub(crate) fn at(&self, base: u64) -> Option<&Range> {
        self.ranges.get(&base)
    }

    /// Changes who may touch the range that starts at `base`.
    pub(crate) fn set_access(&mut self, base: u64, device: u32, read: bool, write: bool) {
        self.generation += 1;
        if let Some(range) = self.ranges.get_mut(&base) {
            range.read = range.read & !(1 << device) | u32::from(read) << device;
            range.write = range.write & !(1 << device) | u32::from(write) << device;
        }
    }

    /// Loses what a device's kernels do at the range that holds `address`, for as long as the range is; false if there is
    /// none. No range has more than `most` bytes.
    pub(crate) fn lose(
        &mut self,
        address: u64,
        device: u32,
        lost: Lost,
        most: u64,
    ) -> Result<bool, rustix::io::Errno> {
        let Some(id) = self.find(address).map(|range| range.id) else {
            return Ok(false);
        };
        self.generation += 1;
        self.lost.lose(id, device, lost, most)?;
        Ok(true)
    }

    /// What the device accesses in place of a range of which it has [lost](Self::lose) something.
    pub(crate) fn lost(&self, range: &Range, device: u32, write: bool) -> Option<Region> {
        let Range { id, base, len, .. } = *range;
        self.lost.region(id, device, write, base, len)
    }

    /// The range that holds `address`.
    pub(crate) fn find(&self, address: u64) -> Option<&Range> {
        let (_, range) = self.ranges.range(..=address).next_back()?;
        (address < range.end()).then_some(range)
    }

    /// All ranges that meet `[base, base + len)`, in order.
    pub(crate) fn within(&self, base: u64, len: u64) -> impl Iterator<Item = &Range> {
        let end = base.saturating_add(len);
        let first = self.find(base).map_or(base, |range| range.base);
        self.ranges
            .range(first..end.max(first))
            .map(|(_, range)| range)
    }

    /// All ranges.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = &Range> {
        self.ranges.values()
    }

    /// Whether `[address, address + len)` is valid to `device` (bounds exact; several adjacent ranges are fine).
    pub(crate) fn check(&self, device: u32, address: u64, len: u64, write: bool) -> bool {
        let Some(end) = address.checked_add(len) else {
            return false;
        };
        let mut at = address;
        while at < end {
            match self.find(at) {
                Some(range) if range.allows(device, write) => at = range.end(),
                _ => return false,
            }
        }
        true
    }

    /// What is, was, or is near an address, for the words of a fault.
    pub(crate) fn describe(&self, device: u32, address: u64, write: bool) -> String {
        if let Some(range) = self.find(address) {
            let what = range.kind.words();
            let (base, len, owner) = (range.base, range.len, range.device);
            let offset = address - base;
            if !range.allows(device, write) {
                let verb = if write { "write" } else { "read" };
                return format!(
                    "{what} of device {owner} ({base:#x}, {len} bytes), offset {offset}, that device {device} may not {verb}"
                );
            }
            return format!("{what} of device {owner} ({base:#x}, {len} bytes), offset {offset}");
        }
        if let Some(range) = self.removed_at(address) {
            let (what, base, offset) = (range.kind.words(), range.base, address - range.base);
            return format!(
                "freed or unmapped: was {what} of device {} at {base:#x}, offset {offset}",
                range.device
            );
        }
        if let Some((&base, &len)) = self.reservations.range(..=address).next_back()
            && address < base + len
        {
            return format!(
                "reserved addresses with nothing mapped (reservation {base:#x}, {len} bytes)"
            );
        }
        match self.ranges.range(..=address).next_back() {
            Some((_, range)) => {
                let (what, past) = (range.kind.words(), address - range.end());
                format!(
                    "no allocation; {past} bytes past the end of {what} at {:#x}, {} bytes",
                    range.base, range.len
                )
            }
            None => "no allocation".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> AddressMap {
        AddressMap::new(2 << 20).expect("the host has addresses")
    }

    fn range(base: u64, len: u64) -> Range {
        Range {
            base,
            len,
            kind: Kind::Device,
            device: 0,
            read: 1,
            write: 1,
            id: 0,
            stored: Default::default(),
        }
    }

    #[test]
    fn a_check_is_exact_to_the_byte_and_spans_adjacent_ranges() {
        let mut map = map();
        let base = map.take(3 * PAGE, 256).expect("room");
        map.insert(range(base, 100));
        assert!(map.check(0, base, 100, true));
        assert!(!map.check(0, base, 101, true));
        assert!(!map.check(0, base - 1, 1, false));
        assert!(
            !map.check(1, base, 1, false),
            "device 1 was given no access"
        );
        map.insert(range(base + 100, 50));
        assert!(map.check(0, base + 90, 60, true));
        assert!(!map.check(0, u64::MAX, 2, false));
    }

    #[test]
    fn every_change_of_a_range_changes_the_generation() {
        let mut map = map();
        let base = map.take(PAGE, 256).expect("room");
        let mut seen = vec![map.generation()];
        map.insert(range(base, 8));
        seen.push(map.generation());
        map.set_access(base, 1, true, false);
        seen.push(map.generation());
        map.remove(base);
        seen.push(map.generation());
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
    }

    #[test]
    fn freed_addresses_come_back_only_when_the_span_is_used_up() {
        let mut map = map();
        let first = map.take(SPAN / 4, 2 << 20).expect("room");
        map.give(first, SPAN / 4);
        let mut later = Vec::new();
        while let Some(base) = map.take(SPAN / 4, 2 << 20) {
            later.push(base);
        }
        assert_eq!(
            later.iter().position(|&base| base == first),
            Some(later.len() - 1)
        );
        assert_eq!(later.len(), 3);
    }

    #[test]
    fn a_stale_address_is_described_as_what_it_was() {
        let mut map = map();
        let base = map.take(PAGE, 256).expect("room");
        map.insert(range(base, 64));
        map.remove(base);
        let words = map.describe(0, base + 8, true);
        assert_eq!(
            words,
            format!("freed or unmapped: was cuMemAlloc memory of device 0 at {base:#x}, offset 8")
        );
    }
}
