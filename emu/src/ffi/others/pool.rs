//! Memory in stream order: of the one pool that a device has.

use std::ffi::{c_int, c_uint, c_void};

use slabfence_sys::{CUdevice, CUdeviceptr, CUstream};

use crate::code::{Code, Status};
use crate::ffi::pointer::{get, handle, put, raw};
use crate::operations::Work;
use crate::slots::Call;

/// The attributes of a pool that are kept and told, and change nothing: how memory may be used again (three `int`s), and
/// the bytes that a synchronisation need not give back (a `cuuint64_t`).
const REUSE: std::ops::RangeInclusive<c_uint> = 1..=3;
const RELEASE_THRESHOLD: c_uint = 4;

/// Allocates now: an address that nobody knows before the call cannot be used before.
fn allocate(
    call: &mut Call<'_>,
    to: *mut CUdeviceptr,
    bytes: usize,
    device: Option<u32>,
    stream: CUstream,
) -> Status {
    let (state, thread) = call.split();
    let index = state.stream(thread, handle(stream.as_ptr()))?;
    if to.is_null() || bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let found = state.streams.get(index)?;
    // It would be a node that allocates at every launch.
    if found.capture.is_some() {
        return Err(Code::NOT_SUPPORTED);
    }
    let device = device.unwrap_or(found.device);
    put(to, CUdeviceptr(state.memory.alloc(device, bytes as u64)?))
}

functions! {
    fn cuDeviceGetDefaultMemPool(call, pool: *mut *mut c_void, device: CUdevice) {
        let (state, _) = call.split();
        let device = state.device(device.0)?;
        put(pool, raw(state.pool_handle(device)))
    }

    fn cuDeviceGetMemPool(call, pool: *mut *mut c_void, device: CUdevice) {
        let (state, _) = call.split();
        let device = state.device(device.0)?;
        put(pool, raw(state.pool_handle(device)))
    }

    fn cuDeviceSetMemPool(call, device: CUdevice, pool: *mut c_void) {
        let (state, _) = call.split();
        let device = state.device(device.0)?;
        if state.pool_device(handle(pool))? == device { Ok(()) } else { Err(Code::INVALID_VALUE) }
    }

    fn cuMemPoolTrimTo(call, pool: *mut c_void, _bytes: usize) {
        // What is freed is given back at once.
        call.split().0.pool_device(handle(pool)).map(drop)
    }

    fn cuMemPoolGetAttribute(call, pool: *mut c_void, asked: c_uint, value: *mut c_void) {
        let (state, _) = call.split();
        let device = state.pool_device(handle(pool))?;
        let told = state.devices[device as usize].pool.get(&asked).copied();
        match asked {
            RELEASE_THRESHOLD => put(value.cast::<u64>(), told.unwrap_or(0)),
            _ if REUSE.contains(&asked) => put(value.cast::<c_int>(), told.unwrap_or(1) as c_int),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn cuMemPoolSetAttribute(call, pool: *mut c_void, told: c_uint, value: *mut c_void) {
        let (state, _) = call.split();
        let device = state.pool_device(handle(pool))?;
        let value = match told {
            RELEASE_THRESHOLD => get(value.cast::<u64>().cast_const())?,
            _ if REUSE.contains(&told) => u64::from(get(value.cast::<c_int>().cast_const())? != 0),
            _ => return Err(Code::INVALID_VALUE),
        };
        state.devices[device as usize].pool.insert(told, value);
        Ok(())
    }

    fn cuMemAllocAsync(call, to: *mut CUdeviceptr, bytes: usize, stream: CUstream) {
        allocate(call, to, bytes, None, stream)
    }

    fn cuMemAllocFromPoolAsync(call, to: *mut CUdeviceptr, bytes: usize, pool: *mut c_void, stream: CUstream) {
        let device = call.split().0.pool_device(handle(pool))?;
        allocate(call, to, bytes, Some(device), stream)
    }

    fn cuMemFreeAsync(call, at: CUdeviceptr, stream: CUstream) {
        let (state, thread) = call.split();
        let index = state.stream(thread, handle(stream.as_ptr()))?;
        if state.streams.get(index)?.capture.is_some() {
            return Err(Code::NOT_SUPPORTED);
        }
        state.refuse_legacy_in_capture(index)?;
        state.memory.leave(at.0)?;
        state.enqueue(index, Work::Free(at.0), &[]).map(drop)
    }
}
