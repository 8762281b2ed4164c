//! Closing a pool: no rank gives memory back before every rank has come to rest and no graph is left.

use std::thread;
use std::time::{Duration, Instant};

use crate::driver;
use crate::error::{Error, Result};

use super::memory::Memory;
use super::pool::Pool;
use super::shared::{Phase, Shared};

/// How long a graph that was destroyed may take to let go of its channel.
const GRAPH_PATIENCE: Duration = Duration::from_secs(1);

impl Pool {
    /// Gives the pool's memory back on all ranks. Every rank calls this, and destroys every graph that uses a channel of
    /// the pool before. Does nothing once it has succeeded.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] with every rank's reason: a device that does not come to rest, graphs or capture scopes that still
    /// hold a channel. The pool is then as it was, and every rank may call again; so too after a failure to free
    /// or a lost last word of the others, which leave a pool that can only be closed.
    pub fn close(&self) -> Result<()> {
        let shared = &self.shared;
        let _turn = shared.turn()?;
        let before = {
            let mut state = shared.write()?;
            if matches!(state.phase, Phase::Closed) {
                return Ok(());
            }
            std::mem::replace(&mut state.phase, Phase::Busy("close"))
        };
        if let Err(error) = drained(shared) {
            shared.write()?.phase = before;
            return Err(error);
        }
        if let Err(error) = shared.group.agree("close: graphs", released(shared)) {
            shared.write()?.phase = match &error {
                Error::Setup { .. } => before,
                // The others may have passed this step and freed what operations of this rank would write to.
                _ => Phase::Broken(format!("its close ended on this rank only: {error}")),
            };
            return Err(error);
        }
        let freed = give_back(shared);
        let mut state = shared.write()?;
        if let Err(error) = freed {
            state.phase = Phase::Broken(format!("its close failed: {error}"));
            return Err(error);
        }
        state.phase = Phase::Closed;
        state.memory = None;
        state.lanes.clear();
        Ok(())
    }
}

/// Gives the memory back: no rank frees its own before every rank has unmapped its peers'.
fn give_back(shared: &Shared) -> Result<()> {
    let with = |body: fn(&mut Memory) -> Result<()>| match &mut shared.write()?.memory {
        Some(memory) => body(memory),
        None => Ok(()),
    };
    shared.group.agree("close: unmap", with(Memory::let_go))?;
    shared.group.agree("close: free", with(Memory::close))
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
