//! Every driver call and every exchange of a rollback failed: the next one succeeds where nothing was touched yet, else the pool
//! can only be closed. The checkpoint itself makes none.

use slabfence::channel::{Checkpoint, Pool};
use slabfence_tests::exhaust::{Seat, World, every_call};
use slabfence_tests::injection::Point;

/// A pool with a channel, and a checkpoint of it.
fn make(seat: &Seat<'_>) -> (Pool, Checkpoint) {
    let pool = seat.member.pool(&seat.contract).expect("a pool");
    pool.prepare(&["kept"]).expect("a channel");
    let checkpoint = seat.step("checkpoint", || pool.checkpoint());
    (pool, checkpoint.expect("a checkpoint"))
}

fn roll_back(seat: &Seat<'_>, state: &mut (Pool, Checkpoint), point: Option<Point>) {
    let (pool, checkpoint) = &*state;
    pool.prepare(&["trial"]).expect("a channel");
    let done = seat.step("rollback", || pool.rollback(checkpoint));
    if !seat.settle(point, &done) && !seat.settle(point, &pool.rollback(checkpoint)) {
        // Half-way: whoever does not know how it ended can only close, and the others with it.
        assert!(
            !point.is_some_and(|point| point.is_of_the_drain()),
            "{done:?}"
        );
        seat.close(point, pool);
        *state = make(seat);
    }
    let (pool, _) = &*state;
    let gone = pool.channel("trial");
    assert!(gone.is_err(), "the trial's channel is still there");
    pool.prepare(&["trial"]).expect("a channel");
    seat.operate(pool, "trial");
    seat.operate(pool, "kept");
}

fn every_point_of_a_rollback(world: World, calls: usize, exchanges: usize) {
    let injected = every_call(world, make, roll_back);
    injected.tell("rollback", world, calls, exchanges);
}

#[test]
fn what_fails_anywhere_in_a_rollback_by_2_ranks_leaves_a_pool_to_use_or_to_close() {
    every_point_of_a_rollback(World::pushing(2), 360, 90);
}

#[test]
fn what_fails_anywhere_in_a_rollback_by_3_ranks_leaves_a_pool_to_use_or_to_close() {
    every_point_of_a_rollback(World::pushing(3), 540, 135);
}

#[test]
fn what_fails_anywhere_in_a_rollback_by_2_ranks_that_pull_leaves_a_pool_to_use_or_to_close() {
    every_point_of_a_rollback(World::pulling(2), 360, 90);
}
