//! Virtual memory management: physical allocations, address reservations, mappings, access rights.

use std::os::fd::{AsFd, OwnedFd};

use crate::code::{Code, Status};
use crate::host;
use crate::memory::Memory;
use crate::va::{Kind, Range};
use crate::written::Piece;

/// One physical allocation. It lives while handles or mappings refer to it, and in other processes while they do.
pub(crate) struct Physical {
    memory: OwnedFd,
    device: u32,
    len: u64,
    exportable: bool,
    imported: bool,
    /// Whether it counts as written all over: others may write it, or a kernel did.
    pub(crate) opaque: bool,
    handles: u32,
    mappings: u32,
}

/// What `cuMemSetAccess` grants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Nothing.
    None,
    /// Loads only.
    Read,
    /// Loads and stores.
    ReadWrite,
}

impl Physical {
    /// The same for all handles on one piece of memory, whoever imported it.
    pub(crate) fn identity(&self) -> Option<u64> {
        host::identity(&self.memory)
    }
}

impl Memory {
    fn whole(&self, value: u64) -> Status<u64> {
        if value == 0 || !value.is_multiple_of(self.granularity) {
            return Err(Code::INVALID_VALUE);
        }
        Ok(value)
    }

    /// `cuMemCreate`: the handle of `len` bytes on `device`.
    pub(crate) fn create(&mut self, device: u32, len: u64, exportable: bool) -> Status<u64> {
        self.whole(len)?;
        if device as usize >= self.used.len() {
            return Err(Code::INVALID_DEVICE);
        }
        self.charge(device, len)?;
        let memory = host::physical(self.board(device), len).map_err(|error| {
            log::warn!(
                "emulator: no host memory for a physical allocation of {len} bytes: {error}"
            );
            self.used[device as usize] -= len;
            Code::OUT_OF_MEMORY
        })?;
        Ok(self.adopt(Physical {
            memory,
            device,
            len,
            exportable,
            imported: false,
            opaque: false,
            handles: 1,
            mappings: 0,
        }))
    }

    fn adopt(&mut self, physical: Physical) -> u64 {
        self.next_physical += 1;
        let handle = self.next_physical << 8 | 1;
        self.physical.insert(handle, physical);
        handle
    }

    fn handle(&mut self, handle: u64) -> Status<&mut Physical> {
        self.physical
            .get_mut(&handle)
            .filter(|physical| physical.handles > 0)
            .ok_or(Code::INVALID_VALUE)
    }

    /// `cuMemRelease`: one reference less; mapped memory lives on.
    pub(crate) fn release(&mut self, handle: u64) -> Status {
        self.handle(handle)?.handles -= 1;
        self.drop_unused(handle);
        Ok(())
    }

    fn drop_unused(&mut self, handle: u64) {
        let unused = |physical: &Physical| physical.handles == 0 && physical.mappings == 0;
        if !self.physical.get(&handle).is_some_and(unused) {
            return;
        }
        self.written.remove(&Piece::Physical(handle));
        if let Some(physical) = self.physical.remove(&handle)
            && !physical.imported
        {
            self.used[physical.device as usize] -= physical.len;
        }
    }

    /// `cuMemRetainAllocationHandle`: one more reference to what is mapped at `address`.
    pub(crate) fn retain(&mut self, address: u64) -> Status<u64> {
        let Some(Range {
            kind: Kind::Mapping(handle),
            ..
        }) = self.map.find(address)
        else {
            return Err(Code::INVALID_VALUE);
        };
        let handle = *handle;
        self.physical
            .get_mut(&handle)
            .ok_or(Code::INVALID_VALUE)?
            .handles += 1;
        Ok(handle)
    }

    /// `cuMemExportToShareableHandle`: a descriptor that the caller owns.
    pub(crate) fn export(&mut self, handle: u64) -> Status<OwnedFd> {
        let physical = self.handle(handle)?;
        if !physical.exportable {
            return Err(Code::INVALID_VALUE);
        }
        physical.opaque = true;
        host::duplicate(&physical.memory).map_err(|_| Code::OPERATING_SYSTEM)
    }

    /// `cuMemImportFromShareableHandle`: a handle on another holder's memory. The descriptor stays the caller's.
    pub(crate) fn import(&mut self, fd: i32) -> Status<u64> {
        let (memory, board, len) = host::import(fd).ok_or(Code::INVALID_VALUE)?;
        let device = self.device_of(board).ok_or(Code::INVALID_VALUE)?;
        if !len.is_multiple_of(self.granularity) {
            return Err(Code::INVALID_VALUE);
        }
        Ok(self.adopt(Physical {
            memory,
            device,
            len,
            exportable: true,
            imported: true,
            opaque: true,
            handles: 1,
            mappings: 0,
        }))
    }

    /// `cuMemAddressReserve`.
    pub(crate) fn reserve(&mut self, len: u64, align: u64) -> Status<u64> {
        self.whole(len)?;
        if align != 0 && !align.is_power_of_two() {
            return Err(Code::INVALID_VALUE);
        }
        let base = self
            .map
            .take(len, align.max(self.granularity))
            .ok_or(Code::OUT_OF_MEMORY)?;
        self.map.reservations.insert(base, len);
        Ok(base)
    }

    /// `cuMemAddressFree`: exactly one reservation, with nothing mapped in it.
    pub(crate) fn unreserve(&mut self, base: u64, len: u64) -> Status {
        if self.map.reservations.get(&base) != Some(&len)
            || self.map.within(base, len).next().is_some()
        {
            return Err(Code::INVALID_VALUE);
        }
        self.map.reservations.remove(&base);
        self.map.give(base, len);
        Ok(())
    }

    /// `cuMemMap`. The mapping is accessible to nobody until [`Memory::grant`].
    pub(crate) fn map(&mut self, base: u64, len: u64, offset: u64, handle: u64) -> Status {
        self.whole(len)?;
        if offset != 0 || !base.is_multiple_of(self.granularity) {
            return Err(Code::INVALID_VALUE);
        }
        let reserved = self.map.reservations.range(..=base).next_back();
        let inside =
            reserved.is_some_and(|(&at, &size)| base - at < size && len <= size - (base - at));
        if !inside || self.map.within(base, len).next().is_some() {
            return Err(Code::INVALID_VALUE);
        }
        let physical = self
            .physical
            .get_mut(&handle)
            .filter(|physical| physical.handles > 0);
        let physical = physical.ok_or(Code::INVALID_VALUE)?;
        if len > physical.len {
            return Err(Code::INVALID_VALUE);
        }
        self.map
            .span()
            .map_shared(base, len, physical.memory.as_fd())
            .map_err(|error| {
                log::warn!("emulator: mapping {len} bytes at {base:#x} failed: {error}");
                Code::OUT_OF_MEMORY
            })?;
        physical.mappings += 1;
        let (kind, device) = (Kind::Mapping(handle), physical.device);
        self.map.insert(Range {
            base,
            len,
            kind,
            device,
            read: 0,
            write: 0,
            id: 0,
            stored: Default::default(),
        });
        Ok(())
    }

    /// The whole mappings that make up `[base, base + len)` without a gap, or nothing if it is not so.
    fn mappings(&self, base: u64, len: u64) -> Status<Vec<(u64, u64, u64)>> {
        let end = base
            .checked_add(len)
            .filter(|_| len > 0)
            .ok_or(Code::INVALID_VALUE)?;
        let mut next = base;
        let mut found = Vec::new();
        for range in self.map.within(base, len) {
            let Kind::Mapping(handle) = range.kind else {
                return Err(Code::INVALID_VALUE);
            };
            if range.base != next {
                return Err(Code::INVALID_VALUE);
            }
            next = range.end();
            found.push((range.base, range.len, handle));
        }
        if next != end {
            Err(Code::INVALID_VALUE)
        } else {
            Ok(found)
        }
    }

    /// `cuMemUnmap`: whole mappings only.
    pub(crate) fn unmap(&mut self, base: u64, len: u64) -> Status {
        for (at, size, handle) in self.mappings(base, len)? {
            let stored = self.map.remove(at).is_some_and(|range| range.stored.get());
            self.map
                .span()
                .clear(at, size)
                .map_err(|_| Code::OPERATING_SYSTEM)?;
            if let Some(physical) = self.physical.get_mut(&handle) {
                physical.mappings -= 1;
                physical.opaque |= stored;
            }
            self.drop_unused(handle);
        }
        Ok(())
    }

    /// `cuMemSetAccess`: whole mappings only; devices that are not named keep what they have.
    pub(crate) fn grant(&mut self, base: u64, len: u64, grants: &[(u32, Access)]) -> Status {
        if grants.is_empty() {
            return Err(Code::INVALID_VALUE);
        }
        if grants
            .iter()
            .any(|&(device, _)| device as usize >= self.used.len())
        {
            return Err(Code::INVALID_DEVICE);
        }
        for (at, ..) in self.mappings(base, len)? {
            for &(device, access) in grants {
                self.map.set_access(
                    at,
                    device,
                    access != Access::None,
                    access == Access::ReadWrite,
                );
            }
        }
        Ok(())
    }

    /// `cuMemGetAccess`.
    pub(crate) fn access(&self, device: u32, address: u64) -> Status<Access> {
        let range = self.map.find(address).ok_or(Code::INVALID_VALUE)?;
        if !matches!(range.kind, Kind::Mapping(_)) || device as usize >= self.used.len() {
            return Err(Code::INVALID_VALUE);
        }
        Ok(
            match (range.read >> device & 1, range.write >> device & 1) {
                (0, _) => Access::None,
                (_, 0) => Access::Read,
                _ => Access::ReadWrite,
            },
        )
    }

    /// Physical allocations with a live handle.
    pub(crate) fn live_physical(&self) -> usize {
        self.physical
            .values()
            .filter(|physical| physical.handles > 0)
            .count()
    }
}
