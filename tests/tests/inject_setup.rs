//! Every driver call and every exchange of a pool's creation failed: no rank has a pool, nothing is left, and the next
//! creation on the same group succeeds.

use slabfence_tests::exhaust::{World, create, every_call};

fn every_point_of_a_creation(world: World, calls: usize, exchanges: usize) {
    let injected = every_call(world, |_| (), |seat, (), point| create(seat, point));
    injected.tell("creation", world, calls, exchanges);
}

#[test]
fn what_fails_anywhere_in_a_creation_by_2_ranks_fails_it_and_the_next_one_succeeds() {
    every_point_of_a_creation(World::pushing(2), 1326, 342);
}

#[test]
fn what_fails_anywhere_in_a_creation_by_3_ranks_fails_it_and_the_next_one_succeeds() {
    every_point_of_a_creation(World::pushing(3), 2112, 513);
}

/// Every exchange, and a fifth of the calls: they are those of ranks that push but for outboxes in place of inboxes, with another
/// right, and the kernels. All of them would take as long as the test of 2 ranks that push.
#[test]
fn what_fails_in_a_creation_by_2_ranks_that_pull_fails_it_and_the_next_one_succeeds() {
    let world = World {
        stride: 5,
        ..World::pulling(2)
    };
    every_point_of_a_creation(world, 266, 342);
}
