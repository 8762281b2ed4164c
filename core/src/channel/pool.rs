//! A pool as its host sees it.

use std::sync::Arc;
use std::time::Instant;

use crate::driver::Device;
use crate::error::{Error, Result};
use crate::group::Group;
use crate::health::{FaultReport, Health, MOMENT, Slip};

use super::agreement::Failures;
use super::contract::Contract;
use super::lane::{Channel, Lane};
use super::shared::Shared;

/// The channels of one contract on one group: memory, kernels, health records. Close it on all ranks; a pool that is
/// dropped without keeps its memory for the life of the process, since a peer may still write to it.
#[derive(Debug)]
pub struct Pool {
    pub(super) shared: Arc<Shared>,
}

impl Pool {
    /// The ranks.
    pub fn group(&self) -> &Group {
        &self.shared.group
    }

    /// The agreed contract.
    pub fn contract(&self) -> &Contract {
        &self.shared.contract
    }

    /// The device of this rank.
    pub fn device(&self) -> &Device {
        &self.shared.device
    }

    /// A prepared channel.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when there is none of this name, a collective call of the pool is under way, or the pool can only be
    /// closed; [`Error::Closed`].
    pub fn channel(&self, name: &str) -> Result<Channel> {
        Ok(Channel {
            lane: self.with_lane(name, "Pool::channel", Arc::clone)?,
            pool: Arc::clone(&self.shared),
        })
    }

    /// Does something with a prepared channel of the open pool, before a call that changes either can begin.
    pub(super) fn with_lane<T>(
        &self,
        name: &str,
        operation: &'static str,
        body: impl FnOnce(&Arc<Lane>) -> T,
    ) -> Result<T> {
        let state = self.shared.read()?;
        state.phase.require_open(operation)?;
        state.lanes.get(name).map(body).ok_or_else(|| {
            let known: Vec<&str> = state.lanes.keys().map(String::as_str).collect();
            Error::Refused {
                operation,
                why: format!(
                    "channel '{name}' is not prepared; prepare it on all ranks first (prepared: {known:?})"
                ),
            }
        })
    }

    /// What kernels have reported on this rank, by one load of host memory: works while the device hangs. The record of a
    /// failure or a long wait can come some microseconds after this tells of it, since another part of the operation may
    /// write it; [`faults`](Self::faults) and [`warnings`](Self::warnings) wait for the first.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`] alone: it tells of a pool that can only be closed, or is closed, as of any other.
    pub fn health(&self) -> Result<Health> {
        self.shared.page.health()
    }

    /// The first fault of every channel that has failed on this rank since the last reset, by loads of host memory only. Where
    /// [`health`](Self::health) tells of a failure and no channel has a record yet, it is waited for, a tenth of a second at the
    /// longest: there is none in the end where a device hangs at that very moment.
    ///
    /// # Errors
    ///
    /// That of `health`.
    pub fn faults(&self) -> Result<Vec<FaultReport>> {
        self.reports(Slip::Fault)
    }

    /// The latest warning of every channel on which a wait took long since the last reset; the first is waited for as in
    /// [`faults`](Self::faults).
    ///
    /// # Errors
    ///
    /// That of `health`.
    pub fn warnings(&self) -> Result<Vec<FaultReport>> {
        self.reports(Slip::Warning)
    }

    fn reports(&self, slip: Slip) -> Result<Vec<FaultReport>> {
        // A report may be logged, by code of the caller's, which holds nothing up.
        let lanes = self.shared.lanes()?;
        self.shared.settle(slip, &lanes, Instant::now() + MOMENT)?;
        let reports = lanes.iter().map(|lane| self.shared.report(lane, slip));
        reports.filter_map(Result::transpose).collect()
    }
}

/// Turns a finding that all ranks share into the error that all ranks return.
pub(super) fn settle<T>(phase: &'static str, finding: Result<T, Failures>) -> Result<T> {
    finding.map_err(|failures| Error::Setup { phase, failures })
}
