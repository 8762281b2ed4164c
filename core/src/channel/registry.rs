//! The pools of this process, for whoever asks after all of them.

use std::sync::{Arc, Mutex, PoisonError, Weak};
#[cfg(feature = "serde")]
use std::{sync::Once, time::Instant};

use super::shared::Shared;
#[cfg(feature = "serde")]
use super::status::{self, LIMIT, PoolStatus};
#[cfg(feature = "serde")]
use crate::driver::{exit, fork};
#[cfg(feature = "serde")]
use crate::error::{Error, Result};

static POOLS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Whether the process exits, and the driver may take away what a look at a pool reads. Held while all pools are looked at.
#[cfg(feature = "serde")]
static ENDED: Mutex<bool> = Mutex::new(false);

#[cfg(feature = "serde")]
extern "C" fn end() {
    // A forked child lacks the thread that may hold the lock.
    if !fork::forked() {
        *ENDED.lock().unwrap_or_else(PoisonError::into_inner) = true;
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
    // Longer than the pools, of which the last use may be this one.
    let ended = ENDED.lock().unwrap_or_else(PoisonError::into_inner);
    if *ended {
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
