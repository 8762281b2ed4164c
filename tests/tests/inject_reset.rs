//! Every driver call and every exchange of a reset failed, of a pool that is well and of one whose operations have failed: the
//! pool can only be closed then, on all ranks. Where a graph of one of its channels is there all the time, it is replayed after it.

use slabfence::channel::Pool;
use slabfence::driver::Stream;
use slabfence_tests::exhaust::{Captured, Seat, World, every_call};
use slabfence_tests::injection::Point;
use slabfence_tests::ranks::Gather;

const NAMES: [&str; 2] = ["a", "b"];

/// With a graph, if one is wanted. It is let go of before its pool is closed.
type Held = (Pool, Option<Captured>);

fn make(seat: &Seat<'_>, with_graph: bool) -> Held {
    let pool = seat.member.pool(&seat.contract).expect("a pool");
    pool.prepare(&NAMES).expect("channels");
    let graph = with_graph.then(|| Captured::new(seat, &pool, "a"));
    (pool, graph)
}

fn reset(seat: &Seat<'_>, held: &mut Held, point: Option<Point>) {
    let (pool, graph) = held;
    let done = seat.step("reset", || pool.reset());
    if !seat.settle(point, &done) {
        // Words may be cleared and epochs set on some ranks only: whatever failed, nobody goes on.
        let again = pool.reset();
        assert!(!seat.settle(point, &again), "{done:?}, then {again:?}");
        let graph = graph.take().map(Captured::destroy);
        seat.close(point, pool);
        *held = make(seat, graph.is_some());
    }
    let (pool, graph) = held;
    assert!(pool.faults().expect("the records").is_empty());
    seat.operate(pool, "a");
    if let Some(graph) = graph {
        graph.replay(seat, 2);
    }
}

/// Has the first rank ask for another operation than the others: it fails at once, on all.
fn differ(seat: &Seat<'_>, pool: &Pool) {
    let member = seat.member;
    let channel = pool.channel("a").expect("a channel");
    let stream = Stream::new(&member.device).expect("a stream");
    let batch = if member.rank() == 0 { 2 } else { 1 };
    let gather = Gather::new(member, &seat.contract, batch).expect("buffers");
    gather.fill(member.rank(), 1).expect("an upload");
    seat.meet("");
    gather.enqueue(&channel, &stream).expect("enqueued");
    stream.synchronize().expect("its end");
    assert!(channel.fault().expect("a record").is_some());
}

fn every_point_of_a_reset(world: World, with_graph: bool, calls: usize, exchanges: usize) {
    let injected = every_call(world, |seat| make(seat, with_graph), reset);
    injected.tell("reset", world, calls, exchanges);
}

#[test]
fn what_fails_anywhere_in_a_reset_by_2_ranks_with_a_graph_leaves_a_pool_to_close() {
    every_point_of_a_reset(World::pushing(2), true, 698, 72);
}

#[test]
fn what_fails_anywhere_in_a_reset_by_3_ranks_leaves_a_pool_to_close() {
    every_point_of_a_reset(World::pushing(3), false, 1047, 108);
}

#[test]
fn what_fails_anywhere_in_a_reset_by_2_ranks_that_pull_leaves_a_pool_to_close() {
    every_point_of_a_reset(World::pulling(2), false, 698, 72);
}

/// Every exchange, and a fifth of the calls, which are those of a pool that is well.
#[test]
fn what_fails_in_a_reset_of_a_pool_that_has_failed_leaves_a_pool_to_close() {
    let world = World {
        stride: 5,
        ..World::pushing(3)
    };
    let differing = |seat: &Seat<'_>, held: &mut Held, point| {
        differ(seat, &held.0);
        reset(seat, held, point);
    };
    let injected = every_call(world, |seat| make(seat, false), differing);
    injected.tell("reset after a failure", world, 210, 108);
}
