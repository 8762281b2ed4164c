//! Objects that a graph held until it died. The driver tells so from a callback that "cannot make CUDA API calls", so
//! the callback only queues the object; it is dropped at this library's next set-up or teardown call. That may be inside a
//! collective call of a pool, whose lock the caller's destructor could want: there the caller's objects stay until its end.

use core::any::Any;
use core::cell::Cell;
use core::ffi::c_void;
use core::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::fork;

/// What a graph can hold.
pub(crate) type Held = Arc<dyn Any + Send + Sync>;

static QUEUE: Mutex<Vec<Held>> = Mutex::new(Vec::new());
/// Whether the queue may hold something, so that the common case takes no lock.
static WAITING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// How many [`Hold`]s this thread has.
    static HOLDS: Cell<u32> = const { Cell::new(0) };
}

/// Keeps what this thread's calls would drop in the queue until it ends.
#[derive(Debug)]
pub(crate) struct Hold(PhantomData<*mut ()>);

impl Hold {
    pub(crate) fn new() -> Self {
        HOLDS.set(HOLDS.get() + 1);
        Self(PhantomData)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        HOLDS.set(HOLDS.get() - 1);
        drain();
    }
}

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

/// Drops what graphs have let go of that is of this type, which is this library's own: no foreign code runs. Not to be called
/// by a driver callback. Does nothing in a forked child.
pub(crate) fn drain_of<T: Any>() {
    if fork::forked() {
        return;
    }
    let mut queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
    let (own, others) = core::mem::take(&mut *queue)
        .into_iter()
        .partition(|object| object.is::<T>());
    *queue = others;
    drop(queue);
    // Dropping an object may make driver calls, and those may queue more.
    drop::<Vec<Held>>(own);
}

/// Drops what graphs have let go of, unless this thread holds it. Not to be called by a driver callback. Does nothing in a
/// forked child.
pub(crate) fn drain() {
    if fork::forked() || HOLDS.get() > 0 {
        return;
    }
    while WAITING.swap(false, Ordering::Acquire) {
        // Taken out first: dropping an object may make driver calls, and those may queue more.
        let objects = core::mem::take(&mut *QUEUE.lock().unwrap_or_else(PoisonError::into_inner));
        drop(objects);
    }
}
