//! Events.

use slabfence_sys::{CUevent, CUevent_flags, CUstream};

use super::pointer::{handle, put, raw};
use crate::code::Code;
use crate::event::{Event, Recorded};

entries! {
    fn cuEventCreate(call, event: *mut CUevent, flags: CUevent_flags) {
        let (state, thread) = call.split();
        let device = state.working(thread)?;
        let known = CUevent_flags::CU_EVENT_BLOCKING_SYNC | CUevent_flags::CU_EVENT_DISABLE_TIMING;
        if event.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        if flags.contains(CUevent_flags::CU_EVENT_INTERPROCESS) {
            return Err(Code::NOT_SUPPORTED);
        }
        if flags.bits() & !known.bits() != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let timing = !flags.contains(CUevent_flags::CU_EVENT_DISABLE_TIMING);
        let value = state.events.0.insert(Event { device, timing, recorded: Recorded::Never });
        put(event, CUevent::from_ptr(raw(value)))
    }

    fn cuEventDestroy(call, event: CUevent) {
        let (state, _) = call.split();
        state.ready()?;
        state.events.0.remove(handle(event.as_ptr())).map(drop)
    }

    fn cuEventRecord(call, event: CUevent, stream: CUstream) {
        let (state, thread) = call.split();
        let index = state.stream(thread, handle(stream.as_ptr()))?;
        state.record(handle(event.as_ptr()), index)
    }

    fn cuEventQuery(call, event: CUevent) {
        let (state, thread) = call.split();
        state.ready()?;
        let tail = state.event_tail(handle(event.as_ptr()))?;
        state.refuse_unsafe(thread)?;
        let busy = tail.is_some_and(|op| state.engine.pending(op));
        if busy { Err(Code::NOT_READY) } else { Ok(()) }
    }

    fn cuEventSynchronize(call, event: CUevent) {
        let (state, thread) = call.split();
        state.ready()?;
        let value = handle(event.as_ptr());
        let tail = state.event_tail(value)?;
        state.refuse_unsafe(thread)?;
        let device = state.events.0.get(value)?.device;
        call.wait(tail.as_slice())?;
        call.split().0.whole(device)
    }

    fn cuEventElapsedTime(call, milliseconds: *mut f32, start: CUevent, end: CUevent) {
        let (state, _) = call.split();
        state.ready()?;
        put(milliseconds, state.events.elapsed(handle(start.as_ptr()), handle(end.as_ptr()))?)
    }
}
