//! What a pool tells of itself: at work, while a kernel waits, during captures, failed, broken and closed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use slabfence::channel::{ChannelStatus, Contract, Part, Pool, PoolStatus};
use slabfence::driver::{CaptureMode, Driver, Stream};
use slabfence::group::{Rank, ThreadBootstrap};
use slabfence::health::Health;
use slabfence::layout::{Cause, LocalBlock, OperationKind, Transport};
use slabfence::sys::{CUresult, CUstream};
use slabfence_emu::Live;
use slabfence_tests::graphs::capture;
use slabfence_tests::host::contract;
use slabfence_tests::late::FAIL;
use slabfence_tests::lossy::lossy;
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, on_members, on_ranks};
use slabfence_tests::watched::Watched;

/// A loaded host answers late.
const PATIENCE: Duration = Duration::from_secs(60);

/// Longer than a collective call takes, on a loaded host too.
const LONG: Duration = Duration::from_secs(4);

fn status(pool: &Pool) -> PoolStatus {
    let status = pool.status_within(PATIENCE).unwrap();
    assert_eq!(status.unanswered, None);
    status
}

fn channel<'a>(status: &'a PoolStatus, name: &str) -> &'a ChannelStatus {
    let found = status.channels.iter().find(|channel| channel.name == name);
    found.expect("a channel of this name")
}

/// Epoch, begun, launched, recorded.
fn counts(status: &PoolStatus, name: &str) -> (Option<u64>, Option<u64>, u64, u64) {
    let of = channel(status, name);
    (of.epoch, of.begun, of.launched, of.recorded)
}

#[test]
fn eager_operations_and_replays_are_counted_by_host_and_device() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let pool = member.pool(&contract()).unwrap();
        pool.prepare(&["eager", "graph"]).unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 2).unwrap();
        assert_eq!(counts(&status(&pool), "eager"), (Some(2), Some(0), 0, 0));
        for _ in 0..3 {
            let eager = pool.channel("eager").unwrap();
            gather.enqueue(&eager, &stream).unwrap();
        }
        let graph = capture(&pool, &stream, "graph", |channel| {
            gather.enqueue(channel, &stream).unwrap();
            gather.enqueue(channel, &stream).unwrap();
        });
        let mut exec = graph.instantiate().unwrap();
        for _ in 0..4 {
            exec.launch(&stream).unwrap();
        }
        stream.synchronize().unwrap();
        let now = status(&pool);
        assert_eq!(counts(&now, "eager"), (Some(5), Some(3), 3, 0));
        assert_eq!(counts(&now, "graph"), (Some(10), Some(8), 0, 2));
        let holders = |name| channel(&now, name).graphs;
        assert_eq!((holders("eager"), holders("graph")), (0, 1));
        assert_eq!((now.rank, now.members.len()), (Rank(member.rank()), 2));
        assert_eq!(now.device, member.device.ordinal());
        assert_eq!(now.uuid, member.device.info().uuid);
        assert_eq!((now.phase.as_str(), now.health), ("open", Health::Healthy));
        assert_eq!((now.warn, now.fail), (contract().warn, FAIL));
        drop((exec, graph));
        pool.close().unwrap();
    });
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn a_capture_is_seen_from_inside_and_stays_valid() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, lane) = member.channel(&contract(), "a").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 1).unwrap();
        member.meet();
        let scope = pool.capture("a", &stream).unwrap();
        stream.begin_capture(CaptureMode::Global).unwrap();
        gather.enqueue(&lane, &stream).unwrap();
        let inside = status(&pool);
        assert_eq!(counts(&inside, "a"), (Some(2), Some(0), 0, 1));
        let of = channel(&inside, "a");
        assert_eq!((of.scoped, of.graphs), (true, 1));
        let graph = stream.end_capture().unwrap();
        assert_eq!(graph.kernel_nodes().unwrap(), 1);
        scope.finish().unwrap();
        assert!(!channel(&status(&pool), "a").scoped);
        member.meet();
        drop(graph);
        pool.close().unwrap();
    });
}

#[test]
fn a_kernel_that_waits_does_not_keep_the_status_waiting() {
    let (_machine, driver) = machine(2);
    let contract = Contract {
        warn: Duration::from_millis(20),
        ..contract()
    };
    on_ranks(&driver, 2, |member| {
        let (pool, lane) = member.channel(&contract, "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract, 2).unwrap();
        gather.fill(member.rank(), 0).unwrap();
        member.meet();
        if member.rank() == 0 {
            gather.enqueue(&lane, &stream).unwrap();
            let until = Instant::now() + PATIENCE;
            while pool.health().unwrap() != Health::Warned {
                assert!(Instant::now() < until, "no warning");
                std::thread::yield_now();
            }
            // The kernel spins until rank 1 comes, which is later.
            let waiting = status(&pool);
            assert_eq!(counts(&waiting, "decode"), (Some(3), Some(1), 1, 0));
            assert_eq!(channel(&waiting, "decode").running, Some(true));
            assert_eq!(waiting.health, Health::Warned);
            let warning = channel(&waiting, "decode").warning.as_ref();
            assert_eq!(warning.unwrap().late_ranks, [Rank(1)]);
            assert!(!stream.query().unwrap());
        }
        member.meet();
        if member.rank() == 1 {
            gather.enqueue(&lane, &stream).unwrap();
        }
        stream.synchronize().unwrap();
        assert!(gather.output().unwrap() == gather.expected(0));
        let done = status(&pool);
        assert_eq!(counts(&done, "decode"), (Some(3), Some(1), 1, 0));
        assert_eq!(channel(&done, "decode").running, Some(false));
        pool.close().unwrap();
    });
}

/// Whether the devices' streams seem never to end.
static SILENT: AtomicBool = AtomicBool::new(false);
type Query = unsafe extern "C" fn(CUstream) -> CUresult;
/// The machine's own.
static QUERY: Mutex<Option<Query>> = Mutex::new(None);

unsafe extern "C" fn query(stream: CUstream) -> CUresult {
    if SILENT.load(Ordering::Relaxed) {
        return CUresult::CUDA_ERROR_NOT_READY;
    }
    let inner = *QUERY.lock().unwrap_or_else(PoisonError::into_inner);
    let inner = inner.expect("set before the driver is made");
    // SAFETY: as the caller's.
    unsafe { inner(stream) }
}

/// One test at a time makes the devices silent.
static ONE: Mutex<()> = Mutex::new(());

/// A machine with devices that can be made silent.
fn silent_machine() -> (Watched, Driver) {
    let (machine, _) = machine(2);
    let mut api = machine.api().unwrap();
    let inner = api.cuStreamQuery.expect("the emulator's");
    *QUERY.lock().unwrap_or_else(PoisonError::into_inner) = Some(inner);
    api.cuStreamQuery = Some(query);
    let driver = Driver::from_api(api).unwrap();
    (machine, driver)
}

#[test]
fn whoever_waits_for_a_silent_device_keeps_no_collective_call_waiting() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (machine, driver) = silent_machine();
    on_ranks(&driver, 2, |member| {
        let (pool, _) = member.channel(&contract(), "decode").unwrap();
        member.meet();
        SILENT.store(true, Ordering::Relaxed);
        member.meet();
        std::thread::scope(|threads| {
            let looks = [0, 1].map(|_| threads.spawn(|| pool.status_within(2 * LONG)));
            // One waits for the device by then, and one for the other.
            std::thread::sleep(LONG / 4);
            let begin = Instant::now();
            pool.prepare(&["other"]).unwrap();
            assert!(begin.elapsed() < LONG, "{:?}", begin.elapsed());
            for look in looks {
                assert!(look.join().unwrap().unwrap().unanswered.is_some());
            }
        });
        member.meet();
        SILENT.store(false, Ordering::Relaxed);
        member.meet();
        pool.close().unwrap();
    });
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn a_device_that_does_not_answer_leaves_the_epochs_open_and_says_so() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (machine, driver) = silent_machine();
    on_ranks(&driver, 2, |member| {
        let (pool, lane) = member.channel(&contract(), "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 2).unwrap();
        gather.enqueue(&lane, &stream).unwrap();
        stream.synchronize().unwrap();
        member.meet();
        SILENT.store(true, Ordering::Relaxed);
        member.meet();
        let begin = Instant::now();
        let first = pool.status().unwrap();
        let second = pool.status().unwrap();
        assert!(begin.elapsed() < PATIENCE);
        member.meet();
        SILENT.store(false, Ordering::Relaxed);
        member.meet();
        for (status, words) in [
            (first, "the device has not answered in time"),
            (
                second,
                "the device has not answered an earlier question either",
            ),
        ] {
            assert_eq!(status.unanswered.as_deref(), Some(words));
            assert_eq!(counts(&status, "decode"), (None, None, 1, 0));
            assert_eq!(
                (status.phase.as_str(), status.health),
                ("open", Health::Healthy)
            );
        }
        assert_eq!(counts(&status(&pool), "decode"), (Some(3), Some(1), 1, 0));
        pool.close().unwrap();
    });
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn a_failure_is_told_with_its_report_until_the_reset() {
    let (_machine, driver) = machine(2);
    let causes = on_ranks(&driver, 2, |member| {
        let (pool, lane) = member.channel(&contract(), "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), [2, 3][member.rank() as usize]).unwrap();
        gather.enqueue(&lane, &stream).unwrap();
        stream.synchronize().unwrap();
        let failed = status(&pool);
        assert_eq!(failed.health, Health::Failed);
        let fault = channel(&failed, "decode").fault.clone().unwrap();
        // Which pool, channel and operation, and whom it met: all of it is read apart from the words.
        let of = (fault.pool, &*fault.channel, fault.rank, fault.epoch);
        assert_eq!(of, (failed.number, "decode", failed.rank, 2));
        let other = Rank(1 - member.rank());
        assert_eq!(fault.operation, Some(OperationKind::AllGatherHeads));
        let cause = fault.cause.expect("a cause");
        if cause == Cause::TagMismatch {
            assert_eq!(
                (fault.late_rank, fault.expected),
                (Some(other), fault.tag & 0xffff_ffff)
            );
            assert_ne!(fault.seen, fault.expected);
        }
        assert_eq!(pool.faults().unwrap(), [fault]);
        // A failed operation has run too.
        assert_eq!(counts(&failed, "decode"), (Some(3), Some(1), 1, 0));
        pool.reset().unwrap();
        let revived = status(&pool);
        let of = channel(&revived, "decode");
        assert_eq!((of.fault.clone(), of.resets), (None, Some(1)));
        assert_eq!(counts(&revived, "decode"), (Some(5), Some(0), 1, 0));
        assert_eq!(revived.health, Health::Healthy);
        pool.close().unwrap();
        cause
    });
    // Whoever sees it first may end the other's operation.
    assert!(causes.contains(&Cause::TagMismatch), "{causes:?}");
    for cause in causes {
        assert!(matches!(cause, Cause::TagMismatch | Cause::PeerFailed));
    }
}

#[test]
fn a_broken_pool_says_why_and_a_closed_one_has_nothing() {
    let (_machine, driver) = machine(2);
    let members = ThreadBootstrap::world(2).into_iter();
    let members = members.map(|inner| lossy(inner, "reset: rewrite", true));
    on_members(
        &driver,
        members.collect(),
        Duration::from_secs(20),
        |member| {
            let (pool, _) = member.channel(&contract(), "decode").unwrap();
            let reset = pool.reset();
            if member.rank() == 1 {
                reset.unwrap_err();
                let broken = status(&pool);
                let why = "can only be closed, since its reset failed: ";
                assert!(broken.phase.starts_with(why), "{}", broken.phase);
                assert_eq!(counts(&broken, "decode"), (Some(4), Some(0), 0, 0));
            }
            pool.close().unwrap();
            let closed = pool.status().unwrap();
            assert_eq!(closed.phase, "closed");
            let why = "the device is not asked: closed";
            assert_eq!(closed.unanswered.as_deref(), Some(why));
            assert_eq!((closed.mapped.total(), closed.imported_bytes), (0, 0));
            assert_eq!(closed.channels, []);
            assert_eq!(closed.health, Health::Healthy);
        },
    );
}

#[test]
fn a_channel_costs_its_ranges_and_64_of_them_no_slab_each() {
    let (_machine, driver) = machine(2);
    for transport in [Transport::Push, Transport::Pull] {
        let contract = Contract {
            transport,
            max_channels: 64,
            ..contract()
        };
        on_ranks(&driver, 2, |member| {
            let pool = member.pool(&contract).unwrap();
            let names: Vec<String> = (0..contract.max_channels)
                .map(|i| format!("c{i}"))
                .collect();
            pool.prepare(&names).unwrap();
            let now = status(&pool);
            assert_eq!(now.max_channels, 64);
            assert_eq!(now.channels.len(), 64);
            let of = channel(&now, "c7");
            let ranges = pool.ranges().unwrap();
            let sum = |part: Part| -> u64 {
                let mine = ranges.iter().filter(|range| {
                    range.part == part
                        && range.owner == now.rank
                        && range.channel.as_deref() == Some("c7")
                });
                mine.map(|range| range.bytes).sum()
            };
            assert_eq!(of.bytes.local, size_of::<LocalBlock>() as u64);
            assert_eq!(of.bytes.outbox, sum(Part::Outbox));
            assert_eq!(of.bytes.inbox, sum(Part::Inbox));
            let signal = sum(Part::Poison) + sum(Part::Entry) + sum(Part::Flags);
            assert_eq!(of.bytes.signal, signal);
            assert_eq!(of.host_bytes, sum(Part::HealthRecord));
            let granule = member.device.granularity().unwrap() as u64;
            // Local, signal and two slots of staging, each of all channels together.
            let kinds = [64 * of.bytes.local, 64 * of.bytes.signal];
            let staged = 64 * (of.bytes.inbox + of.bytes.outbox) / 2;
            let whole = |bytes: u64| bytes.next_multiple_of(granule);
            let expected = kinds.map(whole).iter().sum::<u64>() + 2 * whole(staged);
            assert_eq!(now.mapped.total(), expected);
            assert!(now.mapped.total() < 64 * granule);
            pool.close().unwrap();
        });
    }
}
