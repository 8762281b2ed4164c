//! Ways to make one rank late.

use core::ffi::c_void;
use std::time::Duration;

use slabfence::driver::Stream;

/// Enqueues a host function that holds `stream` up for `time`.
///
/// # Panics
///
/// When the driver refuses: these are tests.
pub fn hold(stream: &Stream, time: Duration) {
    let micros = core::ptr::without_provenance_mut(time.as_micros() as usize);
    let device = stream.device();
    let _guard = device.bind().expect("the device's context");
    // SAFETY: the stream is live; the function uses its argument as a number only.
    let code =
        unsafe { (device.driver().api().cuLaunchHostFunc)(stream.raw(), Some(sleep), micros) };
    assert!(code.is_success(), "cuLaunchHostFunc: {code:?}");
}

unsafe extern "C" fn sleep(micros: *mut c_void) {
    std::thread::sleep(Duration::from_micros(micros.addr() as u64));
}
