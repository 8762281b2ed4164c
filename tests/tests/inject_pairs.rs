//! Two faults in one set-up or close, on two ranks: often the second strikes what the first has the other rank do.

use slabfence_tests::exhaust::{close, create, pairs_of_calls};

#[test]
fn two_faults_in_a_creation_leave_nothing_that_cannot_be_given_back() {
    let (pairs, both) = pairs_of_calls(0, 131, |_| (), |seat, (), point| create(seat, point));
    println!("creation by 2 ranks: {pairs} pairs, both calls failed in {both}");
    assert!(pairs > 50 && 2 * both > pairs, "{both} of {pairs}");
}

#[test]
fn two_faults_in_a_close_leave_a_pool_that_closes() {
    let (pairs, both) = pairs_of_calls(2, 3, |_| None, close);
    println!("close by 2 ranks: {pairs} pairs, both calls failed in {both}");
    assert!(pairs > 50 && 2 * both > pairs, "{both} of {pairs}");
}
