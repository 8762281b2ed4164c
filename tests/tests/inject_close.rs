//! Every driver call and every exchange of a close failed: every rank can close after it, and nothing is left. So it is where
//! graphs have only just been destroyed.

use slabfence_tests::exhaust::{World, close, close_after_a_graph, every_call};

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
fn what_fails_anywhere_in_a_close_by_2_ranks_that_pull_after_a_graph_leaves_a_pool_that_closes() {
    let world = World::pulling(2);
    let injected = every_call(world, |_| None, close_after_a_graph);
    injected.tell("close after a graph", world, 158, 72);
}
