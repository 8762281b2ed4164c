//! Objects that a graph held until it died. The driver tells so from a callback that "cannot make CUDA API calls", so
//! the callback only queues the object; it is dropped at this library's next set-up or teardown call.

use core::any::Any;
use core::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::fork;

/// What a graph can hold.
pub(crate) type Held = Arc<dyn Any + Send + Sync>;

static QUEUE: Mutex<Vec<Held>> = Mutex::new(Vec::new());
/// Whether the queue may hold something, so that the common case takes no lock.
static WAITING: AtomicBool = AtomicBool::new(false);

/// Turns an object into the word that the driver keeps and gives to [`release`].
pub(crate) fn into_word(object: Held) -> *mut c_void {
    Box::into_raw(Box::new(object)).cast()
}

/// Takes an object back that the driver did not accept.
///
/// # Safety
///
/// `word` came from [`into_word`], and neither this function nor [`release`] has had it.
pub(crate) unsafe fn from_word(word: *mut c_void) -> Held {
    // SAFETY: by the contract the box is live and this is its only owner.
    *unsafe { Box::from_raw(word.cast::<Held>()) }
}

/// The user object's destructor. Makes no driver call and does not unwind.
///
/// # Safety
///
/// As for [`from_word`].
pub(crate) unsafe extern "C" fn release(word: *mut c_void) {
    // SAFETY: the driver calls a user object's destructor once, with the pointer that it was made with.
    let object = unsafe { from_word(word) };
    QUEUE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(object);
    WAITING.store(true, Ordering::Release);
}

/// Drops what graphs have let go of. Not to be called by a driver callback. Does nothing in a forked child.
pub(crate) fn drain() {
    if fork::forked() {
        return;
    }
    while WAITING.swap(false, Ordering::Acquire) {
        // Taken out first: dropping an object may make driver calls, and those may queue more.
        let objects = core::mem::take(&mut *QUEUE.lock().unwrap_or_else(PoisonError::into_inner));
        drop(objects);
    }
}
