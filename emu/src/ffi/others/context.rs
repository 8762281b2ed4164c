//! What contexts are told and tell, and the primary context's state.

use std::ffi::{c_int, c_uint};

use slabfence_sys::{CUcontext, CUdevice};

use crate::code::Code;
use crate::ffi::pointer::{handle, put, put_if};

/// `CUctx_flags` that say how a host thread waits, and those that change nothing any more.
const KNOWN_FLAGS: c_uint = 0x1f;
/// The highest `CUfunc_cache`.
const LAST_CACHE: c_uint = 3;

functions! {
    fn cuDevicePrimaryCtxGetState(call, device: CUdevice, flags: *mut c_uint, active: *mut c_int) {
        let (state, _) = call.split();
        let device = &state.devices[state.device(device.0)? as usize];
        put(flags, device.settings.flags)?;
        put(active, c_int::from(device.retained > 0))
    }

    fn cuDevicePrimaryCtxSetFlags_v2(call, device: CUdevice, flags: c_uint) {
        let (state, _) = call.split();
        let device = state.device(device.0)?;
        if flags & !KNOWN_FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        state.devices[device as usize].settings.flags = flags;
        Ok(())
    }

    fn cuDevicePrimaryCtxReset_v2(call, device: CUdevice) {
        // The context goes however often it is retained.
        let (state, _) = call.split();
        let device = state.device(device.0)?;
        let found = &mut state.devices[device as usize];
        if found.retained == 0 {
            return Ok(());
        }
        let before = std::mem::replace(&mut found.retained, 1);
        let cut = match state.release_context(device) {
            Ok(cut) => cut,
            Err(code) => {
                state.devices[device as usize].retained = before;
                return Err(code);
            }
        };
        call.wait(&cut)?;
        Ok(())
    }

    fn cuCtxGetFlags(call, flags: *mut c_uint) {
        let (state, thread) = call.split();
        let device = state.current(thread)?;
        put(flags, state.devices[device as usize].settings.flags)
    }

    fn cuCtxSetFlags(call, flags: c_uint) {
        let (state, thread) = call.split();
        let device = state.current(thread)?;
        if flags & !KNOWN_FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        state.devices[device as usize].settings.flags = flags;
        Ok(())
    }

    fn cuCtxGetLimit(call, value: *mut usize, limit: c_uint) {
        let (state, thread) = call.split();
        let device = state.current(thread)?;
        put(value, state.devices[device as usize].settings.limit(limit)?)
    }

    fn cuCtxSetLimit(call, limit: c_uint, value: usize) {
        let (state, thread) = call.split();
        let device = state.current(thread)?;
        state.devices[device as usize].settings.set_limit(limit, value)
    }

    fn cuCtxGetCacheConfig(call, config: *mut c_uint) {
        let (state, thread) = call.split();
        let device = state.current(thread)?;
        put(config, state.devices[device as usize].settings.cache)
    }

    fn cuCtxSetCacheConfig(call, config: c_uint) {
        let (state, thread) = call.split();
        let device = state.current(thread)?;
        if config > LAST_CACHE {
            return Err(Code::INVALID_VALUE);
        }
        state.devices[device as usize].settings.cache = config;
        Ok(())
    }

    fn cuCtxGetApiVersion(call, context: CUcontext, version: *mut c_uint) {
        let (state, thread) = call.split();
        match context.is_null() {
            true => state.current(thread)?,
            false => state.context_device(handle(context.as_ptr()))?,
        };
        // What drivers since 4.0 answer.
        put(version, 3020)
    }

    fn cuCtxGetStreamPriorityRange(call, least: *mut c_int, greatest: *mut c_int) {
        // All streams are alike.
        let (state, thread) = call.split();
        state.current(thread)?;
        put_if(least, 0);
        put_if(greatest, 0);
        Ok(())
    }

    fn cuProfilerStart(call) {
        let (state, thread) = call.split();
        state.current(thread).map(drop)
    }

    fn cuProfilerStop(call) {
        let (state, thread) = call.split();
        state.current(thread).map(drop)
    }
}
