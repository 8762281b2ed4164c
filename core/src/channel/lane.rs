//! A channel's state on this rank, and the handles that keep it.

use core::mem::offset_of;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::driver::DevicePtr;
use crate::health::{FaultReport, Slip};
use crate::layout::{Header, LocalBlock};

use super::memory::Memory;
use super::shared::Shared;
use crate::error::{Error, Result};

/// One prepared channel.
#[derive(Debug)]
pub(crate) struct Lane {
    pub index: usize,
    pub name: String,
    /// Complete but for operation, element type and tag.
    pub header: Header,
    /// Whether a capture scope owns it.
    pub scoped: AtomicBool,
    /// Graphs that contain an operation of it.
    pub graphs: AtomicUsize,
    /// Whether its ranges may be another channel's by now.
    pub retired: AtomicBool,
    /// Epoch that the channel began with, when it was prepared or last moved.
    pub first_epoch: AtomicU64,
    /// Operations that this rank has launched, and those that it has recorded into graphs.
    pub launched: AtomicU64,
    pub recorded: AtomicU64,
    /// Epochs of the warning and the fault that were logged last.
    logged: [AtomicU64; 2],
}

impl Lane {
    /// A channel that nothing holds.
    pub(super) fn new(index: usize, name: String, header: Header, first_epoch: u64) -> Self {
        Self {
            index,
            name,
            header,
            scoped: AtomicBool::new(false),
            graphs: AtomicUsize::new(0),
            retired: AtomicBool::new(false),
            first_epoch: AtomicU64::new(first_epoch),
            launched: AtomicU64::new(0),
            recorded: AtomicU64::new(0),
            logged: [const { AtomicU64::new(0) }; 2],
        }
    }

    /// Counts an operation that was enqueued. Nothing is ordered by it.
    pub(crate) fn count(&self, captured: bool) {
        let counter = match captured {
            true => &self.recorded,
            false => &self.launched,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the record of this epoch is seen for the first time.
    pub(super) fn is_news(&self, slip: Slip, epoch: u64) -> bool {
        self.logged[slip as usize].swap(epoch, Ordering::Relaxed) != epoch
    }

    /// Refuses a channel that was retired.
    pub(crate) fn require_live(&self, operation: &'static str) -> Result<()> {
        if !self.retired.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(Error::Refused {
            operation,
            why: format!(
                "channel '{}' was retired; take a prepared channel from the pool",
                self.name
            ),
        })
    }
}

/// An ordered lane of a pool, found by its name and never by a stream. A clone is the same channel.
///
/// A channel's operations run one after the other, in the same order on every rank: keep them in one stream order, and
/// never let two graphs that use the channel run at the same time.
#[derive(Clone)]
pub struct Channel {
    pub(super) pool: Arc<Shared>,
    pub(super) lane: Arc<Lane>,
}

impl Channel {
    pub(crate) fn pool(&self) -> &Arc<Shared> {
        &self.pool
    }

    /// Refuses a channel that is retired or whose pool is closed. One of a pool that can only be closed may still be asked
    /// what happened.
    fn require_there(&self, operation: &'static str) -> Result<()> {
        self.lane.require_live(operation)?;
        match self.pool.is_closed()? {
            true => Err(Error::Closed { what: operation }),
            false => Ok(()),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.lane.name
    }

    /// Address of the channel's verdict on this rank, a `u64` in memory of its device that only our kernels write: zero, or
    /// what [`split_verdict`](crate::layout::split_verdict) takes apart, of the first failure since the last reset. Set before
    /// the kernel that failed ends, so what follows an operation in its stream or graph can copy it or depend on it. Valid
    /// until the channel is retired or a close of the pool begins to free, and not given afterwards.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when the channel is retired or some of the pool's memory is given back or about to be;
    /// [`Error::Closed`].
    pub fn verdict(&self) -> Result<DevicePtr> {
        self.lane.require_live("Channel::verdict")?;
        let there = |memory: &Memory| memory.local.is_mapped();
        drop(self.pool.require_memory("Channel::verdict", there)?);
        let word = self.lane.header.local + offset_of!(LocalBlock, status) as u64;
        Ok(DevicePtr::from_raw(word))
    }

    /// The record of the channel's first failed operation since the last reset, if one failed on this rank. Not waited for:
    /// the pool's health and the channel's verdict can tell of a failure some microseconds earlier.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when the channel is retired; [`Error::Closed`]. A pool that can only be closed still tells.
    pub fn fault(&self) -> Result<Option<FaultReport>> {
        self.require_there("Channel::fault")?;
        self.pool.report(&self.lane, Slip::Fault)
    }

    /// The record of the channel's latest wait past the warning limit since the last reset, if there was one.
    ///
    /// # Errors
    ///
    /// Those of [`fault`](Self::fault).
    pub fn warning(&self) -> Result<Option<FaultReport>> {
        self.require_there("Channel::warning")?;
        self.pool.report(&self.lane, Slip::Warning)
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("name", &self.lane.name)
            .finish_non_exhaustive()
    }
}

/// What a graph holds: while it lives, so do the memory and the kernels that its nodes name, and close is refused.
#[derive(Debug)]
pub(crate) struct GraphHold {
    lane: Arc<Lane>,
    _pool: Arc<Shared>,
}

impl GraphHold {
    pub(crate) fn new(pool: &Arc<Shared>, lane: &Arc<Lane>) -> Self {
        lane.graphs.fetch_add(1, Ordering::AcqRel);
        Self {
            lane: Arc::clone(lane),
            _pool: Arc::clone(pool),
        }
    }
}

impl Drop for GraphHold {
    fn drop(&mut self) {
        self.lane.graphs.fetch_sub(1, Ordering::AcqRel);
    }
}
