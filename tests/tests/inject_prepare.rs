//! Every driver call and every exchange of a preparation failed: no rank has a channel more, and the next one succeeds. Who
//! lost only the last word of the others can only close.

use slabfence::channel::Pool;
use slabfence_tests::exhaust::{Seat, World, every_call};
use slabfence_tests::injection::{EXCHANGE, Point};

const NAMES: [&str; 2] = ["a", "b"];

fn prepare(seat: &Seat<'_>, pool: &mut Pool, point: Option<Point>) {
    let prepared = seat.step("prepare", || pool.prepare(&NAMES));
    if !seat.settle(point, &prepared) && !seat.settle(point, &pool.prepare(&NAMES)) {
        let last = point.is_some_and(|point| (point.entry, point.nth) == (EXCHANGE, 2));
        assert!(last, "{prepared:?}");
        seat.close(point, pool);
        *pool = seat.member.pool(&seat.contract).expect("a pool");
        pool.prepare(&NAMES).expect("channels");
    }
    seat.operate(pool, "b");
    pool.retire(&NAMES).expect("retired");
}

fn every_point_of_a_preparation(world: World, calls: usize, exchanges: usize) {
    let make = |seat: &Seat<'_>| seat.member.pool(&seat.contract).expect("a pool");
    let injected = every_call(world, make, prepare);
    injected.tell("preparation", world, calls, exchanges);
}

#[test]
fn what_fails_anywhere_in_a_preparation_by_2_ranks_adds_no_channel_and_can_be_repeated() {
    every_point_of_a_preparation(World::pushing(2), 322, 54);
}

#[test]
fn what_fails_anywhere_in_a_preparation_by_3_ranks_adds_no_channel_and_can_be_repeated() {
    every_point_of_a_preparation(World::pushing(3), 543, 81);
}

#[test]
fn what_fails_anywhere_in_a_preparation_by_2_ranks_that_pull_adds_no_channel_and_can_be_repeated() {
    every_point_of_a_preparation(World::pulling(2), 306, 54);
}
