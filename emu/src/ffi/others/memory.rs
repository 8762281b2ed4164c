//! More of memory: how much there is, page-locked memory without flags, several attributes at once.

use std::ffi::{c_uint, c_void};

use slabfence_sys::{CUdeviceptr, CUpointer_attribute};

use crate::code::Code;
use crate::ffi::memory::attribute;
use crate::ffi::pointer::{get, put};

functions! {
    fn cuMemGetInfo_v2(call, free: *mut usize, total: *mut usize) {
        let (state, thread) = call.split();
        let device = state.working(thread)?;
        let (memory, used) = (&state.memory, state.memory.used[device as usize]);
        put(free, (memory.capacity - used) as usize)?;
        put(total, memory.capacity as usize)
    }

    fn cuMemAllocHost_v2(call, to: *mut *mut c_void, bytes: usize) {
        let (state, thread) = call.split();
        let device = state.working(thread)?;
        if to.is_null() || bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        state.refuse_unsafe(thread)?;
        let base = state.memory.host_alloc(device, bytes as u64)?;
        put(to, std::ptr::with_exposed_provenance_mut(base as usize))
    }

    fn cuPointerGetAttributes(call, count: c_uint, asked: *mut CUpointer_attribute, data: *mut *mut c_void,
        at: CUdeviceptr)
    {
        let (state, thread) = call.split();
        state.working(thread)?;
        for index in 0..count as usize {
            let (asked, to) = (get(asked.wrapping_add(index))?, get(data.wrapping_add(index))?);
            attribute(state, to, asked, at)?;
        }
        Ok(())
    }
}
