//! Every driver call and every exchange of a close failed: every rank can close after it, and nothing is left.

use slabfence_tests::exhaust::{World, close, every_call};

fn every_point_of_a_close(world: World, calls: usize, exchanges: usize) {
    let injected = every_call(world, |_| None, close);
    injected.tell("close", world, calls, exchanges);
}

#[test]
fn what_fails_anywhere_in_a_close_by_2_ranks_leaves_a_pool_that_closes() {
    every_point_of_a_close(World::pushing(2), 158, 72);
}

#[test]
fn what_fails_anywhere_in_a_close_by_3_ranks_leaves_a_pool_that_closes() {
    every_point_of_a_close(World::pushing(3), 237, 108);
}

#[test]
fn what_fails_anywhere_in_a_close_by_2_ranks_that_pull_leaves_a_pool_that_closes() {
    every_point_of_a_close(World::pulling(2), 158, 72);
}
