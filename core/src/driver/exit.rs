//! The end of the process, at which the driver takes away what it gave.

use core::ffi::c_int;

unsafe extern "C" {
    // The function lives as long as the process: this library is never unloaded while a driver is in use.
    safe fn atexit(function: extern "C" fn()) -> c_int;
}

/// Has `function` called when the process exits, before whatever was registered earlier is.
pub(crate) fn before(function: extern "C" fn()) {
    let code = atexit(function);
    if code != 0 {
        log::warn!("atexit failed with {code}: what should end before the driver does may not");
    }
}
