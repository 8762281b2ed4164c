//! Allocations, and what a pointer is.

use std::ffi::{c_int, c_uint, c_void};

use slabfence_sys::{
    CUcontext, CUdeviceptr, CUmemHostAlloc_flags, CUmemorytype, CUpointer_attribute,
};

use super::pointer::{address, put, put_if, raw};
use crate::code::{Code, Status};
use crate::machine::State;
use crate::slots::Call;
use crate::va::Kind;

/// Frees memory after the device's work, which may use it, is done: what the driver's own free does.
fn free(call: &mut Call<'_>, base: u64, kind: Kind) -> Status {
    let (state, thread) = call.split();
    let device = state.working(thread)?;
    state.refuse_unsafe(thread)?;
    let owner = state
        .memory
        .map
        .at(base)
        .filter(|range| range.kind == kind)
        .ok_or(Code::INVALID_VALUE)?
        .device;
    if state.memory.is_leaving(base) {
        return Err(Code::INVALID_VALUE);
    }
    let of = if kind.is_host() { None } else { Some(owner) };
    let using = state.engine.outstanding(of);
    call.wait(&using)?;
    let (state, _) = call.split();
    state.memory.free(base, kind)?;
    state.whole(device)
}

/// Stores an attribute of the memory at an address.
pub(super) fn attribute(
    state: &State,
    data: *mut c_void,
    asked: CUpointer_attribute,
    at: CUdeviceptr,
) -> Status {
    use CUpointer_attribute as P;
    let range = state.memory.map.find(at.0).ok_or(Code::INVALID_VALUE)?;
    match asked {
        P::CU_POINTER_ATTRIBUTE_CONTEXT => {
            // Mapped physical memory belongs to a device, not to a context.
            let mapping = matches!(range.kind, Kind::Mapping(_));
            let context = if mapping {
                0
            } else {
                state.context_handle(range.device)
            };
            put(data.cast(), CUcontext::from_ptr(raw(context)))
        }
        P::CU_POINTER_ATTRIBUTE_MEMORY_TYPE => put(
            data.cast(),
            match range.kind.is_host() {
                true => CUmemorytype::CU_MEMORYTYPE_HOST,
                false => CUmemorytype::CU_MEMORYTYPE_DEVICE,
            },
        ),
        P::CU_POINTER_ATTRIBUTE_DEVICE_POINTER => put(data.cast(), at),
        P::CU_POINTER_ATTRIBUTE_HOST_POINTER if range.kind.is_host() => put(data.cast(), at.0),
        P::CU_POINTER_ATTRIBUTE_BUFFER_ID => put(data.cast(), range.id),
        P::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => put(data.cast(), range.device as c_int),
        P::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR => put(data.cast(), CUdeviceptr(range.base)),
        P::CU_POINTER_ATTRIBUTE_RANGE_SIZE => put(data.cast(), range.len as usize),
        P::CU_POINTER_ATTRIBUTE_IS_MANAGED | P::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS => {
            put(data.cast(), 0u32)
        }
        P::CU_POINTER_ATTRIBUTE_MAPPED => put(data.cast(), 1u32),
        _ => Err(Code::INVALID_VALUE),
    }
}

entries! {
    fn cuMemAlloc(call, to: *mut CUdeviceptr, bytes: usize) {
        let (state, thread) = call.split();
        let device = state.working(thread)?;
        if to.is_null() || bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        state.refuse_unsafe(thread)?;
        put(to, CUdeviceptr(state.memory.alloc(device, bytes as u64)?))
    }

    fn cuMemFree(call, at: CUdeviceptr) {
        if at.0 == 0 {
            return Ok(());
        }
        free(call, at.0, Kind::Device)
    }

    fn cuMemHostAlloc(call, to: *mut *mut c_void, bytes: usize, _flags: CUmemHostAlloc_flags) {
        let (state, thread) = call.split();
        let device = state.working(thread)?;
        if to.is_null() || bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        state.refuse_unsafe(thread)?;
        let base = state.memory.host_alloc(device, bytes as u64)?;
        put(to, std::ptr::with_exposed_provenance_mut(base as usize))
    }

    fn cuMemFreeHost(call, pointer: *mut c_void) {
        free(call, address(pointer), Kind::Host)
    }

    fn cuMemHostGetDevicePointer(call, to: *mut CUdeviceptr, pointer: *mut c_void, flags: c_uint) {
        let (state, thread) = call.split();
        state.working(thread)?;
        let at = address(pointer);
        let host = state.memory.map.find(at).is_some_and(|range| range.kind.is_host());
        if flags != 0 || !host {
            return Err(Code::INVALID_VALUE);
        }
        put(to, CUdeviceptr(at))
    }

    fn cuMemGetAddressRange(call, base: *mut CUdeviceptr, bytes: *mut usize, at: CUdeviceptr) {
        let (state, thread) = call.split();
        state.working(thread)?;
        let range = state.memory.map.find(at.0).ok_or(Code::NOT_FOUND)?;
        put_if(base, CUdeviceptr(range.base));
        put_if(bytes, range.len as usize);
        Ok(())
    }

    fn cuPointerGetAttribute(call, data: *mut c_void, asked: CUpointer_attribute, at: CUdeviceptr) {
        let (state, thread) = call.split();
        state.working(thread)?;
        attribute(state, data, asked, at)
    }
}
