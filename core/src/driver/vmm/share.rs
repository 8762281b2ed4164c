//! Memory that goes to other processes, and that comes from them.

use core::ffi::{c_int, c_void};
use core::ptr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::io::FdFlags;
use slabfence_sys::{CUmemAllocationHandleType, CUmemGenericAllocationHandle};

use super::{Access, GuardedMapping, reservation};
use crate::driver::device::Device;
use crate::driver::held::Held;
use crate::error::{Error, Result};
use crate::socket;

/// The one form in which memory goes to other processes.
pub(super) const POSIX: CUmemAllocationHandleType =
    CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

impl GuardedMapping {
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
}

/// Adds to a failure that this process can open no more files, if that is so: the driver has codes of other meanings for it.
pub(super) fn for_want_of_files(result: Result<()>) -> Result<()> {
    result.map_err(|error| match socket::is_full() {
        true => Error::Refused {
            operation: "memory for peers",
            why: format!("{error}; {}", socket::full()),
        },
        false => error,
    })
}
