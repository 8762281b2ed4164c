//! What a pool, its channels and the graphs that use them have in common.

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    TryLockError,
};
use std::thread;
use std::time::{Duration, Instant};

use crate::collective::plan::{Entry, Limits};
use crate::driver::{Device, Kernel, fork};
use crate::error::{Error, Result};
use crate::group::Group;
use crate::health::{FaultEvent, FaultReport, HealthPage, Slip};

use super::contract::Contract;
use super::header::Source;
use super::kernels::Kernels;
use super::lane::Lane;
use super::memory::{Cut, Memory, PeerMemory};
use super::probe::Probe;

/// Whether operations may be enqueued.
#[derive(Debug, Clone)]
pub(crate) enum Phase {
    Open,
    /// A collective host call of this name is under way.
    Busy(&'static str),
    /// A collective host call failed half-way, with these words; the pool can only be closed.
    Broken(String),
    Closed,
}

/// What is known of the others' need of this rank's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ties {
    /// A peer may use it, or come to use it.
    Tied,
    /// All ranks were seen at rest, with no graph left, and none enqueues any more.
    AtRest,
    /// No rank has another's memory any more: what is left concerns this rank alone.
    Loose,
}

#[derive(Debug)]
pub(super) struct State {
    pub phase: Phase,
    pub ties: Ties,
    pub lanes: BTreeMap<String, Arc<Lane>>,
    /// First epoch of the next channel with the ranges of this number, where an earlier one has used them.
    pub first_epochs: BTreeMap<usize, u64>,
    /// Gone once the pool is closed.
    pub memory: Option<Memory>,
}

/// A pool's inside.
pub(crate) struct Shared {
    /// Tells the pools of a process apart, for capture scopes.
    pub number: u64,
    pub device: Device,
    pub group: Group,
    pub contract: Contract,
    pub limits: Limits,
    pub(super) cut: Cut,
    pub(super) kernels: Arc<Kernels>,
    pub(super) page: Arc<HealthPage>,
    /// Tells of faults, once a host has asked for it.
    pub(super) event: OnceLock<FaultEvent>,
    pub(super) probe: Probe,
    pub(super) peers: Vec<PeerMemory>,
    /// One collective host call at a time.
    pub(super) turn: Mutex<()>,
    /// Held for reading while an operation is enqueued.
    pub(super) state: RwLock<State>,
}

impl Shared {
    // What the locks guard is changed in one step each, so a panic elsewhere leaves nothing half-made. A forked child takes
    // none of them: it lacks the thread that would release one that was held.
    pub(super) fn read(&self) -> Result<RwLockReadGuard<'_, State>> {
        fork::refuse()?;
        Ok(self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// [`read`](Self::read) that gives up at `deadline`: a call that waits for a device that hangs may be in the way.
    pub(super) fn read_until(
        &self,
        deadline: Instant,
    ) -> Result<Option<RwLockReadGuard<'_, State>>> {
        fork::refuse()?;
        loop {
            match self.state.try_read() {
                Ok(state) => return Ok(Some(state)),
                Err(TryLockError::Poisoned(state)) => return Ok(Some(state.into_inner())),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Ok(None),
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_micros(200)),
            }
        }
    }

    pub(super) fn write(&self) -> Result<RwLockWriteGuard<'_, State>> {
        fork::refuse()?;
        Ok(self.state.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes what was learnt of the others.
    pub(super) fn tie(&self, ties: Ties) -> Result<()> {
        self.write()?.ties = ties;
        Ok(())
    }

    /// Whether what is left needs all ranks.
    pub(super) fn is_tied(&self) -> Result<bool> {
        Ok(self.read()?.ties == Ties::Tied)
    }

    /// Does something with the memory that is left, if there is any.
    pub(super) fn with_memory(&self, body: fn(&mut Memory) -> Result<()>) -> Result<()> {
        self.write()?.memory.as_mut().map_or(Ok(()), body)
    }

    /// Whether its memory is given back.
    pub(super) fn is_closed(&self) -> Result<bool> {
        Ok(matches!(self.read()?.phase, Phase::Closed))
    }

    /// A collective host call, for as long as the guard lives.
    pub(super) fn turn(&self) -> Result<MutexGuard<'_, ()>> {
        fork::refuse()?;
        Ok(self.turn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps the pool open while it is held.
    pub(crate) fn open(&self, operation: &'static str) -> Result<OpenPool<'_>> {
        let state = self.read()?;
        state.phase.require_open(operation)?;
        Ok(OpenPool { _state: state })
    }

    pub(crate) fn kernel(&self, entry: Entry) -> Option<&Kernel> {
        self.kernels.get(entry)
    }

    /// The report of one of a channel's records, if a kernel has written it.
    pub(crate) fn report(&self, lane: &Lane, slip: Slip) -> Result<Option<FaultReport>> {
        let record = self.page.record(lane.index, slip)?;
        let warning = matches!(slip, Slip::Warning);
        let clock = self.page.clock();
        let report = record.map(|record| FaultReport::new(&lane.name, &record, warning, clock));
        if let Some(report) = report.as_ref().filter(|it| lane.is_news(slip, it.epoch)) {
            log::warn!("{report}");
        }
        Ok(report)
    }

    /// Refuses once this rank's own memory may have been given back, or some of it.
    pub(super) fn require_memory(&self, operation: &'static str) -> Result<()> {
        let state = self.read()?;
        let there = |memory: &Memory| memory.local.is_mapped();
        match (&state.phase, &state.memory) {
            (Phase::Closed, _) => Err(Error::Closed { what: operation }),
            (_, Some(memory)) if there(memory) => Ok(()),
            _ => Err(Error::Refused {
                operation,
                why: "the pool's memory is given back in part; close the pool".to_owned(),
            }),
        }
    }

    /// Lets `body` forget records, and their event with them.
    pub(super) fn forget(&self, body: impl FnOnce(&HealthPage) -> Result<()>) -> Result<()> {
        match self.event.get() {
            Some(event) => event.forget(|| body(&self.page)),
            None => body(&self.page),
        }
    }

    /// Nothing runs any more that could fail.
    pub(super) fn unwatch(&self) {
        if let Some(event) = self.event.get() {
            event.end();
        }
    }

    /// What headers are made from.
    pub(super) fn source<'a>(&'a self, memory: &'a Memory) -> Source<'a> {
        Source {
            group: &self.group,
            contract: &self.contract,
            cut: &self.cut,
            memory,
            peers: &self.peers,
            page: &self.page,
        }
    }

    /// Waits until nothing of this rank runs on the device. Bounded by half of the group's timeout, so that the verdict
    /// reaches the others before they give this rank up. Refused during a capture.
    pub(super) fn drain(&self) -> Result<()> {
        self.device.refuse_during_capture("draining the device")?;
        drain(&self.device, self.group.timeout() / 2)
    }
}

/// Proof that the pool is open, for as long as it lives.
#[derive(Debug)]
pub(crate) struct OpenPool<'a> {
    _state: RwLockReadGuard<'a, State>,
}

/// Waits for the device on a thread of its own, since the driver's wait has no bound.
fn drain(device: &Device, limit: Duration) -> Result<()> {
    let refuse = |why: String| Error::Refused {
        operation: "draining the device",
        why,
    };
    let (done, wait) = mpsc::channel();
    let waiting = device.clone();
    thread::Builder::new()
        .name("slabfence-drain".to_owned())
        .spawn(move || {
            let result = waiting.synchronize();
            // First: whoever has the result may count on nothing being left of the device.
            drop(waiting);
            // The receiver is gone when the limit has passed; nobody wants the result then.
            let _ = done.send(result);
        })
        .map_err(|error| refuse(format!("no thread to wait on: {error}")))?;
    wait.recv_timeout(limit).unwrap_or_else(|error| {
        Err(refuse(match error {
            RecvTimeoutError::Timeout => format!(
                "device {} still runs after {limit:?}; an operation waits for a rank that does not come, or long work of others is ahead",
                device.ordinal()
            ),
            RecvTimeoutError::Disconnected => "the waiting thread ended early".to_owned(),
        }))
    })
}

impl Phase {
    /// Refuses what needs an open pool.
    pub(crate) fn require_open(&self, operation: &'static str) -> Result<()> {
        let why = match self {
            Self::Open => return Ok(()),
            Self::Busy(call) => format!("{call} of the pool is under way; wait for it"),
            Self::Broken(words) => format!("the pool can only be closed, since {words}"),
            Self::Closed => return Err(Error::Closed { what: operation }),
        };
        Err(Error::Refused { operation, why })
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("open"),
            Self::Busy(call) => write!(f, "{call} is under way"),
            Self::Broken(words) => write!(f, "can only be closed, since {words}"),
            Self::Closed => f.write_str("closed"),
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("number", &self.number)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The memory is the parent's, and its parts leave it alone.
        if fork::forked() {
            return;
        }
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Nobody else's concern: the drop of its parts gives it back.
        if state.ties == Ties::Loose {
            return;
        }
        if let Some(memory) = state.memory.take() {
            log::error!(
                "a pool of {} was dropped without close: its memory is kept, since peers or running kernels may still use it",
                self.group.me()
            );
            mem::forget(memory);
            mem::forget(Arc::clone(&self.page));
            mem::forget(Arc::clone(&self.kernels));
        }
    }
}
