//! What a pool, its channels and the graphs that use them have in common.

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    TryLockError,
};
use std::thread;
use std::time::{Duration, Instant};

use crate::collective::plan::{Entry, Limits};
use crate::driver::deferred::Hold;
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
use super::rest::Callers;

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
    pub(super) callers: Callers,
    /// Held for moments, by nobody who calls the driver or the caller's code: whoever asks what has happened never waits.
    pub(super) state: RwLock<State>,
    /// Gone once the pool is closed. Locked for writing while it is given back, which may take the driver long.
    pub(super) memory: RwLock<Option<Memory>>,
}

/// A collective host call. What graphs have let go of meanwhile, and is not this library's, is dropped at its end: its
/// destructors may call the pool.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    // In this order.
    _guard: MutexGuard<'a, ()>,
    _hold: Hold,
}

impl Shared {
    // What the locks guard is changed in one step each, so a panic elsewhere leaves nothing half-made. A forked child takes
    // none of them: it lacks the thread that would release one that was held.
    pub(super) fn read(&self) -> Result<RwLockReadGuard<'_, State>> {
        fork::refuse()?;
        Ok(self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The prepared channels, by name.
    pub(super) fn lanes(&self) -> Result<Vec<Arc<Lane>>> {
        Ok(self.read()?.lanes.values().cloned().collect())
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

    /// Gives something of the memory back that is left, if there is any.
    pub(super) fn give_back(&self, body: fn(&mut Memory) -> Result<()>) -> Result<()> {
        fork::refuse()?;
        let mut memory = self.memory.write().unwrap_or_else(PoisonError::into_inner);
        memory.as_mut().map_or(Ok(()), body)
    }

    /// Takes the memory away, for its owner to keep or to drop.
    pub(super) fn take_memory(&self) -> Option<Memory> {
        let mut memory = self.memory.write().unwrap_or_else(PoisonError::into_inner);
        memory.take()
    }

    /// Does something with the memory, on behalf of a call of which no other gives it back.
    pub(super) fn with_memory<T>(
        &self,
        operation: &'static str,
        body: impl FnOnce(&Memory) -> Result<T>,
    ) -> Result<T> {
        fork::refuse()?;
        let memory = self.memory.read().unwrap_or_else(PoisonError::into_inner);
        body(memory.as_ref().ok_or(Error::Closed { what: operation })?)
    }

    /// The memory for a look from beside; `None` when a call gives it back until `deadline`.
    pub(super) fn look_at_memory(
        &self,
        deadline: Instant,
    ) -> Result<Option<RwLockReadGuard<'_, Option<Memory>>>> {
        fork::refuse()?;
        loop {
            // Never in a queue, where one that gives memory back would keep this one waiting.
            match self.memory.try_read() {
                Ok(memory) => return Ok(Some(memory)),
                Err(TryLockError::Poisoned(memory)) => return Ok(Some(memory.into_inner())),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Ok(None),
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_micros(200)),
            }
        }
    }

    /// Whether its memory is given back.
    pub(super) fn is_closed(&self) -> Result<bool> {
        Ok(matches!(self.read()?.phase, Phase::Closed))
    }

    /// A collective host call, for as long as the guard lives.
    pub(super) fn turn(&self) -> Result<Turn<'_>> {
        fork::refuse()?;
        Ok(Turn {
            _guard: self.turn.lock().unwrap_or_else(PoisonError::into_inner),
            _hold: Hold::new(),
        })
    }

    pub(crate) fn kernel(&self, entry: Entry) -> Option<&Kernel> {
        self.kernels.get(entry)
    }

    /// Waits for the first record of these channels where the page tells of one.
    pub(super) fn settle(&self, slip: Slip, lanes: &[Arc<Lane>], deadline: Instant) -> Result<()> {
        let channels = lanes.iter().map(|lane| lane.index);
        self.page.settle(slip, channels, deadline)
    }

    /// The report of one of a channel's records, if a kernel has written it.
    pub(crate) fn report(&self, lane: &Lane, slip: Slip) -> Result<Option<FaultReport>> {
        let record = self.page.record(lane.index, slip)?;
        let warning = matches!(slip, Slip::Warning);
        let clock = self.page.clock();
        let report =
            record.map(|record| FaultReport::new(self.number, &lane.name, &record, warning, clock));
        if let Some(report) = report.as_ref().filter(|it| lane.is_news(slip, it.epoch)) {
            log::warn!("{report}");
        }
        Ok(report)
    }

    /// The memory, where `there` holds of it. Refuses while it is given back, and once some of it may have been.
    pub(super) fn require_memory(
        &self,
        operation: &'static str,
        there: fn(&Memory) -> bool,
    ) -> Result<RwLockReadGuard<'_, Option<Memory>>> {
        if self.is_closed()? {
            return Err(Error::Closed { what: operation });
        }
        let memory = self.look_at_memory(Instant::now())?;
        let memory = memory.filter(|memory| memory.as_ref().is_some_and(there));
        memory.ok_or_else(|| given_back(operation))
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
}

pub(super) fn given_back(operation: &'static str) -> Error {
    Error::Refused {
        operation,
        why: "the pool's memory is given back in part; close the pool".to_owned(),
    }
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
        let memory = self.memory.get_mut();
        if let Some(memory) = memory.unwrap_or_else(PoisonError::into_inner).take() {
            log::error!(
                "{}: a pool was dropped without close: its memory is kept, since peers or running kernels may still use it",
                self.group.speaker()
            );
            mem::forget(memory);
            mem::forget(Arc::clone(&self.page));
            mem::forget(Arc::clone(&self.kernels));
        }
    }
}
