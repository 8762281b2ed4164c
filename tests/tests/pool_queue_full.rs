//! A launch that the driver does not take, as it does not while the queue of a device is full: it keeps its own caller and
//! nobody else, and calls that need the pool at rest say so on all ranks, in bounded time.

use core::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use slabfence::channel::{Channel, Contract, Pool};
use slabfence::driver::{Driver, Stream};
use slabfence::group::{Bootstrap, ThreadBootstrap};
use slabfence::sys::{CUfunction, CUresult, CUstream};
use slabfence::{Error, Result};
use slabfence_emu::Live;
use slabfence_tests::late::{FAIL, until};
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, Member, on_members};

/// Of the group: calls give up after half of it.
const TIMEOUT: Duration = Duration::from_secs(4);
/// What takes longer waits for the launch, which ends by itself after [`FULL_FOR`].
const BOUND: Duration = Duration::from_secs(20);
const FULL_FOR: Duration = Duration::from_secs(40);

/// Whether the queues are full, and whether somebody waits for it.
static FULL: AtomicBool = AtomicBool::new(false);
static WAITS: AtomicBool = AtomicBool::new(false);

type Launch = unsafe extern "C" fn(
    CUfunction,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    CUstream,
    *mut *mut c_void,
    *mut *mut c_void,
) -> CUresult;
/// The machine's own.
static LAUNCH: Mutex<Option<Launch>> = Mutex::new(None);

#[allow(clippy::too_many_arguments, reason = "the driver's")]
unsafe extern "C" fn launch(
    function: CUfunction,
    x: c_uint,
    y: c_uint,
    z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: CUstream,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    let begin = Instant::now();
    while FULL.load(Ordering::Relaxed) && begin.elapsed() < FULL_FOR {
        WAITS.store(true, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(1));
    }
    let inner = *LAUNCH.lock().unwrap_or_else(PoisonError::into_inner);
    let inner = inner.expect("set before the driver is made");
    // SAFETY: as the caller's.
    unsafe {
        inner(
            function, x, y, z, block_x, block_y, block_z, shared, stream, params, extra,
        )
    }
}

/// A rank with a pool of one channel.
struct Rank<'a> {
    member: &'a Member,
    pool: Pool,
    channel: Channel,
    stream: Stream,
    gather: Gather,
}

impl Rank<'_> {
    /// Enqueues on rank 0 while the queues are full, and does `meanwhile` beside it on both. Then the queues have room again,
    /// and the operation is right.
    fn with_full_queues(&self, round: u32, meanwhile: impl FnOnce()) {
        self.gather.fill(self.member.rank(), round).unwrap();
        self.member.meet();
        thread::scope(|threads| {
            let launches = (self.member.rank() == 0).then(|| {
                FULL.store(true, Ordering::Relaxed);
                let launches = threads.spawn(|| self.gather.enqueue(&self.channel, &self.stream));
                until("waiting", || WAITS.load(Ordering::Relaxed));
                launches
            });
            self.member.meet();
            meanwhile();
            self.member.meet();
            FULL.store(false, Ordering::Relaxed);
            WAITS.store(false, Ordering::Relaxed);
            match launches {
                Some(launches) => launches.join().unwrap(),
                None => self.gather.enqueue(&self.channel, &self.stream),
            }
            .unwrap();
        });
        self.stream.synchronize().unwrap();
        assert!(self.gather.output().unwrap() == self.gather.expected(round));
    }

    /// What `call` says, which it must do without waiting for the launch.
    fn in_time<T>(&self, call: impl FnOnce(&Pool) -> T) -> T {
        let begin = Instant::now();
        let said = call(&self.pool);
        assert!(begin.elapsed() < BOUND, "{:?}", begin.elapsed());
        said
    }
}

fn on_two_ranks(body: impl Fn(&Rank<'_>) + Sync) {
    // The queues are every test's.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (machine, _) = machine(2);
    let mut api = machine.api().unwrap();
    *LAUNCH.lock().unwrap_or_else(PoisonError::into_inner) = Some(api.cuLaunchKernel);
    api.cuLaunchKernel = launch;
    let driver = Driver::from_api(api).unwrap();
    let contract = Contract {
        fail: FAIL,
        ..Contract::new(4, 64, 64, 8)
    };
    let members = ThreadBootstrap::world(2).into_iter();
    let members = members.map(|member| Arc::new(member) as Arc<dyn Bootstrap>);
    on_members(&driver, members.collect(), TIMEOUT, |member| {
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        let rank = Rank {
            stream: Stream::new(&member.device).unwrap(),
            gather: Gather::new(member, &contract, 2).unwrap(),
            member,
            pool,
            channel,
        };
        body(&rank);
    });
    drop(driver);
    assert_eq!(machine.live(), Live::default());
    assert_eq!(machine.faults(), Vec::<String>::new());
}

/// Whether it is the refusal of a rank on which an operation is being enqueued.
fn names_rank_0(result: Result<()>, step: &str) {
    let error = result.unwrap_err();
    let Error::Setup { phase, failures } = &error else {
        panic!("{error}")
    };
    assert_eq!(*phase, step);
    assert_eq!(failures.len(), 1, "{error}");
    assert_eq!(failures[0].0.0, 0);
    let words = "an operation is still being enqueued";
    assert!(failures[0].1.contains(words), "{error}");
}

#[test]
fn an_abandonment_gives_up_and_whoever_asks_what_has_failed_is_answered_at_once() {
    on_two_ranks(|rank| {
        rank.with_full_queues(1, || {
            if rank.member.rank() != 0 {
                return;
            }
            thread::scope(|threads| {
                let abandons = threads.spawn(|| rank.in_time(Pool::abandon));
                until("abandoned", || {
                    rank.in_time(|pool| pool.status().unwrap().phase.contains("abandon"))
                        || abandons.is_finished()
                });
                let begin = Instant::now();
                assert_eq!(rank.pool.faults().unwrap(), []);
                assert_eq!(rank.pool.warnings().unwrap(), []);
                assert_eq!(rank.channel.fault().unwrap(), None);
                assert!(rank.channel.verdict().is_ok());
                // Not after the abandonment has given up.
                assert!(begin.elapsed() < TIMEOUT / 4 && !abandons.is_finished());
                let refused = abandons.join().unwrap().unwrap_err().to_string();
                let words = "draining the device refused: an operation is still being enqueued";
                assert!(refused.starts_with(words), "{refused}");
            });
        });
        rank.pool.close().unwrap();
    });
}

#[test]
fn a_close_or_a_preparation_fails_on_all_ranks_and_leaves_the_pool_as_it_was() {
    on_two_ranks(|rank| {
        rank.with_full_queues(1, || {
            names_rank_0(rank.in_time(Pool::close), "close: drain");
            let prepared = rank.in_time(|pool| pool.prepare(&["other"]));
            names_rank_0(prepared, "prepare: drain");
            let retired = rank.in_time(|pool| pool.retire(&["decode"]));
            names_rank_0(retired, "retire: drain");
        });
        rank.with_full_queues(2, || {});
        rank.pool.close().unwrap();
    });
}
