//! Ranks that are late, and ranks that can wait for them.

use core::ffi::c_void;
use core::mem::offset_of;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use slabfence::channel::{Part, Pool};
use slabfence::driver::{Driver, PinnedBuffer, Stream};
use slabfence::group::{Bootstrap, ThreadBootstrap};
use slabfence::layout::{LocalBlock, started_warps};

use crate::probe::Probe;
use crate::ranks::{self, Member};

/// How long a wait inside an operation may last: a bug that would hang then fails with a report, while a loaded host does
/// not.
pub const FAIL: Duration = Duration::from_secs(60);

/// How long ranks wait for one another in collective host calls. A rank that panics ends the others' wait at once.
const PATIENCE: Duration = Duration::from_secs(120);

/// [`ranks::on_ranks`] for ranks of which some have much to compute before they meet the others.
///
/// # Panics
///
/// When a rank panics or cannot be set up: these are tests.
pub fn on_ranks<T: Send>(
    driver: &Driver,
    world: u32,
    body: impl Fn(&Member) -> T + Sync,
) -> Vec<T> {
    let members = ThreadBootstrap::world(world).into_iter();
    let members = members.map(|member| Arc::new(member) as Arc<dyn Bootstrap>);
    ranks::on_members(driver, members.collect(), PATIENCE, body)
}

/// Waits until `what` holds.
///
/// # Panics
///
/// When it does not in the time that no wait may take.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < FAIL, "never {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Address of the local block of the channel `name`.
///
/// # Panics
///
/// When there is no such channel.
pub fn local_of(pool: &Pool, name: &str) -> u64 {
    let me = pool.group().me();
    let ranges = pool.ranges().expect("an open pool");
    let local = ranges.iter().find(|range| {
        let mine = range.owner == me && range.part == Part::Local;
        mine && range.channel.as_deref() == Some(name)
    });
    local.expect("the channel").base
}

/// Sees when an operation of a channel runs on this rank. Made before the operation: to allocate or free beside one that
/// waits may be to wait for it.
#[derive(Debug)]
pub struct Onset {
    local: u64,
    probe: Probe,
    word: PinnedBuffer,
}

impl Onset {
    /// For the channel `name`.
    ///
    /// # Panics
    ///
    /// When there is no such channel, or the driver refuses: these are tests.
    pub fn of(pool: &Pool, name: &str) -> Self {
        Self {
            local: local_of(pool, name),
            probe: Probe::new(pool.device()).expect("the probe's kernels"),
            word: PinnedBuffer::new(pool.device(), 8).expect("a word"),
        }
    }

    fn peek(&self, offset: usize) -> u64 {
        let (to, from) = (self.word.ptr().raw(), self.local + offset as u64);
        let copied = self.probe.enqueue_copy(to, from);
        let copied = copied.and_then(|()| self.probe.stream.synchronize());
        copied.and_then(|()| self.word.load(0)).expect("a word")
    }

    /// Waits until an operation runs: it has looked at what it finds, and waits for the others.
    ///
    /// # Panics
    ///
    /// When none does.
    pub fn wait(&self) {
        until("running", || {
            let retired = self.peek(offset_of!(LocalBlock, retired));
            started_warps(self.peek(offset_of!(LocalBlock, started))) > retired
        });
    }
}

/// Enqueues a host function that holds `stream` up for `time`.
///
/// # Panics
///
/// When the driver refuses: these are tests.
pub fn hold(stream: &Stream, time: Duration) {
    let micros = core::ptr::without_provenance_mut(time.as_micros() as usize);
    let device = stream.device();
    let _guard = device.bind().expect("the device's context");
    let api = device.driver().api();
    let enqueue = api.cuLaunchHostFunc().expect("host functions");
    // SAFETY: the stream is live; the function uses its argument as a number only.
    let code = unsafe { enqueue(stream.raw(), Some(sleep), micros) };
    assert!(code.is_success(), "cuLaunchHostFunc: {code:?}");
}

unsafe extern "C" fn sleep(micros: *mut c_void) {
    std::thread::sleep(Duration::from_micros(micros.addr() as u64));
}
