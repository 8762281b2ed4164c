//! Every driver call and every exchange of a rollback failed: the next one succeeds where nothing was touched yet, else the pool
//! can only be closed. The checkpoint itself makes none. Where a graph of a channel that is kept is there all the time, it is
//! replayed after it.

use slabfence::channel::{Checkpoint, Pool};
use slabfence_tests::exhaust::{Captured, Seat, World, every_call};
use slabfence_tests::injection::Point;

/// A pool with a channel, a checkpoint of it, and a graph if one is wanted. It is let go of before the pool is closed.
type Kept = (Pool, Checkpoint, Option<Captured>);

fn make(seat: &Seat<'_>, with_graph: bool) -> Kept {
    let pool = seat.member.pool(&seat.contract).expect("a pool");
    pool.prepare(&["kept"]).expect("a channel");
    let checkpoint = seat.step("checkpoint", || pool.checkpoint());
    let graph = with_graph.then(|| Captured::new(seat, &pool, "kept"));
    (pool, checkpoint.expect("a checkpoint"), graph)
}

fn roll_back(seat: &Seat<'_>, state: &mut Kept, point: Option<Point>) {
    let (pool, checkpoint, graph) = &mut *state;
    pool.prepare(&["trial"]).expect("a channel");
    if graph.is_some() {
        // The trial's are destroyed before.
        drop(Captured::new(seat, pool, "trial"));
    }
    let done = seat.step("rollback", || pool.rollback(checkpoint));
    if !seat.settle(point, &done) && !seat.settle(point, &pool.rollback(checkpoint)) {
        // Half-way: whoever does not know how it ended can only close, and the others with it.
        assert!(
            !point.is_some_and(|point| point.is_of_the_drain()),
            "{done:?}"
        );
        let graph = graph.take().map(Captured::destroy);
        seat.close(point, pool);
        *state = make(seat, graph.is_some());
    }
    let (pool, _, graph) = state;
    let gone = pool.channel("trial");
    assert!(gone.is_err(), "the trial's channel is still there");
    pool.prepare(&["trial"]).expect("a channel");
    seat.operate(pool, "trial");
    seat.operate(pool, "kept");
    if let Some(graph) = graph {
        graph.replay(seat, 2);
    }
}

fn every_point_of_a_rollback(world: World, with_graph: bool, calls: usize, exchanges: usize) {
    let injected = every_call(world, |seat| make(seat, with_graph), roll_back);
    injected.tell("rollback", world, calls, exchanges);
}

#[test]
fn what_fails_anywhere_in_a_rollback_by_2_ranks_with_a_graph_leaves_a_pool_to_use_or_to_close() {
    every_point_of_a_rollback(World::pushing(2), true, 360, 90);
}

#[test]
fn what_fails_anywhere_in_a_rollback_by_3_ranks_leaves_a_pool_to_use_or_to_close() {
    every_point_of_a_rollback(World::pushing(3), false, 540, 135);
}

#[test]
fn what_fails_anywhere_in_a_rollback_by_2_ranks_that_pull_leaves_a_pool_to_use_or_to_close() {
    every_point_of_a_rollback(World::pulling(2), false, 360, 90);
}
