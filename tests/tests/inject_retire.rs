//! Every driver call and every exchange of a retirement failed: the next one succeeds where nothing was touched yet, else the
//! pool can only be closed.

use slabfence::channel::Pool;
use slabfence_tests::exhaust::{Seat, World, every_call};
use slabfence_tests::injection::Point;

const NAMES: [&str; 2] = ["a", "b"];

fn make(seat: &Seat<'_>) -> Pool {
    let pool = seat.member.pool(&seat.contract).expect("a pool");
    pool.prepare(&NAMES).expect("channels");
    pool
}

fn retire(seat: &Seat<'_>, pool: &mut Pool, point: Option<Point>) {
    let done = seat.step("retire", || pool.retire(&["a"]));
    if !seat.settle(point, &done) && !seat.settle(point, &pool.retire(&["a"])) {
        // Half-way: whoever does not know how it ended can only close, and the others with it.
        assert!(
            !point.is_some_and(|point| point.is_of_the_drain()),
            "{done:?}"
        );
        seat.close(point, pool);
        *pool = make(seat);
    }
    pool.prepare(&NAMES).expect("channels");
    seat.operate(pool, "a");
    seat.operate(pool, "b");
}

fn every_point_of_a_retirement(world: World, calls: usize, exchanges: usize) {
    let injected = every_call(world, make, retire);
    injected.tell("retirement", world, calls, exchanges);
}

#[test]
fn what_fails_anywhere_in_a_retirement_by_2_ranks_leaves_a_pool_to_use_or_to_close() {
    every_point_of_a_retirement(World::pushing(2), 360, 90);
}

#[test]
fn what_fails_anywhere_in_a_retirement_by_3_ranks_leaves_a_pool_to_use_or_to_close() {
    every_point_of_a_retirement(World::pushing(3), 540, 135);
}

#[test]
fn what_fails_anywhere_in_a_retirement_by_2_ranks_that_pull_leaves_a_pool_to_use_or_to_close() {
    every_point_of_a_retirement(World::pulling(2), 360, 90);
}
