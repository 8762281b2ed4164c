//! The threads of a machine, and its lock.
//!
//! One thread drives the engine, one calls the host functions of the caller: a host function that blocks must not stop
//! the device work that it may be waiting for. Callers of the driver go before the runner: it lets go of the lock after
//! every quantum, and waits while one of them wants it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::Progress;
use crate::held::Phase;
use crate::machine::State;
use crate::operations::OpId;
use crate::slots;

/// Warp-instructions between two moments at which callers may have the lock.
const QUANTUM: u64 = 4096;
/// How long the runner waits for a caller who wants the lock before it takes it again.
const COURTESY: Duration = Duration::from_micros(200);
/// Reports of mere polling after which the runner sleeps instead of only yielding.
const PATIENT_ROUNDS: u32 = 4;
/// How long it sleeps then, unless there is new work. The polled word may be another process's to write.
const NAP: Duration = Duration::from_micros(50);
/// What has been polled for long is seen late by at most this part of that time, and by no more than the other.
const LATE: (u32, Duration) = (8, Duration::from_millis(1));

/// A machine's state with its lock and its condition variables.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// There is device work.
    work: Condvar,
    /// There are host functions to call.
    due: Condvar,
    /// Operations completed.
    done: Condvar,
    /// Callers that wait for operations.
    sleeping: AtomicU32,
    /// Callers that want the lock.
    wanting: AtomicU32,
    /// How often one of them got it.
    served: AtomicU64,
    born: Instant,
    /// Different for every machine of the process.
    pub(crate) id: u64,
}

impl Shared {
    /// Wraps a machine's state.
    pub(crate) fn new(state: State) -> Shared {
        static IDS: AtomicU64 = AtomicU64::new(1);
        Shared {
            state: Mutex::new(state),
            work: Condvar::new(),
            due: Condvar::new(),
            done: Condvar::new(),
            sleeping: AtomicU32::new(0),
            wanting: AtomicU32::new(0),
            served: AtomicU64::new(0),
            born: Instant::now(),
            id: IDS.fetch_add(1, Ordering::Relaxed),
        }
    }

    fn take(&self) -> MutexGuard<'_, State> {
        // A panic under the lock is a bug of ours that its call has already reported; the others go on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, for a caller of the driver.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.wanting.fetch_add(1, Ordering::Relaxed);
        let guard = self.take();
        self.wanting.fetch_sub(1, Ordering::Relaxed);
        self.served.fetch_add(1, Ordering::Relaxed);
        guard
    }

    /// Wakes whoever has something to do: the machine's threads, and callers whose operations have completed.
    pub(crate) fn kick(&self, state: &mut State) -> bool {
        if !state.engine.calls.is_empty() {
            self.due.notify_one();
        }
        // While the machine is held its thread has nothing to do, and waking it would only take the lock from the callers.
        if state.phase == Phase::Free && state.engine.has_ready() {
            self.work.notify_one();
        }
        let news = state.engine.take_news();
        if news {
            self.done.notify_all();
        }
        news
    }

    /// Waits until all these operations are done.
    pub(crate) fn wait<'a>(
        &self,
        mut guard: MutexGuard<'a, State>,
        ops: &[OpId],
    ) -> MutexGuard<'a, State> {
        self.kick(&mut guard);
        self.sleeping.fetch_add(1, Ordering::Relaxed);
        while !guard.stop && ops.iter().any(|&op| guard.engine.pending(op)) {
            guard = self
                .done
                .wait(guard)
                .unwrap_or_else(PoisonError::into_inner);
            self.served.fetch_add(1, Ordering::Relaxed);
        }
        self.sleeping.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// The state once all device work is done, or `patience` is spent.
    pub(crate) fn settle(&self, patience: Duration) -> MutexGuard<'_, State> {
        let until = Instant::now() + patience;
        let mut guard = self.lock();
        self.sleeping.fetch_add(1, Ordering::Relaxed);
        while guard.phase == Phase::Free && !guard.engine.ops.is_empty() {
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                break;
            };
            self.kick(&mut guard);
            let woken = self.done.wait_timeout(guard, left);
            guard = woken.unwrap_or_else(PoisonError::into_inner).0;
            self.served.fetch_add(1, Ordering::Relaxed);
        }
        self.sleeping.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// Ends the machine's threads.
    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.work.notify_all();
        self.due.notify_all();
        self.done.notify_all();
    }

    fn now(&self) -> u64 {
        self.born.elapsed().as_nanos() as u64
    }

    /// Lets callers have the lock: those that want it, and those that completed operations have just woken.
    fn give_way(&self, completed: bool) {
        let woken = completed && self.sleeping.load(Ordering::Relaxed) > 0;
        let served = self.served.load(Ordering::Relaxed);
        let until = Instant::now() + COURTESY;
        while woken || self.wanting.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
            if self.served.load(Ordering::Relaxed) != served || Instant::now() > until {
                return;
            }
        }
    }
}

/// Body of the thread that drives the engine.
pub(crate) fn run(shared: &Shared) {
    let (mut polls, mut since) = (0, shared.born);
    let mut state = shared.take();
    while !state.stop {
        if state.phase != Phase::Free {
            polls = 0;
            state = shared
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        let progress = state.step(shared.now(), QUANTUM);
        let completed = shared.kick(&mut state);
        // Also behind the last operation: whoever waits for it gets the lock at once.
        if state.engine.rests() {
            polls = 0;
            state = shared
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        if progress != Progress::Polled {
            polls = 0;
            drop(state);
            shared.give_way(completed);
            state = shared.take();
            continue;
        }
        if polls == 0 {
            since = Instant::now();
        }
        polls += 1;
        if polls < PATIENT_ROUNDS {
            drop(state);
            std::thread::yield_now();
            state = shared.take();
        } else {
            let nap = (since.elapsed() / LATE.0).clamp(NAP, LATE.1);
            let woken = shared.work.wait_timeout(state, nap);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Body of the thread that calls host functions and destructors.
pub(crate) fn call(shared: &Shared) {
    slots::refuse_calls_here();
    let mut state = shared.take();
    while !state.stop {
        let Some((callback, op)) = state.engine.calls.pop_front() else {
            state = shared
                .due
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        drop(state);
        callback.call();
        state = shared.lock();
        if let Some(op) = op {
            state.engine.complete(op);
        }
        shared.kick(&mut state);
    }
}
