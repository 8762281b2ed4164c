//! Slots: which machine a driver function of this process belongs to.
//!
//! Driver functions carry no argument that says whose they are, so every function exists once per slot.

use std::cell::{Cell, RefCell};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::getpid;

use crate::callback::Callback;
use crate::code::{Code, Status};
use crate::device::Thread;
use crate::machine::{MachineError, State};
use crate::operations::OpId;
use crate::runner::Shared;

/// How many machines can live in a process at once.
pub(crate) const COUNT: usize = 12;
/// How long a new machine waits for a slot.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

enum Slot {
    /// No machine has been here: nobody has called `cuInit`.
    Unused,
    Free,
    Taken(Arc<Shared>),
    /// The machine is gone, but somebody can still call its functions: another machine here would get the calls. Who can
    /// call them may have page-locked memory of it, too, so that stays where it is.
    Left {
        _memory: Arc<Shared>,
    },
}

static SLOTS: Mutex<[Slot; COUNT]> = Mutex::new([const { Slot::Unused }; COUNT]);
static FREED: Condvar = Condvar::new();
/// The process whose machines these are, 0 before there was one.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Whether this is a child that was forked after a machine was made: it has the machine's memory and not its threads.
fn forked() -> bool {
    let process = PROCESS.load(Ordering::Relaxed);
    process != 0 && process != getpid().as_raw_pid()
}

fn slots() -> MutexGuard<'static, [Slot; COUNT]> {
    SLOTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The right to a slot. The machine has it, and every function table of the slot: with the last holder the slot is free.
#[derive(Debug)]
pub(crate) struct Lease {
    index: usize,
    /// The process that claimed it. In a forked child the list may be locked for ever, and is nobody's.
    process: u32,
}

impl Lease {
    /// Which slot.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The machine goes: from now on the slot's functions answer that it is gone.
    pub(crate) fn leave(&self, shared: &Arc<Shared>) {
        slots()[self.index] = Slot::Left {
            _memory: Arc::clone(shared),
        };
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        // Dropped when the list is no longer locked.
        let _left = mem::replace(&mut slots()[self.index], Slot::Free);
        FREED.notify_one();
    }
}

/// Makes a machine in the first free slot, waiting for one if need be.
pub(crate) fn claim(
    make: impl FnOnce(usize) -> Result<Arc<Shared>, Errno>,
) -> Result<(Arc<Lease>, Arc<Shared>), MachineError> {
    if forked() {
        let why = "a forked child cannot make one after its parent did".to_owned();
        return Err(MachineError::Host(why));
    }
    PROCESS.store(getpid().as_raw_pid(), Ordering::Relaxed);
    let deadline = Instant::now() + PATIENCE;
    let mut all = slots();
    let index = loop {
        if let Some(index) = all
            .iter()
            .position(|slot| matches!(slot, Slot::Unused | Slot::Free))
        {
            break index;
        }
        let left = deadline
            .checked_duration_since(Instant::now())
            .ok_or(MachineError::NoSlot)?;
        all = FREED
            .wait_timeout(all, left)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
    };
    let shared = make(index).map_err(|error| MachineError::Host(error.to_string()))?;
    all[index] = Slot::Taken(shared.clone());
    let process = std::process::id();
    Ok((Arc::new(Lease { index, process }), shared))
}

/// Whether the machine with this id still lives.
fn alive(id: u64) -> bool {
    slots()
        .iter()
        .any(|slot| matches!(slot, Slot::Taken(shared) if shared.id == id))
}

/// One call of a driver function.
pub(crate) struct Call<'a> {
    shared: &'a Shared,
    guard: Option<MutexGuard<'a, State>>,
    thread: &'a mut Thread,
}

impl Call<'_> {
    /// The machine's state and the calling thread's.
    pub(crate) fn split(&mut self) -> (&mut State, &mut Thread) {
        let guard = self.guard.get_or_insert_with(|| self.shared.lock());
        (guard, self.thread)
    }

    /// Waits until these operations are done. The lock is given up meanwhile: look everything up again. Refuses while
    /// the machine is held and they are not done.
    pub(crate) fn wait(&mut self, ops: &[OpId]) -> Status {
        let (state, _) = self.split();
        if ops.iter().any(|&op| state.engine.pending(op)) {
            state.works("the call")?;
        }
        let guard = self.guard.take().unwrap_or_else(|| self.shared.lock());
        self.guard = Some(self.shared.wait(guard, ops));
        Ok(())
    }
}

thread_local! {
    /// Whether this is a thread on which a machine calls host functions, which must not call the driver.
    static CALLS_BACK: Cell<bool> = const { Cell::new(false) };

    /// This thread, also in its last destructors.
    static ID: Cell<Option<ThreadId>> = const { Cell::new(None) };

    /// What each machine keeps about this thread, by the machine's id.
    static THREADS: RefCell<Vec<(u64, Thread)>> = const { RefCell::new(Vec::new()) };
}

/// What is kept about threads that have pushed a context or changed their mode in a destructor, until they undo it: what
/// is kept with a thread goes before its last destructor has run.
static ENDING: Mutex<Vec<(u64, Thread)>> = Mutex::new(Vec::new());

fn ending<T>(body: impl FnOnce(&mut Vec<(u64, Thread)>) -> T) -> T {
    body(&mut ENDING.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Whether this thread's end is the process's.
fn is_main() -> bool {
    rustix::thread::gettid() == getpid()
}

/// Runs the body of a driver function with what `threads` keep about the calling thread and this machine.
fn on(
    threads: &mut Vec<(u64, Thread)>,
    shared: &Shared,
    body: &mut dyn FnMut(&mut Call<'_>) -> Status,
) -> Status {
    let at = threads
        .iter()
        .position(|(id, _)| *id == shared.id)
        .unwrap_or_else(|| {
            threads.retain(|(id, _)| alive(*id));
            let id = ID.get().unwrap_or_else(|| thread::current().id());
            ID.set(Some(id));
            threads.push((shared.id, Thread::new(id)));
            threads.len() - 1
        });
    let mut call = Call {
        shared,
        guard: Some(shared.lock()),
        thread: &mut threads[at].1,
    };
    let result = body(&mut call);
    shared.kick(call.split().0);
    result
}

/// Makes this thread one on which driver calls are refused, as the driver does in host functions and destructors.
pub(crate) fn refuse_calls_here() {
    CALLS_BACK.set(true);
}

/// Calls a host function on this thread, on which driver calls are refused meanwhile.
pub(crate) fn call_back(callback: Callback) {
    let before = CALLS_BACK.replace(true);
    callback.call();
    CALLS_BACK.set(before);
}

/// Runs the body of a driver function on the machine of a slot; gives the driver's code, 0 for success.
pub(crate) fn enter(index: usize, body: &mut dyn FnMut(&mut Call<'_>) -> Status) -> u32 {
    // Before any lock: a thread that the child does not have may have held it when the process forked.
    if forked() {
        return Code::NOT_INITIALIZED.0;
    }
    let shared = match &slots()[index] {
        Slot::Taken(shared) => shared.clone(),
        Slot::Unused => return Code::NOT_INITIALIZED.0,
        Slot::Free | Slot::Left { .. } => return Code::DEINITIALIZED.0,
    };
    if CALLS_BACK.get() {
        shared
            .lock()
            .faults
            .push("a host function or destructor called the driver".to_owned());
        return Code::NOT_PERMITTED.0;
    }
    let run = || match THREADS.try_with(|threads| on(&mut threads.borrow_mut(), &shared, body)) {
        Ok(result) => result,
        // What is kept about a thread is gone when its destructors run, and the thread may call from one.
        Err(_) if is_main() => Err(Code::DEINITIALIZED),
        Err(_) => {
            let mut own = ending(|all| {
                let id = ID.get();
                all.extract_if(.., |(_, thread)| Some(thread.id) == id)
                    .collect()
            });
            let result = on(&mut own, &shared, body);
            own.retain(|(_, thread)| !thread.is_fresh());
            ending(|all| all.append(&mut own));
            result
        }
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => 0,
        Ok(Err(code)) => code.0,
        Err(_) => {
            log::error!("emulator: a driver function panicked; this is a bug of the emulator");
            999
        }
    }
}
