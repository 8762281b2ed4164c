//! The pools of this process, for whoever asks after all of them.

#[cfg(feature = "serde")]
use std::sync::TryLockError;
use std::sync::{Arc, Mutex, PoisonError, Weak};
#[cfg(feature = "serde")]
use std::{
    sync::Once,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use super::shared::Shared;
#[cfg(feature = "serde")]
use super::status::{self, LIMIT, PoolStatus};
#[cfg(feature = "serde")]
use crate::driver::{deferred::Hold, exit, fork};
#[cfg(feature = "serde")]
use crate::error::{Error, Result};

static POOLS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Whether the process exits, and the driver may take away what a look at a pool reads.
#[cfg(feature = "serde")]
static ENDED: AtomicBool = AtomicBool::new(false);

/// Held while all pools are looked at.
#[cfg(feature = "serde")]
static LOOKING: Mutex<()> = Mutex::new(());

/// How long an exit waits for a look: that may stand in a driver call, or in a logger that waits for the thread that exits.
#[cfg(feature = "serde")]
const EXIT: Duration = LIMIT.saturating_mul(4);

#[cfg(feature = "serde")]
extern "C" fn end() {
    ENDED.store(true, Ordering::SeqCst);
    // A forked child lacks the thread that may hold the lock.
    if fork::forked() {
        return;
    }
    let begin = Instant::now();
    while let Err(TryLockError::WouldBlock) = LOOKING.try_lock()
        && begin.elapsed() < EXIT
    {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Adds a pool. It is not kept alive.
pub(super) fn add(pool: &Arc<Shared>) {
    // There is a pool, so the driver has its own handler, and this one is called before it.
    #[cfg(feature = "serde")]
    {
        static ENDS: Once = Once::new();
        ENDS.call_once(|| exit::before(end));
    }
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    pools.retain(|pool| pool.strong_count() > 0);
    pools.push(Arc::downgrade(pool));
}

/// The states of all pools of this process that have not been dropped. All devices are asked at once, and waited for as long
/// as for one.
#[cfg(feature = "serde")]
pub(crate) fn statuses() -> Result<Vec<Result<PoolStatus>>> {
    fork::refuse()?;
    // No foreign destructor runs under the lock, which is held longer than the pools, of which the last use may be this one.
    let _hold = Hold::new();
    let _looking = LOOKING.lock().unwrap_or_else(PoisonError::into_inner);
    if ENDED.load(Ordering::SeqCst) {
        return Err(Error::Refused {
            operation: "Pool::status",
            why: "the process is exiting".to_owned(),
        });
    }
    let pools: Vec<Arc<Shared>> = {
        let pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        pools.iter().filter_map(Weak::upgrade).collect()
    };
    let deadline = Instant::now() + LIMIT;
    let looks: Vec<_> = pools
        .iter()
        .map(|pool| status::look(pool, deadline))
        .collect();
    let finished = looks.into_iter().map(|look| look?.finish(deadline));
    Ok(finished.collect())
}
