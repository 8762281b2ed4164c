//! Stream handles that the driver gives out again. A channel that was found by its stream's handle would be a stranger's:
//! one of a scope long left, whose graph may be replayed at any time.

use std::sync::{Barrier, Mutex, PoisonError};

use slabfence::Error;
use slabfence::channel::{Contract, Pool};
use slabfence::driver::{CaptureMode, Stream};
use slabfence::layout::DType;
use slabfence_tests::exchange::Exchange;
use slabfence_tests::graphs::{EpochCounter, capture};
use slabfence_tests::late::{FAIL, on_ranks};
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::Member;
use slabfence_tests::shape::Shape;

const SHAPE: Shape = Shape::gather(DType::Bf16, 3, 1, 16);

fn pool(member: &Member, names: &[&str]) -> Pool {
    let contract = Contract {
        fail: FAIL,
        ..Contract::new(2, 16, 16, 4)
    };
    let pool = member.pool(&contract).unwrap();
    pool.prepare(names).unwrap();
    pool
}

/// Destroys a stream and makes the next one, which has its handle.
///
/// One rank at a time, between two barriers: no other stream may be made meanwhile.
fn recycle(member: &Member, stream: Stream, turn: &(Barrier, Mutex<()>)) -> Stream {
    turn.0.wait();
    let one = turn.1.lock().unwrap_or_else(PoisonError::into_inner);
    let (handle, id) = (stream.raw(), stream.id().unwrap());
    drop(stream);
    let next = Stream::new(&member.device).unwrap();
    assert_eq!(next.raw(), handle, "the driver gave another handle");
    assert_ne!(next.id().unwrap(), id);
    drop(one);
    turn.0.wait();
    next
}

fn turn() -> (Barrier, Mutex<()>) {
    (Barrier::new(2), Mutex::new(()))
}

fn right(exchange: &Exchange, stream: &Stream, operation: u32) {
    stream.synchronize().unwrap();
    exchange.check(operation, &exchange.read().unwrap());
}

#[test]
fn a_second_capture_on_a_recycled_handle_uses_the_channel_of_its_own_scope() {
    let (machine, driver) = machine(2);
    let turn = turn();
    on_ranks(&driver, 2, |member| {
        let pool = pool(member, &["first", "second"]);
        let exchange = Exchange::new(member, SHAPE).unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let into = |name: &str, stream: &Stream| {
            // Whatever channel the call names, the scope's is used.
            capture(&pool, stream, name, |_| {
                let channel = pool.channel("first").unwrap();
                exchange.enqueue(&channel, stream).unwrap();
            })
        };
        let first = into("first", &stream);
        // The two epochs tell which channel an operation used.
        let watcher = Stream::new(&member.device).unwrap();
        let counters = [&first, &into("second", &watcher)].map(|g| EpochCounter::of(g, &watcher));
        // Rank 1 keeps its stream: on it nothing could be found by an old handle, so the ranks would part.
        let recycled = match member.rank() {
            0 => recycle(member, stream, &turn),
            _ => {
                turn.0.wait();
                turn.0.wait();
                stream
            }
        };
        let second = into("second", &recycled);
        let mut execs = [&first, &second].map(|graph| graph.instantiate().unwrap());
        for (operation, which) in [1, 0, 0, 1, 1, 0, 1].into_iter().enumerate() {
            let before = counters.each_ref().map(EpochCounter::read);
            exchange.supply(operation as u32).unwrap();
            execs[which].launch(&recycled).unwrap();
            right(&exchange, &recycled, operation as u32);
            let mut after = before;
            after[which] += 1;
            assert_eq!(counters.each_ref().map(EpochCounter::read), after);
        }
        drop((execs, first, second));
        pool.close().unwrap();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn an_eager_operation_on_a_recycled_handle_goes_to_the_channel_that_it_names() {
    let (machine, driver) = machine(2);
    let turn = turn();
    on_ranks(&driver, 2, |member| {
        let pool = pool(member, &["eager", "graph"]);
        let exchange = Exchange::new(member, SHAPE).unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let graph = capture(&pool, &stream, "graph", |channel| {
            exchange.enqueue(channel, &stream).unwrap();
        });
        let captured = EpochCounter::of(&graph, &stream);
        let recycled = recycle(member, stream, &turn);
        for operation in 0..3 {
            exchange.supply(operation).unwrap();
            let eager = pool.channel("eager").unwrap();
            exchange.enqueue(&eager, &recycled).unwrap();
            right(&exchange, &recycled, operation);
        }
        assert_eq!(captured.read(), 2, "the graph's channel was used");
        drop(graph);
        pool.close().unwrap();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn a_recycled_handle_neither_inherits_a_scope_nor_captures_without_one() {
    let (machine, driver) = machine(2);
    let turn = turn();
    on_ranks(&driver, 2, |member| {
        let pool = pool(member, &["a"]);
        let before = machine.executed();
        let channel = pool.channel("a").unwrap();
        let exchange = Exchange::new(member, SHAPE).unwrap();
        let refused = |stream: &Stream| match exchange.enqueue(&channel, stream) {
            Err(Error::Refused { why, .. }) => why,
            other => panic!("not refused: {other:?}"),
        };
        let stream = Stream::new(&member.device).unwrap();
        let scope = pool.capture("a", &stream).unwrap();
        let recycled = recycle(member, stream, &turn);
        let why = refused(&recycled);
        assert!(why.contains("belongs to another stream"), "{why}");
        scope.finish().unwrap();
        recycled.begin_capture(CaptureMode::ThreadLocal).unwrap();
        let why = refused(&recycled);
        assert!(why.contains("captures outside a capture scope"), "{why}");
        assert_eq!(recycled.end_capture().unwrap().nodes().unwrap(), []);
        assert_eq!(machine.executed(), before);
        pool.close().unwrap();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}
