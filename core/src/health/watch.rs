//! Events for hosts that only replay. A kernel cannot write to an eventfd, so one thread of the process looks at the pages
//! that somebody wants to hear of. It looks under a lock, and whoever gives a page up takes it off the list under the same:
//! the thread never touches, or frees, memory that its owner has left.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use crate::driver::{exit, fork};
use crate::error::{Error, Result};

use super::{Health, HealthPage};

/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(1);
const OPERATION: &str = "Pool::fault_event";

static LIST: Mutex<List> = Mutex::new(List {
    watched: Vec::new(),
    running: false,
    ended: false,
});
/// Something was taken off the list.
static CHANGED: Condvar = Condvar::new();

#[derive(Debug)]
struct List {
    watched: Vec<Watched>,
    /// Whether the thread is there.
    running: bool,
    /// The process exits, and the driver may take host memory away.
    ended: bool,
}

#[derive(Debug)]
struct Watched {
    page: Arc<HealthPage>,
    event: Arc<OwnedFd>,
    /// By channel: epoch of the fault that was told last. Epochs only grow, so no later fault has the same.
    told: Vec<u64>,
}

/// An event that counts the faults of one page, watched until it is dropped or ended.
#[derive(Debug)]
pub(crate) struct FaultEvent {
    page: Arc<HealthPage>,
    event: Arc<OwnedFd>,
}

// A panic elsewhere leaves the list as it is. A forked child does not take the lock: it lacks the thread that may hold it.
fn list() -> Result<MutexGuard<'static, List>> {
    fork::refuse()?;
    Ok(LIST.lock().unwrap_or_else(PoisonError::into_inner))
}

fn refuse(why: String) -> Error {
    Error::Refused {
        operation: OPERATION,
        why,
    }
}

impl FaultEvent {
    /// Begins to watch `page`.
    pub(crate) fn new(page: &Arc<HealthPage>) -> Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| refuse(format!("no eventfd: {error}")))?;
        let this = Self {
            page: Arc::clone(page),
            event: Arc::new(event),
        };
        let mut list = list()?;
        if list.ended {
            return Err(refuse("the process is exiting".to_owned()));
        }
        if !list.running {
            // Registered after the driver's own handler, and therefore called before it.
            static ENDS: Once = Once::new();
            ENDS.call_once(|| exit::before(end_all));
            thread::Builder::new()
                .name("slabfence-watch".to_owned())
                .spawn(watch)
                .map_err(|error| refuse(format!("no thread that watches: {error}")))?;
            list.running = true;
        }
        list.watched.push(Watched {
            page: Arc::clone(page),
            event: Arc::clone(&this.event),
            told: vec![0; page.channels()],
        });
        drop(list);
        Ok(this)
    }

    /// Ends the watch; the event stays as it is.
    pub(crate) fn end(&self) {
        // The child's copy of the list is nobody's.
        if let Ok(mut list) = list() {
            list.watched
                .retain(|watched| !Arc::ptr_eq(&watched.event, &self.event));
            CHANGED.notify_one();
        }
    }

    /// Lets `body` forget records, and takes the event back if no fault is left.
    pub(crate) fn forget(&self, body: impl FnOnce() -> Result<()>) -> Result<()> {
        // Or else a fault that was seen before could be told after.
        let _list = list()?;
        body()?;
        if self.page.health()? != Health::Failed {
            // Fails where there is nothing to take back.
            let _ = rustix::io::read(&self.event, &mut [0; 8]);
        }
        Ok(())
    }
}

impl AsFd for FaultEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Drop for FaultEvent {
    fn drop(&mut self) {
        self.end();
    }
}

impl Watched {
    fn look(&mut self) {
        if !matches!(self.page.health(), Ok(Health::Failed)) {
            return;
        }
        let mut new = 0u64;
        for (channel, told) in self.told.iter_mut().enumerate() {
            let fault = self.page.fault_epoch(channel).unwrap_or(0);
            if fault != 0 && fault != *told {
                *told = fault;
                new += 1;
            }
        }
        if new > 0
            && let Err(error) = rustix::io::write(&self.event, &new.to_ne_bytes())
        {
            log::warn!("{new} fault(s) could not be told by their event: {error}");
        }
    }
}

fn watch() {
    let Ok(mut list) = list() else { return };
    while !list.watched.is_empty() && !list.ended {
        list.watched.iter_mut().for_each(Watched::look);
        let waited = CHANGED.wait_timeout(list, INTERVAL);
        list = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    list.running = false;
}

extern "C" fn end_all() {
    if let Ok(mut list) = list() {
        list.ended = true;
    }
}
