//! Physical memory, reserved addresses and mappings: the `cuMem*` family under one owner.

mod properties;
mod share;

use slabfence_sys::{
    CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemGenericAllocationHandle, RangeKind,
    RangeNote,
};

use super::device::Device;
use super::held::Held;
use super::{fork, transfer};
use crate::error::{Error, Result, every};
pub(crate) use properties::granularity;
use properties::{location, properties};
use share::for_want_of_files;

/// What a device may do in a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Load.
    Read,
    /// Load and store.
    ReadWrite,
}

/// Addresses of a mapping with its guards.
fn reservation(bytes: usize, guard: usize) -> Option<usize> {
    bytes.checked_add(guard.checked_mul(2)?)
}

/// Physical memory of one device, mapped once, whole, between two unmapped guards. Each part is kept until it has been
/// given back, so that closing can be tried again.
#[derive(Debug)]
pub(crate) struct GuardedMapping {
    device: Device,
    base: u64,
    bytes: usize,
    guard: usize,
    physical: Option<CUmemGenericAllocationHandle>,
    /// First address of the reservation, while there is one.
    reserved: Option<u64>,
    mapped: Held,
}

impl GuardedMapping {
    /// Nothing yet, of `bytes` bytes, a multiple of the granularity. Filled step by step: whatever fails, dropping it gives
    /// back what there is.
    fn empty(device: &Device, bytes: usize, guard: usize) -> Self {
        Self {
            device: device.clone(),
            base: 0,
            bytes,
            guard,
            physical: None,
            reserved: None,
            mapped: Held::No,
        }
    }

    /// Allocates at least `bytes` bytes, maps them for their own device to read and write, and fills them with zeros.
    pub(crate) fn create(device: &Device, bytes: usize) -> Result<Self> {
        let guard = device.granularity()?;
        let whole = bytes
            .checked_next_multiple_of(guard)
            .filter(|&whole| whole > 0 && reservation(whole, guard).is_some());
        let Some(whole) = whole else {
            return Err(Error::Argument {
                operation: "Mapping::create",
                what: format!("{bytes} bytes cannot be mapped"),
            });
        };
        let _guard = device.setup()?;
        let api = device.api();
        // What could not be freed is not made.
        api.cuMemUnmap()?;
        api.cuMemAddressFree()?;
        api.cuMemRelease()?;
        let mut mapping = Self::empty(device, whole, guard);
        let properties = properties(device)?;
        let mut physical = CUmemGenericAllocationHandle::default();
        // SAFETY: `physical` is a live out-parameter; the properties are live and wholly initialised; flags must be zero.
        let code = unsafe { (api.cuMemCreate()?)(&mut physical, whole, &properties, 0) };
        for_want_of_files(device.check("cuMemCreate", code))?;
        mapping.physical = Some(physical);
        mapping.map(physical, Access::ReadWrite)?;
        // SAFETY: the whole of a mapping that nobody else knows yet.
        unsafe { transfer::fill(device, mapping.base, 0, whole) }?;
        Ok(mapping)
    }

    /// Maps `physical` between two guards, for the own device.
    fn map(&mut self, physical: CUmemGenericAllocationHandle, access: Access) -> Result<()> {
        let (device, whole, guard) = (self.device.clone(), self.bytes, self.guard);
        let api = device.api();
        let reserve = reservation(whole, guard).ok_or(Error::Argument {
            operation: "Mapping::create",
            what: format!("{whole} bytes cannot be mapped"),
        })?;
        let mut address = CUdeviceptr::default();
        // SAFETY: `address` is a live out-parameter; no place is asked for; flags must be zero.
        let code = unsafe {
            (api.cuMemAddressReserve()?)(&mut address, reserve, guard, CUdeviceptr::default(), 0)
        };
        device.check("cuMemAddressReserve", code)?;
        self.reserved = Some(address.0);
        self.base = address.0 + guard as u64;
        // SAFETY: the range lies inside the reservation and nothing is mapped there; offset and flags must be zero.
        let code = unsafe { (api.cuMemMap()?)(CUdeviceptr(self.base), whole, 0, physical, 0) };
        self.mapped = match code.is_success() {
            true => Held::Yes,
            false => Held::Perhaps,
        };
        device.check("cuMemMap", code)?;
        self.set_access(device.ordinal(), access)
    }

    /// Lets the device `ordinal` access the mapping.
    pub(crate) fn set_access(&self, ordinal: u32, access: Access) -> Result<()> {
        self.refuse_closed("Mapping::grant")?;
        let access = CUmemAccessDesc {
            location: location(ordinal)?,
            flags: match access {
                Access::Read => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ,
                Access::ReadWrite => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
            },
        };
        let _guard = self.device.setup()?;
        // SAFETY: the range is one whole mapping; the one descriptor is live for the call.
        let code = unsafe {
            (self.device.api().cuMemSetAccess()?)(CUdeviceptr(self.base), self.bytes, &access, 1)
        };
        self.device.check("cuMemSetAccess", code)
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Whether it is certainly mapped.
    pub(crate) fn is_mapped(&self) -> bool {
        self.mapped == Held::Yes
    }

    /// First mapped address.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Bytes that are mapped now, as far as is known.
    pub(crate) fn held(&self) -> usize {
        match self.mapped {
            Held::No => 0,
            Held::Perhaps | Held::Yes => self.bytes,
        }
    }

    /// Mapped bytes, before a close too.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of each unmapped guard.
    pub(crate) fn guard(&self) -> usize {
        self.guard
    }

    /// Copies into the mapping and waits.
    pub(crate) fn write(&self, offset: usize, from: &[u8]) -> Result<()> {
        let to = self.part("write to a mapping", offset, from.len())?;
        // SAFETY: inside this mapping, which is live.
        unsafe { transfer::write(&self.device, to, from) }
    }

    /// Copies out of the mapping and waits.
    pub(crate) fn read(&self, offset: usize, to: &mut [u8]) -> Result<()> {
        let from = self.part("read of a mapping", offset, to.len())?;
        // SAFETY: inside this mapping, which is live.
        unsafe { transfer::read(&self.device, from, to) }
    }

    /// Fills a part of the mapping and waits.
    pub(crate) fn fill(&self, offset: usize, value: u8, bytes: usize) -> Result<()> {
        let to = self.part("fill of a mapping", offset, bytes)?;
        // SAFETY: inside this mapping, which is live.
        unsafe { transfer::fill(&self.device, to, value, bytes) }
    }

    fn part(&self, operation: &'static str, offset: usize, bytes: usize) -> Result<u64> {
        self.refuse_closed(operation)?;
        transfer::check_part(operation, self.bytes, offset, bytes)?;
        Ok(self.base + offset as u64)
    }

    fn refuse_closed(&self, operation: &'static str) -> Result<()> {
        fork::refuse()?;
        if self.mapped != Held::Yes {
            return Err(Error::Closed { what: operation });
        }
        Ok(())
    }

    /// Takes back whatever was announced of the mapping to an emulated driver's checker.
    fn forget(&self) -> Result<()> {
        self.device.driver().announce(&RangeNote {
            base: self.base,
            bytes: self.bytes as u64,
            kind: RangeKind::FORGET,
            slot: RangeNote::NONE,
            rank: RangeNote::NONE,
            source: RangeNote::NONE,
            channel: 0,
            phase: RangeNote::NONE,
            reserved: 0,
        })
    }

    fn is_given_back(&self) -> bool {
        self.mapped == Held::No && self.reserved.is_none() && self.physical.is_none()
    }

    /// Unmaps, frees the addresses and releases the memory. An unmapping that failed stays to be done, and the next call goes
    /// on there; once all is given back, further calls do nothing. Freeing addresses and releasing memory are never repeated:
    /// whatever the driver returned, address or handle may be another allocation's by now. A mapping has no such heir, since
    /// its addresses stay reserved.
    pub(crate) fn close(&mut self) -> Result<()> {
        fork::refuse()?;
        if self.is_given_back() {
            return Ok(());
        }
        let device = self.device.clone();
        let _guard = device.setup()?;
        let api = device.api();
        if self.mapped != Held::No {
            if self.mapped == Held::Yes {
                self.forget()?;
            }
            // SAFETY: exactly what was mapped. Whoever could still access it is the caller's concern, as with any memory.
            let code = unsafe { (api.cuMemUnmap()?)(CUdeviceptr(self.base), self.bytes) };
            device.check("cuMemUnmap", self.mapped.ended(code))?;
        }
        let (free, release) = (api.cuMemAddressFree()?, api.cuMemRelease()?);
        let freed = self.reserved.take().map(|start| {
            let bytes = self.bytes + 2 * self.guard;
            // SAFETY: exactly what was reserved, with nothing mapped in it any more, freed once.
            let code = unsafe { free(CUdeviceptr(start), bytes) };
            device.check("cuMemAddressFree", code)
        });
        let released = self.physical.take().map(|physical| {
            // SAFETY: from `cuMemCreate` or an import, released once.
            let code = unsafe { release(physical) };
            device.check("cuMemRelease", code)
        });
        every([freed, released].into_iter().flatten())
    }
}

impl Drop for GuardedMapping {
    fn drop(&mut self) {
        if fork::forked() {
            return;
        }
        // Nobody comes after this one to try again what may be tried again.
        let closed = self.close().or_else(|error| match self.is_given_back() {
            true => Err(error),
            false => self.close(),
        });
        match closed {
            Err(Error::Driver(error)) if super::entry::gone(error.code) => {}
            Err(error) => log::error!(
                "a mapping of {} bytes at {:#x} on device {} could not be given back and is leaked: {error}",
                self.bytes,
                self.base,
                self.device.ordinal()
            ),
            Ok(()) => {}
        }
    }
}
