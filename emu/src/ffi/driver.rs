//! Initialisation, version, error texts.

use std::ffi::{c_char, c_int, c_uint};

use slabfence_sys::CUresult;

use super::pointer::put;
use crate::code::{self, Code};

entries! {
    fn cuInit(call, flags: c_uint) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        call.split().0.initialised = true;
        Ok(())
    }

    fn cuDriverGetVersion(call, version: *mut c_int) {
        put(version, call.split().0.profile.driver_version)
    }

    fn cuGetErrorName(_call, error: CUresult, name: *mut *const c_char) {
        let known = code::describe(error.0);
        put(name, known.map_or(std::ptr::null(), |(name, _)| name.as_ptr()))?;
        known.map(drop).ok_or(Code::INVALID_VALUE)
    }

    fn cuGetErrorString(_call, error: CUresult, text: *mut *const c_char) {
        let known = code::describe(error.0);
        put(text, known.map_or(std::ptr::null(), |(_, text)| text.as_ptr()))?;
        known.map(drop).ok_or(Code::INVALID_VALUE)
    }
}
