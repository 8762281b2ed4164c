//! Every driver call and every exchange of a retirement failed: the next one succeeds where nothing was touched yet, else the
//! pool can only be closed. Where a graph of a channel that stays is there all the time, it is replayed after it.

use slabfence::channel::Pool;
use slabfence_tests::exhaust::{Captured, Seat, World, every_call};
use slabfence_tests::injection::Point;

const NAMES: [&str; 2] = ["a", "b"];

/// With a graph, if one is wanted. It is let go of before its pool is closed.
type Held = (Pool, Option<Captured>);

fn make(seat: &Seat<'_>, with_graph: bool) -> Held {
    let pool = seat.member.pool(&seat.contract).expect("a pool");
    pool.prepare(&NAMES).expect("channels");
    let graph = with_graph.then(|| Captured::new(seat, &pool, "b"));
    (pool, graph)
}

fn retire(seat: &Seat<'_>, held: &mut Held, point: Option<Point>) {
    let (pool, graph) = held;
    if graph.is_some() {
        // What has just been destroyed is in nobody's way.
        drop(Captured::new(seat, pool, "a"));
    }
    let done = seat.step("retire", || pool.retire(&["a"]));
    if !seat.settle(point, &done) && !seat.settle(point, &pool.retire(&["a"])) {
        // Half-way: whoever does not know how it ended can only close, and the others with it.
        assert!(
            !point.is_some_and(|point| point.is_of_the_drain()),
            "{done:?}"
        );
        let graph = graph.take().map(Captured::destroy);
        seat.close(point, pool);
        *held = make(seat, graph.is_some());
    }
    let (pool, graph) = held;
    pool.prepare(&NAMES).expect("channels");
    seat.operate(pool, "a");
    seat.operate(pool, "b");
    if let Some(graph) = graph {
        graph.replay(seat, 2);
    }
}

fn every_point_of_a_retirement(world: World, with_graph: bool, calls: usize, exchanges: usize) {
    let injected = every_call(world, |seat| make(seat, with_graph), retire);
    injected.tell("retirement", world, calls, exchanges);
}

#[test]
fn what_fails_anywhere_in_a_retirement_by_2_ranks_with_a_graph_leaves_a_pool_to_use_or_to_close() {
    every_point_of_a_retirement(World::pushing(2), true, 360, 90);
}

#[test]
fn what_fails_anywhere_in_a_retirement_by_3_ranks_leaves_a_pool_to_use_or_to_close() {
    every_point_of_a_retirement(World::pushing(3), false, 540, 135);
}

#[test]
fn what_fails_anywhere_in_a_retirement_by_2_ranks_that_pull_leaves_a_pool_to_use_or_to_close() {
    every_point_of_a_retirement(World::pulling(2), false, 360, 90);
}
