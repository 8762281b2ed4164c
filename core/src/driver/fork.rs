//! Fork detection. "Any use of CUDA after fork and before exec has undefined behaviour", and sockets and locks of a group or
//! a status server are the parent's: in a forked child every call is an error, and every `Drop` leaves the parent's objects
//! alone.

use core::ffi::c_int;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

static FORKED: AtomicBool = AtomicBool::new(false);
static WATCH: Once = Once::new();

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> c_int;
}

unsafe extern "C" fn in_child() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Starts to watch for forks of this process; once is enough.
pub(crate) fn watch() {
    WATCH.call_once(|| {
        // SAFETY: POSIX: the handler is called in the child before `fork` returns there; it may do what is
        // async-signal-safe, and one relaxed store to a lock-free atomic is. The handler lives as long as the process,
        // since this library is never unloaded while a driver is in use (its table holds functions "until the process ends").
        let code = unsafe { pthread_atfork(None, None, Some(in_child)) };
        if code != 0 {
            log::warn!(
                "pthread_atfork failed with {code}: calls in a forked child will not be refused"
            );
        }
    });
}

/// Whether this process is a forked child of one that watched: that had opened a driver, joined a group or told its state.
pub(crate) fn forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// The error of a call in a forked child. Asked before any lock is taken, which a thread that the child does not have may
/// hold for ever, and before memory is touched that the parent shares with devices, which the child may not have.
pub(crate) fn refuse() -> Result<()> {
    match forked() {
        true => Err(Error::Forked),
        false => Ok(()),
    }
}
