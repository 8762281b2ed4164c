//! Leaving a pool without the other ranks: what is given back, what is kept, and when it is refused.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use slabfence::Error;
use slabfence::channel::{Abandoned, Contract};
use slabfence::driver::{Driver, Stream, drop_released};
use slabfence::group::{Rank, ThreadBootstrap};
use slabfence::layout::{Cause, Transport};
use slabfence::sys::{CUdeviceptr, CUresult};
use slabfence_emu::Live;
use slabfence_tests::graphs::capture;
use slabfence_tests::late::Onset;
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, on_members, on_ranks};

fn contract() -> Contract {
    Contract::new(4, 64, 64, 8)
}

#[test]
fn a_rank_that_abandons_a_pool_of_threads_keeps_what_the_others_may_use() {
    let (machine, driver) = machine(2);
    let kept = on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract(), "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 2).unwrap();
        gather.fill(member.rank(), 1).unwrap();
        gather.enqueue(&channel, &stream).unwrap();
        let Abandoned { kept } = pool.abandon().unwrap();
        assert!(gather.output().unwrap() == gather.expected(1));
        // There is nothing more to do, and nothing more can be done.
        assert_eq!(pool.abandon().unwrap(), Abandoned { kept: 0 });
        pool.close().unwrap();
        let refused = gather.enqueue(&channel, &stream).unwrap_err();
        assert!(matches!(refused, Error::Closed { .. }), "{refused}");
        kept
    });
    // Signal memory and two inboxes, of one size on both ranks.
    assert_eq!(kept[0], kept[1]);
    assert!(kept[0] > 0);
    let live = machine.live();
    assert_eq!((live.mappings, live.physical), (6, 6));
    assert_eq!(machine.faults(), Vec::<String>::new());
}

/// Rank 1 abandons while rank 0's kernel waits for it, and before rank 0 begins another operation: both use its memory after.
fn a_rank_leaves_a_peer_that_goes_on(transport: Transport) {
    let (machine, driver) = machine(2);
    let contract = Contract {
        transport,
        fail: Duration::from_secs(2),
        max_channels: 2,
        concurrent_operations: 2,
        ..contract()
    };
    on_ranks(&driver, 2, |member| {
        let pool = member.pool(&contract).unwrap();
        pool.prepare(&["decode", "after"]).unwrap();
        let channels = ["decode", "after"].map(|name| pool.channel(name).unwrap());
        let streams = [(); 2].map(|()| Stream::new(&member.device).unwrap());
        let gathers = [(); 2].map(|()| Gather::new(member, &contract, 2).unwrap());
        for gather in &gathers {
            gather.fill(member.rank(), 1).unwrap();
        }
        let onset = Onset::of(&pool, "decode");
        if member.rank() == 1 {
            member.meet();
            assert!(pool.abandon().unwrap().kept > 0);
            member.meet();
            // Until rank 0 has used what is left.
            member.meet();
            return;
        }
        gathers[0].enqueue(&channels[0], &streams[0]).unwrap();
        onset.wait();
        member.meet();
        member.meet();
        gathers[1].enqueue(&channels[1], &streams[1]).unwrap();
        for ((gather, channel), stream) in gathers.iter().zip(&channels).zip(&streams) {
            stream.synchronize().unwrap();
            let fault = channel.fault().unwrap().expect("a fault");
            let late = (fault.cause, fault.late_rank);
            assert_eq!(late, (Some(Cause::EntryTimeout), Some(Rank(1))), "{fault}");
            assert!(gather.output().unwrap().iter().all(|&byte| byte == 0xff));
        }
        member.meet();
        assert!(pool.abandon().unwrap().kept > 0);
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
    drop(driver);
    // Of each rank signal memory and two inboxes or outboxes, and its device with the stream for copies: nothing else.
    let kept = Live {
        contexts: 2,
        physical: 6,
        mappings: 6,
        reservations: 6,
        streams: 2,
        // For each rank and channel six lines, a slot's and phase's flags four times, and what the slots are sent by or to.
        announced: match transport {
            Transport::Pull => 48,
            _ => 56,
        },
        ..Live::default()
    };
    assert_eq!(machine.live(), kept);
}

#[test]
fn a_rank_that_abandons_under_a_peer_that_pushes_to_it_is_late_and_no_more() {
    a_rank_leaves_a_peer_that_goes_on(Transport::Push);
}

#[test]
fn a_rank_that_abandons_under_a_peer_that_pulls_from_it_is_late_and_no_more() {
    a_rank_leaves_a_peer_that_goes_on(Transport::Pull);
}

#[test]
fn a_pool_whose_graphs_live_is_not_abandoned_and_stays_as_it_was() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, _) = member.channel(&contract(), "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 2).unwrap();
        let graph = capture(&pool, &stream, "decode", |channel| {
            gather.enqueue(channel, &stream).unwrap();
        });
        let mut executable = graph.instantiate().unwrap();
        let said = pool.abandon().unwrap_err().to_string();
        let words = "Pool::abandon refused: 1 graph(s) hold channel 'decode'";
        assert!(said.starts_with(words), "{said}");
        gather.fill(member.rank(), 1).unwrap();
        executable.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        assert!(gather.output().unwrap() == gather.expected(1));
        drop((executable, graph));
        drop_released();
        pool.close().unwrap();
    });
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn a_pool_whose_operation_waits_can_be_abandoned_when_that_has_ended_and_not_before() {
    let (machine, driver) = machine(2);
    let members = ThreadBootstrap::world(2).into_iter();
    let members = members.map(|member| Arc::new(member) as _).collect();
    // An abandonment waits for half of it.
    let limit = Duration::from_secs(10);
    on_members(&driver, members, limit, |member| {
        let (pool, channel) = member.channel(&contract(), "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 2).unwrap();
        gather.fill(member.rank(), 1).unwrap();
        if member.rank() == 0 {
            gather.enqueue(&channel, &stream).unwrap();
            let begin = Instant::now();
            let said = pool.abandon().unwrap_err().to_string();
            assert!(begin.elapsed() >= limit / 2, "{:?}", begin.elapsed());
            let words = "draining the device refused: device 0 still runs";
            assert!(said.starts_with(words), "{said}");
        }
        member.meet();
        // As it was: what waits goes on when the other rank comes.
        if member.rank() == 1 {
            gather.enqueue(&channel, &stream).unwrap();
        }
        stream.synchronize().unwrap();
        assert!(gather.output().unwrap() == gather.expected(1));
        member.meet();
        assert!(pool.abandon().unwrap().kept > 0);
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}

/// Whether the driver says of addresses which it has freed that it has not.
static LIES: AtomicBool = AtomicBool::new(false);
type AddressFree = unsafe extern "C" fn(CUdeviceptr, usize) -> CUresult;
static ADDRESS_FREE: OnceLock<AddressFree> = OnceLock::new();

unsafe extern "C" fn address_free(address: CUdeviceptr, bytes: usize) -> CUresult {
    let inner = ADDRESS_FREE.get().expect("set before the driver is made");
    // SAFETY: as the caller's.
    let code = unsafe { inner(address, bytes) };
    match LIES.load(Ordering::Relaxed) {
        true => CUresult::CUDA_ERROR_UNKNOWN,
        false => code,
    }
}

#[test]
fn what_an_abandonment_that_failed_has_unmapped_is_neither_read_nor_counted_nor_given_out() {
    let (machine, _) = machine(2);
    let mut api = machine.api().unwrap();
    let inner = api.cuMemAddressFree.expect("the emulator's");
    ADDRESS_FREE.get_or_init(|| inner);
    api.cuMemAddressFree = Some(address_free);
    let driver = Driver::from_api(api).unwrap();
    on_ranks(&driver, 2, |member| {
        let (pool, _) = member.channel(&contract(), "decode").unwrap();
        let before = pool.status().unwrap().mapped;
        member.meet();
        LIES.store(true, Ordering::Relaxed);
        let error = pool.abandon().unwrap_err().to_string();
        assert!(error.contains("cuMemAddressFree failed"), "{error}");
        let status = pool.status().unwrap();
        let why = status.unanswered.unwrap();
        let words = "the device is not asked: can only be closed, since its abandonment failed";
        assert!(why.starts_with(words), "{why}");
        assert_eq!((before.local, status.mapped.local), (2 << 20, 0));
        assert_eq!(status.mapped.total(), before.total() - before.local);
        let refused = pool.ranges().unwrap_err().to_string();
        let words = "Pool::ranges refused: the pool's memory is given back in part";
        assert!(refused.starts_with(words), "{refused}");
        member.meet();
        LIES.store(false, Ordering::Relaxed);
        member.meet();
        pool.abandon().unwrap();
        let gone = pool.ranges().unwrap_err();
        assert!(matches!(gone, Error::Closed { .. }), "{gone}");
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}
