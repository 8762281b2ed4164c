//! Closing a pool: no rank gives memory back before every rank has come to rest and no graph is left.

use std::mem;

use crate::error::{Error, Result};
use crate::group::{Ended, Missed};

use super::memory::Memory;
use super::pool::Pool;
use super::shared::{Phase, Shared, Ties};

/// The first step.
const DRAIN: &str = "close: drain";

impl Pool {
    /// Gives the pool's memory back on all ranks. Every rank calls this, and destroys every graph that uses a channel of
    /// the pool before. Does nothing once this rank has nothing left to give back.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] with the ranks whose devices do not come to rest, [`Error::Busy`] with those on which graphs or capture
    /// scopes still hold a channel. The pool is then as it was, and every rank may call again. So too after a failure to unmap
    /// or free ([`Error::Setup`]) or a lost word of the others ([`Error::Timeout`], [`Error::Bootstrap`]), which leave a pool
    /// that can only be closed: each call goes on with what is left. A rank that learnt that all are at rest, and meets nobody
    /// when it calls again, ends alone, if its device is at rest then too.
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
        let mut step = (ties != Ties::Loose).then_some("close: free");
        if step.is_some()
            && let Err(ended) = part(shared)
        {
            let Parted { stop, rests, ended } = ended;
            let missed = matches!(ended, Ended::Missed(_));
            let error = Error::from(ended);
            if !missed || !rests || ties == Ties::Tied {
                shared.write()?.phase = match stop {
                    Stop::AsBefore => before,
                    Stop::HalfWay => Phase::Broken(format!("its close ended half-way: {error}")),
                };
                return Err(error);
            }
            log::warn!(
                "{}: {error}; all ranks were at rest before, so this one closes the pool alone",
                shared.group.speaker()
            );
            step = None;
        }
        free_all(shared, step)
    }
}

/// Where ranks stand that did not part.
enum Stop {
    /// The pool is as it was on all ranks.
    AsBefore,
    HalfWay,
}

/// How a parting ended that did not succeed.
struct Parted {
    stop: Stop,
    /// Whether this rank's device is at rest.
    rests: bool,
    ended: Ended,
}

/// Comes to rest, and to where no rank has memory of another.
fn part(shared: &Shared) -> Result<(), Parted> {
    let group = &shared.group;
    let drained = drained(shared, DRAIN);
    let concluded = group.conclude(DRAIN, &drained);
    concluded.map_err(|ended| Parted {
        // Nothing has changed, and nobody goes on without this rank.
        stop: Stop::AsBefore,
        rests: drained.is_ok(),
        ended,
    })?;
    let released = shared.released_by_all("close: graphs", "Pool::close", |_| true);
    released.map_err(|ended| Parted {
        stop: match ended {
            // The others may have passed this step and free what operations of this rank would write to.
            Ended::Missed(Missed::Lost(_)) => Stop::HalfWay,
            _ => Stop::AsBefore,
        },
        rests: true,
        ended,
    })?;
    let unmapped = match shared.tie(Ties::AtRest) {
        Ok(()) => unmap_all(shared, "close: unmap"),
        Err(forked) => Err(Ended::Failed(forked)),
    };
    unmapped.map_err(|ended| Parted {
        stop: Stop::HalfWay,
        rests: true,
        ended,
    })
}

/// Unmaps peers' memory on all ranks.
pub(super) fn unmap_all(shared: &Shared, step: &'static str) -> Result<(), Ended> {
    let unmapped = shared.give_back(Memory::let_go);
    shared.group.conclude(step, &unmapped)?;
    shared.tie(Ties::Loose).map_err(Ended::Failed)
}

/// Frees what is left on this rank, which nobody else needs, and tells the others where they take part in this `step`.
/// Then the pool is closed, unless something stayed.
pub(super) fn free_all(shared: &Shared, step: Option<&'static str>) -> Result<()> {
    shared.tie(Ties::Loose)?;
    let freed = shared.give_back(Memory::leave);
    let told = step.map_or(Ok(()), |step| shared.group.conclude(step, &freed));
    let mut state = shared.write()?;
    if let Err(error) = freed {
        state.phase = Phase::Broken(format!("its close failed: {error}"));
        return Err(told.err().map_or(error, Error::from));
    }
    shared.unwatch();
    state.phase = Phase::Closed;
    state.lanes.clear();
    drop(state);
    drop(shared.take_memory());
    match told {
        Ok(()) => Ok(()),
        // Others have something left, this rank has not.
        Err(Ended::Failed(error)) => Err(error),
        Err(Ended::Missed(missed)) => {
            let (error, speaker) = (Error::from(missed), shared.group.speaker());
            log::warn!("{speaker}: {error}; its pool is closed");
            Ok(())
        }
    }
}

/// Waits until nothing of this rank runs, in this `step`.
pub(super) fn drained(shared: &Shared, step: &'static str) -> Result<()> {
    match shared.drain() {
        // Any other error, such as that of a wait during a capture, leaves kernels running.
        Err(Error::Driver(error)) if error.breaks_context() => {
            let speaker = shared.group.speaker();
            log::warn!("{speaker}: {step}: leaving a pool on a failed context: {error}");
            Ok(())
        }
        other => other,
    }
}
