//! What holds channels on this rank: graphs and capture scopes. While any does, nothing is taken away under it.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use crate::driver::deferred;
use crate::error::{Error, Result};
use crate::group::Ended;

use super::lane::{GraphHold, Lane};
use super::shared::Shared;

/// How long a graph that was destroyed may take to let go of its channel.
const GRAPH_PATIENCE: Duration = Duration::from_secs(1);

impl Shared {
    /// Refuses while a graph or a scope of this rank holds one of these channels. With patience: the driver tells of a
    /// destroyed graph from a thread of its own, some time later.
    pub(super) fn released(
        &self,
        operation: &'static str,
        of: impl Fn(&Lane) -> bool,
    ) -> Result<()> {
        let until = Instant::now() + GRAPH_PATIENCE.min(self.group.timeout() / 4);
        loop {
            deferred::drain_of::<GraphHold>();
            match self.held(&of)? {
                None => return Ok(()),
                Some(_) if Instant::now() < until => thread::sleep(Duration::from_millis(1)),
                Some(why) => return Err(Error::Refused { operation, why }),
            }
        }
    }

    /// [`released`](Self::released) on all ranks: closes the step `step` of `operation`.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] for the verdict.
    pub(super) fn released_by_all(
        &self,
        step: &'static str,
        operation: &'static str,
        of: impl Fn(&Lane) -> bool,
    ) -> Result<(), Ended> {
        let released = self.group.conclude(step, &self.released(operation, of));
        released.map_err(|ended| match ended {
            Ended::Failed(Error::Setup { failures, .. }) => Ended::Failed(Error::Busy {
                operation,
                holders: failures,
            }),
            // Ranks in other steps hold nothing.
            ended => ended,
        })
    }

    /// Which graphs and scopes of this rank hold one of these channels, and what to do, in words.
    fn held(&self, of: impl Fn(&Lane) -> bool) -> Result<Option<String>> {
        let state = self.read()?;
        let lanes = state.lanes.values().filter(|lane| of(lane));
        let held: Vec<String> = lanes
            .filter_map(|lane| {
                let graphs = lane.graphs.load(Ordering::Acquire);
                let name = &lane.name;
                if graphs > 0 {
                    Some(format!("{graphs} graph(s) hold channel '{name}'"))
                } else if lane.scoped.load(Ordering::Acquire) {
                    Some(format!("a capture scope owns channel '{name}'"))
                } else {
                    None
                }
            })
            .collect();
        Ok((!held.is_empty()).then(|| {
            let words = format!(
                "{}; destroy the graphs, their executables too, and leave the scopes",
                held.join(", ")
            );
            match self.device.strays() {
                0 => words,
                strays => format!(
                    "{words}; the driver has failed to end {strays} graph(s) of device {}, and has said so: if all of yours are destroyed, one of those holds the channel for good, and Pool::abandon ends the pool and keeps its memory",
                    self.device.ordinal()
                ),
            }
        }))
    }

    /// Whether what holds channels of this rank may do so for good: no scope does, and there are graphs that nobody can
    /// destroy any more.
    pub(super) fn may_be_held_for_good(&self) -> Result<bool> {
        let state = self.read()?;
        let mut lanes = state.lanes.values();
        let scoped = lanes.any(|lane| lane.scoped.load(Ordering::Acquire));
        Ok(!scoped && self.device.strays() > 0)
    }
}
