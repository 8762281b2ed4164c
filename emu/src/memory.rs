//! Memory that one call allocates and one call frees: `cuMemAlloc`, page-locked host memory.

use std::collections::{BTreeMap, BTreeSet};

use slabfence_sys::{RangeKind, RangeNote};

use crate::code::{Code, Status};
use crate::describe::Description;
use crate::host;
use crate::va::{AddressMap, Kind, PAGE, Range};
use crate::vmm::Physical;
use crate::written::{Piece, Written};

/// Everything of a machine that is memory.
pub(crate) struct Memory {
    /// Addresses and what they mean.
    pub(crate) map: AddressMap,
    /// Physical allocations (`cuMemCreate`) by handle; kept while a handle or a mapping lives.
    pub(crate) physical: BTreeMap<u64, Physical>,
    /// The next physical handle.
    pub(crate) next_physical: u64,
    /// Which device of the host each device is: processes may number them differently.
    boards: Vec<u32>,
    /// Bytes in use per device.
    pub(crate) used: Vec<u64>,
    /// Bytes that each device owns.
    pub(crate) capacity: u64,
    /// Granularity of physical allocations, bytes.
    pub(crate) granularity: u64,
    /// Allocations that an operation will free.
    leaving: BTreeSet<u64>,
    /// Ranges that the library named through its private entry, by base, and since when.
    announced: BTreeMap<u64, (RangeNote, u64)>,
    /// What the host says of ranges, by base: bytes and description.
    described: BTreeMap<u64, (u64, Description)>,
    /// What copies and fills have written.
    pub(crate) written: BTreeMap<Piece, Written>,
}

impl Memory {
    /// The memory of these devices of the host, empty.
    pub(crate) fn new(
        boards: &[u32],
        capacity: u64,
        granularity: u64,
    ) -> Result<Memory, rustix::io::Errno> {
        Ok(Memory {
            map: AddressMap::new(granularity)?,
            physical: BTreeMap::new(),
            next_physical: 0,
            boards: boards.to_vec(),
            used: vec![0; boards.len()],
            capacity,
            granularity,
            leaving: BTreeSet::new(),
            announced: BTreeMap::new(),
            described: BTreeMap::new(),
            written: BTreeMap::new(),
        })
    }

    /// Which device of the host a device is.
    pub(crate) fn board(&self, device: u32) -> u32 {
        self.boards[device as usize]
    }

    /// The device that is this one of the host's, if this process sees it.
    pub(crate) fn device_of(&self, board: u32) -> Option<u32> {
        let found = self.boards.iter().position(|&other| other == board);
        found.map(|device| device as u32)
    }

    /// Bit mask of all devices.
    pub(crate) fn everyone(&self) -> u32 {
        (1u32 << self.used.len()) - 1
    }

    /// Accounts for `len` more bytes on a device.
    pub(crate) fn charge(&mut self, device: u32, len: u64) -> Status {
        let used = &mut self.used[device as usize];
        if len > self.capacity - *used {
            return Err(Code::OUT_OF_MEMORY);
        }
        *used += len;
        Ok(())
    }

    /// Allocates `len` bytes of the device's memory.
    pub(crate) fn alloc(&mut self, device: u32, len: u64) -> Status<u64> {
        if len == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let whole = len
            .checked_next_multiple_of(PAGE)
            .ok_or(Code::OUT_OF_MEMORY)?;
        self.charge(device, whole)?;
        let base = self
            .back(whole)
            .inspect_err(|_| self.used[device as usize] -= whole)?;
        let own = 1 << device;
        self.map.insert(Range {
            base,
            len,
            kind: Kind::Device,
            device,
            read: own,
            write: own,
            id: 0,
            stored: Default::default(),
        });
        Ok(base)
    }

    /// Allocates page-locked host memory that every device may touch.
    pub(crate) fn host_alloc(&mut self, device: u32, len: u64) -> Status<u64> {
        if len == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let whole = len
            .checked_next_multiple_of(PAGE)
            .ok_or(Code::OUT_OF_MEMORY)?;
        if whole > self.capacity {
            return Err(Code::OUT_OF_MEMORY);
        }
        let base = self.back(whole)?;
        let all = self.everyone();
        self.map.insert(Range {
            base,
            len,
            kind: Kind::Host,
            device,
            read: all,
            write: all,
            id: 0,
            stored: Default::default(),
        });
        Ok(base)
    }

    pub(crate) fn back(&mut self, whole: u64) -> Status<u64> {
        let base = self.map.take(whole, PAGE).ok_or(Code::OUT_OF_MEMORY)?;
        if let Err(error) = self.map.span().map_private(base, whole) {
            log::warn!("emulator: no host memory for {whole} bytes: {error}");
            self.map.give(base, whole);
            return Err(Code::OUT_OF_MEMORY);
        }
        Ok(base)
    }

    /// Notes that an operation will free an allocation; refuses one that has such an operation already.
    pub(crate) fn leave(&mut self, base: u64) -> Status {
        let mine = self.map.at(base);
        mine.filter(|range| range.kind == Kind::Device)
            .ok_or(Code::INVALID_VALUE)?;
        match self.leaving.insert(base) {
            true => Ok(()),
            false => Err(Code::INVALID_VALUE),
        }
    }

    /// Whether an operation will free this allocation.
    pub(crate) fn is_leaving(&self, base: u64) -> bool {
        self.leaving.contains(&base)
    }

    /// Frees what [`Memory::alloc`] or [`Memory::host_alloc`] gave: exactly that pointer, and of that kind.
    pub(crate) fn free(&mut self, base: u64, kind: Kind) -> Status {
        self.map
            .at(base)
            .filter(|range| range.kind == kind)
            .ok_or(Code::INVALID_VALUE)?;
        let Some(range) = self.map.remove(base) else {
            return Err(Code::INVALID_VALUE);
        };
        self.leaving.remove(&base);
        self.written.remove(&Piece::Own(range.id));
        let whole = range.len.next_multiple_of(PAGE);
        if !kind.is_host() {
            self.used[range.device as usize] -= whole;
        }
        self.map
            .span()
            .clear(base, whole)
            .map_err(|_| Code::OPERATING_SYSTEM)?;
        self.map.give(base, whole);
        Ok(())
    }

    /// Whether a copy or fill that runs on `device` may touch the bytes: the copy engine reaches what the running
    /// device or the owner of the memory may reach. It writes a module's constants too, which kernels only read.
    pub(crate) fn copyable(&self, device: u32, address: u64, len: u64, write: bool) -> bool {
        let found = self.map.find(address);
        let owner = found.map_or(device, |range| range.device);
        let variable =
            found.is_some_and(|range| range.kind == Kind::Global && len <= range.end() - address);
        let write = write && !variable;
        self.map.check(device, address, len, write) || self.map.check(owner, address, len, write)
    }

    /// Whether the address lies in memory that the driver knows.
    pub(crate) fn known(&self, address: u64) -> bool {
        self.map.find(address).is_some()
    }

    /// Frees all `cuMemAlloc` memory of a device whose context goes; returns how many allocations that were.
    pub(crate) fn free_context(&mut self, device: u32) -> usize {
        let mine = |range: &&Range| {
            range.device == device && matches!(range.kind, Kind::Device | Kind::Host)
        };
        let bases: Vec<_> = self
            .map
            .ranges()
            .filter(mine)
            .map(|range| (range.base, range.kind))
            .collect();
        for &(base, kind) in &bases {
            if let Err(code) = self.free(base, kind) {
                log::warn!("emulator: freeing {base:#x} with its context failed with {code:?}");
            }
        }
        bases.len()
    }

    /// Stores what the library says of a range, in place of what it said of overlapping ones.
    pub(crate) fn announce(&mut self, note: RangeNote) -> Status {
        let end = note
            .base
            .checked_add(note.bytes)
            .filter(|_| note.bytes > 0)
            .ok_or(Code::INVALID_VALUE)?;
        if self
            .announced
            .get(&note.base)
            .is_some_and(|(old, _)| *old == note)
        {
            return Ok(());
        }
        self.announced
            .retain(|&base, (old, _)| base >= end || base + old.bytes <= note.base);
        let since = self.map.change();
        if note.kind != RangeKind::FORGET {
            self.announced.insert(note.base, (note, since));
        }
        Ok(())
    }

    /// What was announced about an address.
    pub(crate) fn announced_at(&self, address: u64) -> Option<RangeNote> {
        Some(self.announcement(address)?.0)
    }

    /// Since which change an address is announced as what it is.
    pub(crate) fn announced_since(&self, address: u64) -> Option<u64> {
        Some(self.announcement(address)?.1)
    }

    fn announcement(&self, address: u64) -> Option<&(RangeNote, u64)> {
        let (_, found) = self.announced.range(..=address).next_back()?;
        (address - found.0.base < found.0.bytes).then_some(found)
    }

    /// Everything that is announced, by address.
    pub(crate) fn notes(&self) -> impl Iterator<Item = &RangeNote> {
        self.announced.values().map(|(note, _)| note)
    }

    /// Describes a range, in place of what was said of overlapping ones.
    pub(crate) fn describe(&mut self, base: u64, len: u64, description: Description) {
        let end = base.saturating_add(len);
        self.described
            .retain(|&start, (len, _)| start >= end || start.saturating_add(*len) <= base);
        self.described.insert(base, (len, description));
    }

    /// The ranges that are described: base, bytes and description.
    pub(crate) fn descriptions(&self) -> impl Iterator<Item = (u64, u64, &Description)> {
        let described = self.described.iter();
        described.map(|(&base, (len, description))| (base, *len, description))
    }

    /// How many announced ranges there are.
    pub(crate) fn announced(&self) -> usize {
        self.announced.len()
    }

    /// Writes bytes at an address that the machine itself allocated (initial values of globals).
    pub(crate) fn initialise(&mut self, base: u64, bytes: &[u8]) {
        debug_assert!(
            self.map
                .find(base)
                .is_some_and(|range| range.len >= bytes.len() as u64)
        );
        host::store(base, bytes);
    }
}
