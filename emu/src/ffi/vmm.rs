//! Physical allocations, reservations, mappings, access.

use std::ffi::{c_int, c_void};
use std::os::fd::IntoRawFd;

use slabfence_sys::{
    CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationType,
    CUmemGenericAllocationHandle, CUmemLocation, CUmemLocationType,
};

use super::pointer::{address, get, list, put};
use crate::code::{Code, Status};
use crate::machine::State;
use crate::vmm::Access;

fn place(state: &State, location: CUmemLocation) -> Status<u32> {
    if location.type_ != CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE {
        return Err(Code::INVALID_VALUE);
    }
    state.device(location.id)
}

/// Checks what an allocation is to be: `(device, exportable)`.
fn wanted(state: &State, prop: *const CUmemAllocationProp) -> Status<(u32, bool)> {
    state.ready()?;
    let prop = get(prop)?;
    if prop.type_ != CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED {
        return Err(Code::INVALID_VALUE);
    }
    let export = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if prop.requestedHandleTypes.bits() & !export.bits() != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    Ok((
        place(state, prop.location)?,
        prop.requestedHandleTypes.contains(export),
    ))
}

entries! {
    fn cuMemGetAllocationGranularity(call, bytes: *mut usize, prop: *const CUmemAllocationProp,
        option: CUmemAllocationGranularity_flags)
    {
        let (state, _) = call.split();
        wanted(state, prop)?;
        if option.0 > CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED.0 {
            return Err(Code::INVALID_VALUE);
        }
        put(bytes, state.memory.granularity as usize)
    }

    fn cuMemCreate(call, handle: *mut CUmemGenericAllocationHandle, bytes: usize, prop: *const CUmemAllocationProp,
        flags: u64)
    {
        let (state, thread) = call.split();
        let (device, exportable) = wanted(state, prop)?;
        if handle.is_null() || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        state.refuse_unsafe(thread)?;
        put(handle, CUmemGenericAllocationHandle(state.memory.create(device, bytes as u64, exportable)?))
    }

    fn cuMemRelease(call, handle: CUmemGenericAllocationHandle) {
        let (state, _) = call.split();
        state.ready()?;
        state.memory.release(handle.0)
    }

    fn cuMemRetainAllocationHandle(call, handle: *mut CUmemGenericAllocationHandle, at: *mut c_void) {
        let (state, _) = call.split();
        state.ready()?;
        if handle.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(handle, CUmemGenericAllocationHandle(state.memory.retain(address(at))?))
    }

    fn cuMemExportToShareableHandle(call, shareable: *mut c_void, handle: CUmemGenericAllocationHandle,
        kind: CUmemAllocationHandleType, flags: u64)
    {
        let (state, _) = call.split();
        state.ready()?;
        if shareable.is_null() || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if kind != CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR {
            return Err(Code::NOT_SUPPORTED);
        }
        let exported = state.memory.export(handle.0)?;
        put(shareable.cast::<c_int>(), exported.into_raw_fd())
    }

    fn cuMemImportFromShareableHandle(call, handle: *mut CUmemGenericAllocationHandle, os_handle: *mut c_void,
        kind: CUmemAllocationHandleType)
    {
        let (state, _) = call.split();
        state.ready()?;
        if handle.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        if kind != CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR {
            return Err(Code::NOT_SUPPORTED);
        }
        let fd = c_int::try_from(os_handle.addr()).map_err(|_| Code::INVALID_VALUE)?;
        put(handle, CUmemGenericAllocationHandle(state.memory.import(fd)?))
    }

    fn cuMemAddressReserve(call, to: *mut CUdeviceptr, bytes: usize, alignment: usize, _hint: CUdeviceptr, flags: u64) {
        let (state, _) = call.split();
        state.ready()?;
        if to.is_null() || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        put(to, CUdeviceptr(state.memory.reserve(bytes as u64, alignment as u64)?))
    }

    fn cuMemAddressFree(call, at: CUdeviceptr, bytes: usize) {
        let (state, _) = call.split();
        state.ready()?;
        state.memory.unreserve(at.0, bytes as u64)
    }

    fn cuMemMap(call, at: CUdeviceptr, bytes: usize, offset: usize, handle: CUmemGenericAllocationHandle, flags: u64) {
        let (state, thread) = call.split();
        state.ready()?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        state.refuse_unsafe(thread)?;
        state.memory.map(at.0, bytes as u64, offset as u64, handle.0)
    }

    fn cuMemUnmap(call, at: CUdeviceptr, bytes: usize) {
        let (state, thread) = call.split();
        state.ready()?;
        state.refuse_unsafe(thread)?;
        state.memory.unmap(at.0, bytes as u64)
    }

    fn cuMemSetAccess(call, at: CUdeviceptr, bytes: usize, access: *const CUmemAccessDesc, count: usize) {
        let (state, thread) = call.split();
        state.ready()?;
        let mut grants = Vec::new();
        for desc in list(access, count)? {
            let access = match desc.flags {
                CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE => Access::None,
                CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ => Access::Read,
                CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE => Access::ReadWrite,
                _ => return Err(Code::INVALID_VALUE),
            };
            grants.push((place(state, desc.location)?, access));
        }
        state.refuse_unsafe(thread)?;
        state.memory.grant(at.0, bytes as u64, &grants)
    }

    fn cuMemGetAccess(call, flags: *mut u64, location: *const CUmemLocation, at: CUdeviceptr) {
        let (state, _) = call.split();
        state.ready()?;
        let device = place(state, get(location)?)?;
        let granted = match state.memory.access(device, at.0)? {
            Access::None => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE,
            Access::Read => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ,
            Access::ReadWrite => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        put(flags, u64::from(granted.0))
    }
}
