//! Coming to rest: nobody is inside the pool any more, and nothing of this rank runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::driver::Device;
use crate::error::{Error, Result};

use super::shared::{Shared, State};

/// Between two looks at who is inside.
const PAUSE: Duration = Duration::from_micros(200);

/// Counts who is inside a pool: operations that are being enqueued, and looks at its memory. No lock, since the driver may
/// keep one of them: a launch waits while the device's queue is full, and that for as long as a peer does not come.
#[derive(Debug, Default)]
pub(super) struct Callers(AtomicUsize);

/// Somebody inside. The pool's memory stays, and its channels stay what they are, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Inside<'a>(&'a Callers);

impl Callers {
    /// Lets somebody in. The state is held, with a phase that allows it: a call that changes the phase then either comes
    /// before, or sees the count.
    pub(super) fn enter(&self, _: &State) -> Inside<'_> {
        self.0.fetch_add(1, Ordering::AcqRel);
        Inside(self)
    }

    /// Waits until nobody is inside. The phase lets nobody in meanwhile who would matter.
    fn wait(&self, deadline: Instant) -> bool {
        while self.0.load(Ordering::Acquire) > 0 {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(PAUSE);
        }
        true
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Shared {
    /// Enters the pool, which has to be open.
    pub(crate) fn open(&self, operation: &'static str) -> Result<Inside<'_>> {
        let state = self.read()?;
        state.phase.require_open(operation)?;
        Ok(self.callers.enter(&state))
    }

    /// Waits until nobody is inside and nothing of this rank runs on the device. Bounded by half of the group's timeout, so
    /// that the verdict reaches the others before they give this rank up. Refused during a capture.
    pub(super) fn drain(&self) -> Result<()> {
        let limit = self.group.timeout() / 2;
        let deadline = Instant::now() + limit;
        if !self.callers.wait(deadline) {
            return refuse(format!(
                "an operation is still being enqueued after {limit:?}: the driver takes no more of them while the device's queue is full, as when an operation waits for a rank that does not come"
            ));
        }
        self.device.refuse_during_capture(OPERATION)?;
        drain(&self.device, deadline, limit)
    }
}

const OPERATION: &str = "draining the device";

fn refuse<T>(why: String) -> Result<T> {
    Err(Error::Refused {
        operation: OPERATION,
        why,
    })
}

/// Waits for the device until `deadline`, which is at the end of `limit`, on a thread of its own, since the driver's wait has
/// no bound.
fn drain(device: &Device, deadline: Instant, limit: Duration) -> Result<()> {
    let (done, wait) = mpsc::channel();
    let waiting = device.clone();
    let spawned = thread::Builder::new()
        .name("slabfence-drain".to_owned())
        .spawn(move || {
            let result = waiting.synchronize_only();
            // First: whoever has the result may count on nothing being left of the device.
            drop(waiting);
            // The receiver is gone when the limit has passed; nobody wants the result then.
            let _ = done.send(result);
        });
    if let Err(error) = spawned {
        return refuse(format!("no thread to wait on: {error}"));
    }
    let left = deadline.saturating_duration_since(Instant::now());
    wait.recv_timeout(left).unwrap_or_else(|error| {
        refuse(match error {
            RecvTimeoutError::Timeout => format!(
                "device {} still runs after {limit:?}; an operation waits for a rank that does not come, or long work of others is ahead",
                device.ordinal()
            ),
            RecvTimeoutError::Disconnected => "the waiting thread ended early".to_owned(),
        })
    })
}
