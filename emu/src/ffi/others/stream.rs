//! More of streams: what they were made with.

use std::ffi::{c_int, c_uint};

use slabfence_sys::{CUcontext, CUdevice, CUstream, CUstream_flags};

use crate::code::Code;
use crate::ffi::pointer::{handle, put, raw};

functions! {
    fn cuStreamCreateWithPriority(call, stream: *mut CUstream, flags: CUstream_flags, _priority: c_int) {
        // There is one priority, which every number is brought to.
        let (state, thread) = call.split();
        let device = state.working(thread)?;
        if stream.is_null() || flags.bits() & !CUstream_flags::CU_STREAM_NON_BLOCKING.bits() != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let index = state.streams.create(device, flags.is_empty());
        put(stream, CUstream::from_ptr(raw(state.stream_handle(index))))
    }

    fn cuStreamGetPriority(call, stream: CUstream, priority: *mut c_int) {
        let (state, thread) = call.split();
        state.stream(thread, handle(stream.as_ptr()))?;
        put(priority, 0)
    }

    fn cuStreamGetFlags(call, stream: CUstream, flags: *mut c_uint) {
        let (state, thread) = call.split();
        let index = state.stream(thread, handle(stream.as_ptr()))?;
        let blocking = state.streams.is_legacy(index) || state.streams.get(index)?.blocking;
        let of = if blocking { CUstream_flags::empty() } else { CUstream_flags::CU_STREAM_NON_BLOCKING };
        put(flags, of.bits())
    }

    fn cuStreamGetCtx(call, stream: CUstream, context: *mut CUcontext) {
        let (state, thread) = call.split();
        let index = state.stream(thread, handle(stream.as_ptr()))?;
        let device = state.streams.get(index)?.device;
        put(context, CUcontext::from_ptr(raw(state.context_handle(device))))
    }

    fn cuStreamGetDevice(call, stream: CUstream, device: *mut CUdevice) {
        let (state, thread) = call.split();
        let index = state.stream(thread, handle(stream.as_ptr()))?;
        put(device, CUdevice(state.streams.get(index)?.device as c_int))
    }
}
