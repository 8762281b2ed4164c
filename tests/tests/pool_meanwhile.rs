//! What a caller must not do during a collective call, done on purpose: an operation is refused; a replay, of which the library
//! does not know, is one that the others lack, and fails.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use slabfence::Error;
use slabfence::channel::{Channel, Contract, Pool};
use slabfence::driver::{CaptureMode, Stream};
use slabfence::health::Health;
use slabfence_tests::graphs::capture;
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, Member, on_ranks};

fn contract(fail: Duration) -> Contract {
    Contract {
        fail,
        ..Contract::new(4, 64, 64, 8)
    }
}

/// Resets on all ranks, rank 1 only when rank 0, whose own call is under way by then, has done `meanwhile`.
fn reset(member: &Member, pool: &Pool, turn: &Barrier, meanwhile: impl FnOnce()) {
    if member.rank() != 0 {
        turn.wait();
        return pool.reset().unwrap();
    }
    thread::scope(|threads| {
        let reset = threads.spawn(|| pool.reset());
        let deadline = Instant::now() + Duration::from_secs(60);
        while !pool.status().unwrap().phase.contains("reset") {
            assert!(Instant::now() < deadline, "no reset is under way");
            thread::yield_now();
        }
        meanwhile();
        turn.wait();
        reset.join().unwrap().unwrap();
    });
}

fn is_right(member: &Member, channel: &Channel, stream: &Stream, gather: &Gather, round: u32) {
    gather.fill(member.rank(), round).unwrap();
    gather.enqueue(channel, stream).unwrap();
    stream.synchronize().unwrap();
    assert!(gather.output().unwrap() == gather.expected(round));
}

#[test]
fn an_operation_during_a_reset_is_refused_and_the_reset_ends_as_ever() {
    let (_machine, driver) = machine(2);
    let turn = Barrier::new(2);
    let contract = contract(Duration::from_secs(20));
    on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract, 2).unwrap();
        is_right(member, &channel, &stream, &gather, 0);
        reset(member, &pool, &turn, || {
            let Err(Error::Refused { why, .. }) = gather.enqueue(&channel, &stream) else {
                panic!("not refused");
            };
            assert_eq!(why, "reset of the pool is under way; wait for it");
        });
        assert_eq!(pool.health().unwrap(), Health::Healthy);
        is_right(member, &channel, &stream, &gather, 1);
        pool.close().unwrap();
    });
}

#[test]
fn a_replay_during_a_reset_fails_at_its_limit_and_the_reset_waits_for_it() {
    let (_machine, driver) = machine(2);
    let turn = Barrier::new(2);
    let contract = contract(Duration::from_millis(500));
    on_ranks(&driver, 2, |member| {
        let pool = member.pool(&contract).unwrap();
        pool.prepare(&["graph"]).unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract, 2).unwrap();
        let graph = capture(&pool, &stream, "graph", |channel| {
            gather.enqueue(channel, &stream).unwrap();
        });
        let mut exec = graph.instantiate().unwrap();
        reset(member, &pool, &turn, || exec.launch(&stream).unwrap());
        if member.rank() == 0 {
            assert!(stream.query().unwrap(), "the reset did not wait");
            let output = gather.output().unwrap();
            assert!(output.iter().all(|&byte| byte == 0xff));
        }
        // What it left is forgotten with everything before the reset.
        assert_eq!(pool.faults().unwrap(), []);
        for round in 0..3 {
            gather.fill(member.rank(), round).unwrap();
            exec.launch(&stream).unwrap();
            stream.synchronize().unwrap();
            assert!(gather.output().unwrap() == gather.expected(round));
        }
        drop((exec, graph));
        pool.close().unwrap();
    });
}

/// Something of the caller's that wants a pool when it goes.
struct Wants(Arc<Pool>);

static GONE: AtomicUsize = AtomicUsize::new(0);

impl Drop for Wants {
    fn drop(&mut self) {
        self.0.close().expect("the pool is closed");
        GONE.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn what_a_graph_held_of_the_callers_goes_when_no_collective_call_is_under_way() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let pool = Arc::new(member.pool(&contract(Duration::from_secs(20))).unwrap());
        let stream = Stream::new(&member.device).unwrap();
        member.meet();
        if member.rank() == 0 {
            stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
            let wants = Wants(Arc::clone(&pool));
            stream.retain_in_capture(Arc::new(wants)).unwrap();
            drop(stream.end_capture().unwrap());
            // The driver has told of it by then, and nobody has looked.
            thread::sleep(Duration::from_millis(200));
        }
        member.meet();
        let (closed, told) = mpsc::channel();
        let closing = thread::spawn(move || closed.send(pool.close()));
        // A destructor that waited for this call, inside it, would do so for ever.
        let closed = told.recv_timeout(Duration::from_secs(60));
        closed.expect("it comes back").unwrap();
        closing.join().unwrap().unwrap();
        member.meet();
    });
    assert_eq!(GONE.load(Ordering::Relaxed), 1);
}
