//! Every driver call and every exchange of a close failed: every rank can close after it, and nothing is left.

use slabfence_tests::exhaust::{close, every_call};

fn every_point_of_a_close(world: u32, first_seat: usize) {
    let injected = every_call(
        world,
        first_seat,
        |_| (),
        |seat, (), point| close(seat, point),
    );
    println!("close by {world} ranks: {injected:?}");
}

#[test]
fn what_fails_anywhere_in_a_close_by_2_ranks_leaves_a_pool_that_closes() {
    every_point_of_a_close(2, 0);
}

#[test]
fn what_fails_anywhere_in_a_close_by_3_ranks_leaves_a_pool_that_closes() {
    every_point_of_a_close(3, 2);
}
