//! Every driver call and every exchange of a pool's creation failed: no rank has a pool, nothing is left, and the next
//! creation on the same group succeeds.

use slabfence_tests::exhaust::{create, every_call};

fn every_point_of_a_creation(world: u32, first_seat: usize) {
    let injected = every_call(
        world,
        first_seat,
        |_| (),
        |seat, (), point| create(seat, point),
    );
    println!("creation by {world} ranks: {injected:?}");
}

#[test]
fn what_fails_anywhere_in_a_creation_by_2_ranks_fails_it_and_the_next_one_succeeds() {
    every_point_of_a_creation(2, 0);
}

#[test]
fn what_fails_anywhere_in_a_creation_by_3_ranks_fails_it_and_the_next_one_succeeds() {
    every_point_of_a_creation(3, 2);
}
