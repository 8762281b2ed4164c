//! Checkpoints: channels that were prepared for a trial, such as a profiling capture that is thrown away, taken back.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::error::Result;

use super::lane::Lane;
use super::pool::Pool;
use super::retire::{Call, take_away};
use super::rewind::Steps;
use super::shared::State;

const ROLLBACK: Call = Call {
    name: "rollback",
    drain: "rollback: drain",
    names: "rollback: names",
    held: "rollback: held",
    steps: Steps {
        operation: "Pool::rollback",
        epochs: "rollback: epochs",
        rewrite: "rollback: rewrite",
    },
};

/// Which channels a pool had when it was asked: what [`Pool::rollback`] leaves alone. Holds no memory, and can be used more
/// than once.
#[derive(Clone)]
pub struct Checkpoint {
    pool: u64,
    /// Themselves, not their names: one that was retired and prepared again has come later.
    lanes: Vec<Arc<Lane>>,
}

impl Pool {
    /// Notes which channels are prepared now. Local: not a word to the other ranks.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`](crate::Error::Refused) while a collective call of the pool is under way, and when it can only be
    /// closed; [`Error::Closed`](crate::Error::Closed).
    pub fn checkpoint(&self) -> Result<Checkpoint> {
        let state = self.shared.read()?;
        state.phase.require_open("Pool::checkpoint")?;
        Ok(Checkpoint {
            pool: self.shared.number,
            lanes: state.lanes.values().cloned().collect(),
        })
    }

    /// Takes every channel away on all ranks that was prepared since `checkpoint`, as [`retire`](Self::retire) does: for
    /// warm-ups and captures that are thrown away. Their names are free again, and their ranges go to later channels. Every
    /// rank calls this, with a checkpoint of the same point in its sequence of collective calls, and destroys every graph
    /// that uses one of those channels before; no rank enqueues or captures meanwhile.
    ///
    /// Channels of the checkpoint stay as they are: what their operations did is not undone, their graphs stay valid, and
    /// those that were retired since do not come back.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`](crate::Error::Busy) with the ranks on which graphs or capture scopes hold one of the channels,
    /// [`Error::Setup`](crate::Error::Setup) of a step up to `rollback: names`, among others when a rank's checkpoint is of
    /// another pool or another point: nothing was changed anywhere, and every rank may call again. After another error the
    /// pool can only be closed.
    pub fn rollback(&self, checkpoint: &Checkpoint) -> Result<()> {
        let shared = &self.shared;
        take_away(shared, ROLLBACK, |state| {
            // Here, so that all ranks learn of it.
            match checkpoint.pool == shared.number {
                true => Ok(checkpoint.later(state)),
                false => Err("the checkpoint is of another pool".to_owned()),
            }
        })
    }
}

impl Checkpoint {
    /// Names of the channels that it does not have.
    fn later(&self, state: &State) -> BTreeSet<String> {
        let here = |lane: &Arc<Lane>| self.lanes.iter().any(|old| Arc::ptr_eq(old, lane));
        let later = state.lanes.values().filter(|lane| !here(lane));
        later.map(|lane| lane.name.clone()).collect()
    }
}

impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.lanes.iter().map(|lane| lane.name.as_str()).collect();
        f.debug_struct("Checkpoint")
            .field("channels", &names)
            .finish_non_exhaustive()
    }
}
