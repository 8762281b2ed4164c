//! Primary contexts and what is current.

use slabfence_sys::{CUcontext, CUdevice};

use super::pointer::{handle, put, raw};
use crate::code::Code;

entries! {
    fn cuDevicePrimaryCtxRetain(call, context: *mut CUcontext, device: CUdevice) {
        let (state, _) = call.split();
        let device = state.device(device.0)?;
        if context.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(context, CUcontext::from_ptr(raw(state.retain_context(device))))
    }

    fn cuDevicePrimaryCtxRelease(call, device: CUdevice) {
        let (state, _) = call.split();
        let device = state.device(device.0)?;
        let cut = state.release_context(device)?;
        call.wait(&cut)?;
        Ok(())
    }

    fn cuCtxPushCurrent(call, context: CUcontext) {
        let (state, thread) = call.split();
        state.ready()?;
        let device = state.context_device(handle(context.as_ptr()))?;
        thread.stack.push(device);
        Ok(())
    }

    fn cuCtxPopCurrent(call, context: *mut CUcontext) {
        let (state, thread) = call.split();
        state.ready()?;
        let device = thread.stack.pop().ok_or(Code::INVALID_CONTEXT)?;
        super::pointer::put_if(context, CUcontext::from_ptr(raw(state.context_handle(device))));
        Ok(())
    }

    fn cuCtxGetCurrent(call, context: *mut CUcontext) {
        let (state, thread) = call.split();
        state.ready()?;
        let current = thread.stack.last().map_or(0, |&device| state.context_handle(device));
        put(context, CUcontext::from_ptr(raw(current)))
    }

    fn cuCtxSetCurrent(call, context: CUcontext) {
        let (state, thread) = call.split();
        state.ready()?;
        if context.is_null() {
            thread.stack.pop();
            return Ok(());
        }
        let device = state.context_device(handle(context.as_ptr()))?;
        thread.stack.pop();
        thread.stack.push(device);
        Ok(())
    }

    fn cuCtxGetDevice(call, device: *mut CUdevice) {
        let (state, thread) = call.split();
        let current = state.current(thread)?;
        put(device, CUdevice(current as i32))
    }

    fn cuCtxGetId(call, context: CUcontext, id: *mut u64) {
        let (state, thread) = call.split();
        state.ready()?;
        let device = match context.is_null() {
            true => state.current(thread)?,
            false => state.context_device(handle(context.as_ptr()))?,
        };
        put(id, state.context_id(device))
    }

    fn cuCtxSynchronize(call) {
        let (state, thread) = call.split();
        let device = state.working(thread)?;
        state.refuse_context_in_capture(device)?;
        state.refuse_unsafe(thread)?;
        let all = state.engine.outstanding(Some(device));
        call.wait(&all)?;
        call.split().0.whole(device)
    }
}
