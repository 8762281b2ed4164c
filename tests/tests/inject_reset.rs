//! Every driver call and every exchange of a reset failed: the pool can only be closed then, on all ranks.

use slabfence::channel::Pool;
use slabfence_tests::exhaust::{Seat, World, every_call};
use slabfence_tests::injection::Point;

const NAMES: [&str; 2] = ["a", "b"];

fn make(seat: &Seat<'_>) -> Pool {
    let pool = seat.member.pool(&seat.contract).expect("a pool");
    pool.prepare(&NAMES).expect("channels");
    pool
}

fn reset(seat: &Seat<'_>, pool: &mut Pool, point: Option<Point>) {
    let done = seat.step("reset", || pool.reset());
    if !seat.settle(point, &done) {
        // Words may be cleared and epochs set on some ranks only: whatever failed, nobody goes on.
        let again = pool.reset();
        assert!(!seat.settle(point, &again), "{done:?}, then {again:?}");
        seat.close(point, pool);
        *pool = make(seat);
    }
    seat.operate(pool, "a");
}

fn every_point_of_a_reset(world: World, calls: usize, exchanges: usize) {
    let injected = every_call(world, make, reset);
    injected.tell("reset", world, calls, exchanges);
}

#[test]
fn what_fails_anywhere_in_a_reset_by_2_ranks_leaves_a_pool_to_close() {
    every_point_of_a_reset(World::pushing(2), 698, 72);
}

#[test]
fn what_fails_anywhere_in_a_reset_by_3_ranks_leaves_a_pool_to_close() {
    every_point_of_a_reset(World::pushing(3), 1047, 108);
}

#[test]
fn what_fails_anywhere_in_a_reset_by_2_ranks_that_pull_leaves_a_pool_to_close() {
    every_point_of_a_reset(World::pulling(2), 698, 72);
}
