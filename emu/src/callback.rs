//! Functions of the caller that the machine calls.

use std::ffi::c_void;

/// A host function with its argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Callback {
    function: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
}

// SAFETY: the driver API calls host functions and destructors on a thread of its own; who passed the argument agreed
// to that.
unsafe impl Send for Callback {}
// SAFETY: a shared callback gives no more than a copy of it, which may be sent.
unsafe impl Sync for Callback {}

impl Callback {
    /// A callback as the driver's caller gave it.
    ///
    /// # Safety
    ///
    /// The function may be called once per time that the driver call promises, with this argument, on any thread.
    pub(crate) unsafe fn new(
        function: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
    ) -> Callback {
        Callback { function, argument }
    }

    /// Function and argument.
    pub(crate) fn parts(self) -> (unsafe extern "C" fn(*mut c_void), *mut c_void) {
        (self.function, self.argument)
    }

    /// Calls it. The caller holds no lock of the machine.
    pub(crate) fn call(self) {
        // SAFETY: by the contract of `new`.
        unsafe { (self.function)(self.argument) }
    }
}
