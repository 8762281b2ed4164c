//! Reset: brings every channel of a pool back to life on all ranks, with captured graphs still valid.

use std::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::health::HealthPage;

use super::pool::Pool;
use super::rewind::{self, EPOCH_LIMIT, Steps};
use super::shared::{Phase, Shared};

const OPERATION: &str = "Pool::reset";

impl Pool {
    /// Revives the pool after a failure: clears poison, verdicts and records, and moves every channel to an epoch that no
    /// rank has seen. Every rank calls this; no rank enqueues, replays or captures meanwhile. Captured graphs stay valid.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] of the step `reset: begin` with the ranks that capture or have not left a capture scope: nothing was
    /// changed anywhere, and the call can be made again. [`Error::Setup`] of a later step with the ranks that did not come to
    /// rest, [`Error::Timeout`] with those that did not come: either way the pool can then only be closed.
    pub fn reset(&self) -> Result<()> {
        self.reset_above(0)
    }

    /// [`reset`](Self::reset) to epochs of at least `floor`, of which the largest of any rank counts. For tests near the
    /// ends of counters.
    ///
    /// # Errors
    ///
    /// Those of `reset`; a `floor` of 2^56 or more on any rank fails the step `reset: begin`.
    pub fn reset_above(&self, floor: u64) -> Result<()> {
        let shared = &self.shared;
        let _turn = shared.turn()?;
        {
            let mut state = shared.write()?;
            state.phase.require_open(OPERATION)?;
            state.phase = Phase::Busy("reset");
        }
        let begun = shared.group.agree("reset: begin", ready(shared, floor));
        if let Err(Error::Setup { .. }) = &begun {
            // All ranks know, and none has touched anything.
            shared.write()?.phase = Phase::Open;
            return begun;
        }
        let done = begun.and_then(|()| reset_all(shared, floor));
        shared.write()?.phase = match &done {
            Ok(()) => Phase::Open,
            Err(error) => Phase::Broken(format!("its reset failed: {error}")),
        };
        done
    }
}

/// What this rank can tell before anything is changed.
fn ready(shared: &Shared, floor: u64) -> Result<()> {
    if floor >= EPOCH_LIMIT {
        return Err(Error::Argument {
            operation: "Pool::reset_above",
            what: format!("epoch {floor:#x}; epochs end below 2^56"),
        });
    }
    let state = shared.read()?;
    let mut lanes = state.lanes.values();
    if let Some(lane) = lanes.find(|lane| lane.scoped.load(Ordering::Acquire)) {
        return Err(Error::Refused {
            operation: OPERATION,
            why: format!(
                "a capture scope owns channel '{}'; leave the scope first",
                lane.name
            ),
        });
    }
    shared.device.refuse_during_capture(OPERATION)
}

fn reset_all(shared: &Shared, floor: u64) -> Result<()> {
    shared.group.agree("reset: drain", shared.drain())?;
    // By name, as on all ranks.
    let lanes = shared
        .read()?
        .lanes
        .values()
        .map(|lane| lane.index)
        .collect::<Vec<_>>();
    let steps = Steps {
        operation: OPERATION,
        epochs: "reset: epochs",
        rewrite: "reset: rewrite",
    };
    rewind::rewind(shared, steps, &lanes, floor, || {
        shared.forget(HealthPage::clear)
    })?;
    Ok(())
}
