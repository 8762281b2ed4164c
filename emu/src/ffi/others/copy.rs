//! More copies and fills: between any two addresses, between contexts, and those that return when they are done.

use std::ffi::{c_uint, c_ushort};

use slabfence_sys::{CUcontext, CUdeviceptr, CUstream};

use crate::code::Status;
use crate::ffi::copy::{Copy, fill};
use crate::ffi::pointer::handle;
use crate::slots::Call;

/// A copy between addresses that may be of the host or of any device.
fn any(to: CUdeviceptr, from: CUdeviceptr, bytes: usize) -> Copy {
    Copy {
        to: to.0,
        from: from.0,
        len: bytes as u64,
        device_to: false,
        device_from: false,
    }
}

fn between(to: CUdeviceptr, from: CUdeviceptr, bytes: usize) -> Copy {
    Copy {
        device_to: true,
        device_from: true,
        ..any(to, from, bytes)
    }
}

/// Whether both contexts of a copy between devices exist.
fn contexts(call: &mut Call<'_>, to: CUcontext, from: CUcontext) -> Status {
    let (state, _) = call.split();
    state.ready()?;
    state.context_device(handle(to.as_ptr()))?;
    state.context_device(handle(from.as_ptr())).map(drop)
}

/// A fill in the order of the legacy stream.
fn fill_now(
    call: &mut Call<'_>,
    at: CUdeviceptr,
    element: [u8; 4],
    width: usize,
    count: usize,
) -> Status {
    let (state, thread) = call.split();
    state.working(thread)?;
    state.refuse_unsafe(thread)?;
    fill(call, at.0, element, width, count, CUstream::null())
}

fn halves(value: c_ushort) -> [u8; 4] {
    let [low, high] = value.to_ne_bytes();
    [low, high, 0, 0]
}

functions! {
    fn cuMemcpy(call, to: CUdeviceptr, from: CUdeviceptr, bytes: usize) {
        any(to, from, bytes).now(call)
    }

    fn cuMemcpyAsync(call, to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream) {
        any(to, from, bytes).later(call, stream)
    }

    fn cuMemcpyDtoD_v2(call, to: CUdeviceptr, from: CUdeviceptr, bytes: usize) {
        between(to, from, bytes).now(call)
    }

    fn cuMemcpyPeer(call, to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext,
        bytes: usize)
    {
        contexts(call, to_context, from_context)?;
        between(to, from, bytes).now(call)
    }

    fn cuMemcpyPeerAsync(call, to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext,
        bytes: usize, stream: CUstream)
    {
        contexts(call, to_context, from_context)?;
        between(to, from, bytes).later(call, stream)
    }

    fn cuMemsetD8_v2(call, at: CUdeviceptr, value: u8, count: usize) {
        fill_now(call, at, [value, 0, 0, 0], 1, count)
    }

    fn cuMemsetD16_v2(call, at: CUdeviceptr, value: c_ushort, count: usize) {
        fill_now(call, at, halves(value), 2, count)
    }

    fn cuMemsetD32_v2(call, at: CUdeviceptr, value: c_uint, count: usize) {
        fill_now(call, at, value.to_ne_bytes(), 4, count)
    }

    fn cuMemsetD16Async(call, at: CUdeviceptr, value: c_ushort, count: usize, stream: CUstream) {
        fill(call, at.0, halves(value), 2, count, stream)
    }
}
