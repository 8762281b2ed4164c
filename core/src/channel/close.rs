//! Closing a pool: no rank gives memory back before every rank has come to rest and no graph is left.

use std::mem;
use std::thread;
use std::time::{Duration, Instant};

use crate::driver;
use crate::error::{Error, Result};

use super::memory::Memory;
use super::pool::Pool;
use super::shared::{Phase, Shared, Ties};

/// How long a graph that was destroyed may take to let go of its channel.
const GRAPH_PATIENCE: Duration = Duration::from_secs(1);

impl Pool {
    /// Gives the pool's memory back on all ranks. Every rank calls this, and destroys every graph that uses a channel of
    /// the pool before. Does nothing once this rank has nothing left to give back.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] with every rank's reason: a device that does not come to rest, graphs or capture scopes that still
    /// hold a channel. The pool is then as it was, and every rank may call again. So too after a failure to unmap or free
    /// ([`Error::Setup`]) or a lost word of the others ([`Error::Timeout`], [`Error::Bootstrap`]), which leave a pool that
    /// can only be closed: each call goes on with what is left. A rank that learnt that all are at rest, and meets nobody
    /// when it calls again, ends alone.
    pub fn close(&self) -> Result<()> {
        let shared = &self.shared;
        let _turn = shared.turn()?;
        let (before, ties) = {
            let mut state = shared.write()?;
            if matches!(state.phase, Phase::Closed) {
                return Ok(());
            }
            let before = mem::replace(&mut state.phase, Phase::Busy("close"));
            (before, state.ties)
        };
        let mut alone = ties == Ties::Loose;
        if !alone && let Err(stop) = part(shared) {
            let lost = !matches!(stop.error, Error::Setup { .. });
            if !lost || ties == Ties::Tied {
                shared.write()?.phase = match stop.kept {
                    true => before,
                    false => Phase::Broken(format!("its close ended half-way: {}", stop.error)),
                };
                return Err(stop.error);
            }
            log::warn!(
                "{}; all ranks were at rest before, so {} closes the pool alone",
                stop.error,
                shared.group.me()
            );
            alone = true;
        }
        let freed = shared.free();
        let told = match alone {
            true => Ok(()),
            false => shared.group.verdict("close: free", &freed),
        };
        let mut state = shared.write()?;
        if let Err(error) = freed {
            state.phase = Phase::Broken(format!("its close failed: {error}"));
            return told.and(Err(error));
        }
        state.phase = Phase::Closed;
        state.memory = None;
        state.lanes.clear();
        match told {
            // Others have something left, this rank has not.
            Err(error @ Error::Setup { .. }) => Err(error),
            Err(error) => {
                log::warn!("{error}; the pool of {} is closed", shared.group.me());
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}

/// Why ranks did not part.
struct Stop {
    error: Error,
    /// Whether the pool is as it was on all ranks.
    kept: bool,
}

/// Comes to rest, and to where no rank has memory of another.
fn part(shared: &Shared) -> Result<(), Stop> {
    // Nothing has changed, and nobody goes on without this rank.
    drained(shared).map_err(|error| Stop { error, kept: true })?;
    let graphs = shared.group.agree("close: graphs", released(shared));
    graphs.map_err(|error| Stop {
        // Else the others may have passed this step and free what operations of this rank would write to.
        kept: matches!(error, Error::Setup { .. }),
        error,
    })?;
    let unmapped = shared.tie(Ties::AtRest).and_then(|()| {
        let unmapped = shared.with_memory(Memory::let_go);
        shared.group.agree("close: unmap", unmapped)?;
        shared.tie(Ties::Loose)
    });
    unmapped.map_err(|error| Stop { error, kept: false })
}

/// Waits until nothing runs on any rank.
fn drained(shared: &Shared) -> Result<()> {
    let drained = match shared.drain() {
        // Any other error, such as that of a wait during a capture, leaves kernels running.
        Err(Error::Driver(error)) if error.breaks_context() => {
            log::warn!("closing a pool on a failed context: {error}");
            Ok(())
        }
        other => other,
    };
    shared.group.agree("close: drain", drained)
}

/// [`unused`], with patience: the driver tells of a destroyed graph from a thread of its own, some time later.
fn released(shared: &Shared) -> Result<()> {
    let until = Instant::now() + GRAPH_PATIENCE.min(shared.group.timeout() / 4);
    loop {
        driver::drop_released();
        match unused(shared) {
            Err(_) if Instant::now() < until => thread::sleep(Duration::from_millis(1)),
            result => return result,
        }
    }
}

/// Refuses while graphs or scopes of this rank hold a channel.
fn unused(shared: &Shared) -> Result<()> {
    match shared.held(|_| true)? {
        None => Ok(()),
        Some(why) => Err(Error::Refused {
            operation: "Pool::close",
            why,
        }),
    }
}
