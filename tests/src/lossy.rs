//! A bootstrap that delivers a rank's part and loses the answer.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use slabfence::group::{Bootstrap, BootstrapError, Rank, ThreadBootstrap};

use crate::envelope;

/// Loses what it has delivered, once the switch is on, in messages of one step.
struct Lossy {
    inner: ThreadBootstrap,
    step: &'static str,
    on: AtomicBool,
    once: bool,
}

impl fmt::Debug for Lossy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lossy").field(&self.step).finish()
    }
}

impl Bootstrap for Lossy {
    fn all_gather(&self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, BootstrapError> {
        let parts = self.inner.all_gather(bytes, deadline)?;
        let here = envelope::is_of(bytes, self.step);
        if here && self.on.load(Ordering::Relaxed) {
            self.on.store(!self.once, Ordering::Relaxed);
            return Err(BootstrapError::Other("lost".to_owned()));
        }
        Ok(parts)
    }
}

/// The bootstrap of a rank, of which rank 1 loses what it is told in this step: the first time, or every time.
pub fn lossy(inner: ThreadBootstrap, step: &'static str, once: bool) -> Arc<dyn Bootstrap> {
    let on = inner.rank() == Rank(1);
    switched(inner, step, once, on)
}

/// The bootstrap of a rank, of which every rank loses what it is told in this step, the first time.
pub fn all_lossy(inner: ThreadBootstrap, step: &'static str) -> Arc<dyn Bootstrap> {
    switched(inner, step, true, true)
}

fn switched(
    inner: ThreadBootstrap,
    step: &'static str,
    once: bool,
    on: bool,
) -> Arc<dyn Bootstrap> {
    Arc::new(Lossy {
        inner,
        step,
        on: AtomicBool::new(on),
        once,
    })
}
