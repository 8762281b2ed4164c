//! Every driver call of an abandonment by threads failed: the rank's next call gives back what it can, no other rank is
//! concerned, and what those may use is kept. Between processes: `processes_inject`.

use slabfence_tests::exhaust::{World, abandon, every_call};

fn every_point_of_an_abandonment(world: World, calls: usize) {
    let world = World {
        keeps: true,
        ..world
    };
    let injected = every_call(world, |_| None, abandon);
    injected.tell("abandonment", world, calls, 0);
}

#[test]
fn what_fails_anywhere_in_an_abandonment_by_one_of_2_threads_is_given_back_by_its_next() {
    every_point_of_an_abandonment(World::pushing(2), 56);
}

#[test]
fn what_fails_anywhere_in_an_abandonment_by_one_of_3_threads_is_given_back_by_its_next() {
    every_point_of_an_abandonment(World::pushing(3), 84);
}

#[test]
fn what_fails_anywhere_in_an_abandonment_by_one_of_2_threads_that_pull_is_given_back_by_its_next() {
    every_point_of_an_abandonment(World::pulling(2), 56);
}
