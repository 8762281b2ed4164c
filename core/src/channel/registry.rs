//! The pools of this process, for whoever asks after all of them.

use std::sync::{Arc, Mutex, PoisonError, Weak};
#[cfg(feature = "serde")]
use std::time::Instant;

use super::shared::Shared;
#[cfg(feature = "serde")]
use super::status::{self, LIMIT, PoolStatus};
#[cfg(feature = "serde")]
use crate::driver::fork;
#[cfg(feature = "serde")]
use crate::error::Result;

static POOLS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Adds a pool. It is not kept alive.
pub(super) fn add(pool: &Arc<Shared>) {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    pools.retain(|pool| pool.strong_count() > 0);
    pools.push(Arc::downgrade(pool));
}

/// The states of all pools of this process that have not been dropped. All devices are asked at once, and waited for as long
/// as for one.
#[cfg(feature = "serde")]
pub(crate) fn statuses() -> Result<Vec<Result<PoolStatus>>> {
    fork::refuse()?;
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
