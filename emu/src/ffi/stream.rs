//! Streams and host functions.

use std::ffi::c_void;

use slabfence_sys::{CUevent, CUevent_wait_flags, CUhostFn, CUstream, CUstream_flags};

use super::pointer::{handle, put, raw};
use crate::callback::Callback;
use crate::code::Code;
use crate::graph::Task;

entries! {
    fn cuStreamCreate(call, stream: *mut CUstream, flags: CUstream_flags) {
        let (state, thread) = call.split();
        let device = state.working(thread)?;
        if stream.is_null() || flags.bits() & !CUstream_flags::CU_STREAM_NON_BLOCKING.bits() != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let index = state.streams.create(device, flags.is_empty());
        put(stream, CUstream::from_ptr(raw(state.stream_handle(index))))
    }

    fn cuStreamDestroy(call, stream: CUstream) {
        let (state, thread) = call.split();
        let index = state.stream(thread, handle(stream.as_ptr()))?;
        if state.streams.is_legacy(index) {
            return Err(Code::INVALID_HANDLE);
        }
        state.destroy_stream(index)
    }

    fn cuStreamSynchronize(call, stream: CUstream) {
        let (state, thread) = call.split();
        let index = state.stream(thread, handle(stream.as_ptr()))?;
        let tail = state.stream_tail(index)?;
        state.refuse_unsafe(thread)?;
        let device = state.streams.get(index)?.device;
        call.wait(&tail)?;
        call.split().0.whole(device)
    }

    fn cuStreamQuery(call, stream: CUstream) {
        let (state, thread) = call.split();
        let index = state.stream(thread, handle(stream.as_ptr()))?;
        let tail = state.stream_tail(index)?;
        state.refuse_unsafe(thread)?;
        let busy = tail.into_iter().any(|op| state.engine.pending(op));
        if busy { Err(Code::NOT_READY) } else { Ok(()) }
    }

    fn cuStreamGetId(call, stream: CUstream, id: *mut u64) {
        let (state, thread) = call.split();
        let index = state.stream(thread, handle(stream.as_ptr()))?;
        let stream = state.streams.get(index)?;
        // As driver 580 does on an H200; the capture goes on.
        if stream.capture.is_some() {
            return Err(Code::CAPTURE_UNSUPPORTED);
        }
        put(id, stream.id)
    }

    fn cuStreamWaitEvent(call, stream: CUstream, event: CUevent, flags: CUevent_wait_flags) {
        let (state, thread) = call.split();
        let index = state.stream(thread, handle(stream.as_ptr()))?;
        let external = flags.contains(CUevent_wait_flags::CU_EVENT_WAIT_EXTERNAL);
        if flags.bits() & !CUevent_wait_flags::CU_EVENT_WAIT_EXTERNAL.bits() != 0 {
            return Err(Code::INVALID_VALUE);
        }
        state.wait_event(index, handle(event.as_ptr()), external)
    }

    fn cuLaunchHostFunc(call, stream: CUstream, function: CUhostFn, user_data: *mut c_void) {
        let (state, thread) = call.split();
        let index = state.stream(thread, handle(stream.as_ptr()))?;
        let function = function.ok_or(Code::INVALID_VALUE)?;
        // SAFETY: the caller gives the function to be called with this argument, once per execution in the stream or
        // of the graph that captures it, on a thread of the driver.
        let callback = unsafe { Callback::new(function, user_data) };
        state.submit(index, Task::Host(callback))
    }
}
