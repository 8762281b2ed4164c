//! More of events.

use std::ffi::c_uint;

use slabfence_sys::{CUevent, CUstream};

use crate::code::Code;
use crate::ffi::pointer::{handle, put};

/// `CU_EVENT_RECORD_EXTERNAL`: in a capture, a node that records for who waits outside.
const EXTERNAL: c_uint = 1;

functions! {
    fn cuEventRecordWithFlags(call, event: CUevent, stream: CUstream, flags: c_uint) {
        let (state, thread) = call.split();
        let index = state.stream(thread, handle(stream.as_ptr()))?;
        if flags & !EXTERNAL != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if flags == EXTERNAL && state.streams.get(index)?.capture.is_some() {
            return Err(Code::NOT_SUPPORTED);
        }
        state.record(handle(event.as_ptr()), index)
    }

    fn cuEventElapsedTime_v2(call, milliseconds: *mut f32, start: CUevent, end: CUevent) {
        let (state, _) = call.split();
        state.ready()?;
        put(milliseconds, state.events.elapsed(handle(start.as_ptr()), handle(end.as_ptr()))?)
    }
}
