//! Physical memory, reserved addresses and mappings: the `cuMem*` family under one owner.

use core::ffi::{c_int, c_void};
use core::ptr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::io::FdFlags;
use slabfence_sys::{
    CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationType,
    CUmemGenericAllocationHandle, CUmemLocation, CUmemLocationType, RangeKind, RangeNote,
};

use super::device::Device;
use super::held::Held;
use super::{fork, transfer};
use crate::error::{Error, Result, every};
use crate::socket;

/// What a device may do in a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Load.
    Read,
    /// Load and store.
    ReadWrite,
}

fn location(ordinal: u32) -> Result<CUmemLocation> {
    Ok(CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        id: i32::try_from(ordinal).map_err(|_| Error::Argument {
            operation: "cuMem",
            what: format!("ordinal {ordinal} is no device"),
        })?,
    })
}

/// Pinned memory of the device, exportable where the device can: a form not asked for here cannot be had later.
fn properties(device: &Device) -> Result<CUmemAllocationProp> {
    let handles = if device.info().posix_handles {
        POSIX
    } else {
        CUmemAllocationHandleType::empty()
    };
    Ok(CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: handles,
        location: location(device.ordinal())?,
        ..CUmemAllocationProp::default()
    })
}

/// Bytes of which allocations and mappings of this device are multiples.
pub(crate) fn granularity(device: &Device) -> Result<usize> {
    let _guard = device.setup()?;
    let properties = properties(device)?;
    let mut bytes = 0usize;
    let which = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
    // SAFETY: `bytes` is a live out-parameter, the properties are live and wholly initialised.
    let code =
        unsafe { (device.api().cuMemGetAllocationGranularity()?)(&mut bytes, &properties, which) };
    device.check("cuMemGetAllocationGranularity", code)?;
    if !bytes.is_power_of_two() {
        return Err(Error::Refused {
            operation: "Device::granularity",
            why: format!("the driver gives {bytes} bytes, which is no power of two"),
        });
    }
    Ok(bytes)
}

/// The one form in which memory goes to other processes.
const POSIX: CUmemAllocationHandleType =
    CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

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

    /// Maps memory of `bytes` bytes that another process has exported, for this process's `device` to access. The
    /// descriptor is closed in any case: the driver keeps what it needs.
    pub(crate) fn import(
        device: &Device,
        descriptor: OwnedFd,
        bytes: usize,
        access: Access,
    ) -> Result<Self> {
        let guard = device.granularity()?;
        if bytes == 0 || !bytes.is_multiple_of(guard) || reservation(bytes, guard).is_none() {
            return Err(Error::Refused {
                operation: "Mapping::import",
                why: format!(
                    "a peer's allocation of {bytes} bytes; device {} maps multiples of {guard}: use devices of one kind",
                    device.ordinal()
                ),
            });
        }
        let _guard = device.setup()?;
        let import = device.api().cuMemImportFromShareableHandle()?;
        let mut mapping = Self::empty(device, bytes, guard);
        let mut physical = CUmemGenericAllocationHandle::default();
        // The form is the descriptor's number in the place of a pointer.
        let handle = ptr::without_provenance_mut::<c_void>(descriptor.as_raw_fd() as usize);
        // SAFETY: `physical` is a live out-parameter; the descriptor is open until the call has returned, and the driver
        // refuses one that is no exported memory.
        let code = unsafe { import(&mut physical, handle, POSIX) };
        for_want_of_files(device.check("cuMemImportFromShareableHandle", code))?;
        mapping.physical = Some(physical);
        mapping.map(physical, access)?;
        Ok(mapping)
    }

    /// A descriptor of the memory, for another process to import.
    pub(crate) fn export(&self) -> Result<OwnedFd> {
        let physical = self.physical.filter(|_| self.mapped == Held::Yes);
        let physical = physical.ok_or(Error::Closed {
            what: "Mapping::export",
        })?;
        let device = &self.device;
        let _guard = device.setup()?;
        let export = device.api().cuMemExportToShareableHandle()?;
        let mut descriptor: c_int = -1;
        let to = (&raw mut descriptor).cast();
        // SAFETY: for this form the driver writes one C integer, to which `to` points; the handle is live; flags must be
        // zero.
        let code = unsafe { export(to, physical, POSIX, 0) };
        for_want_of_files(device.check("cuMemExportToShareableHandle", code))?;
        if descriptor < 0 {
            return Err(Error::Refused {
                operation: "Mapping::export",
                why: format!("the driver gave {descriptor}, which is no descriptor"),
            });
        }
        // SAFETY: the driver has just opened the descriptor for the caller, who is to close it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        // A program that this process starts would keep the memory alive.
        rustix::io::fcntl_setfd(&descriptor, FdFlags::CLOEXEC).map_err(|error| Error::Refused {
            operation: "Mapping::export",
            why: format!("the descriptor cannot be kept from programs that are started: {error}"),
        })?;
        Ok(descriptor)
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

/// Adds to a failure that this process can open no more files, if that is so: the driver has codes of other meanings for it.
fn for_want_of_files(result: Result<()>) -> Result<()> {
    result.map_err(|error| match socket::is_full() {
        true => Error::Refused {
            operation: "memory for peers",
            why: format!("{error}; {}", socket::full()),
        },
        false => error,
    })
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
