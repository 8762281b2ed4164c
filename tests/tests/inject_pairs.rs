//! Two faults in one set-up or close: the second often strikes what the first has the other rank do, or always what it has the
//! same rank do.

use slabfence_tests::exhaust::{Second, close, create, pairs_of_calls, say};

/// The first fault is of every so many-th point, so their number moves with what a rank does: `least` is somewhat less.
fn told(what: &str, pairs: usize, both: usize, least: usize) {
    say(&format!(
        "{what}, 2 ranks: {pairs} pairs, both calls failed in {both}"
    ));
    assert!(pairs >= least && 2 * both > pairs, "{both} of {pairs}");
}

#[test]
fn two_faults_in_a_creation_leave_nothing_that_cannot_be_given_back() {
    let (pairs, both) = pairs_of_calls(
        Second::Other,
        131,
        |_| (),
        |seat, (), point| create(seat, point),
    );
    told("creation", pairs, both, 150);
}

#[test]
fn two_faults_in_a_close_leave_a_pool_that_closes() {
    let (pairs, both) = pairs_of_calls(Second::Other, 3, |_| None, close);
    told("close", pairs, both, 70);
}

#[test]
fn a_fault_in_what_a_rank_does_after_its_own_in_a_creation_leaves_nothing_behind() {
    let (pairs, both) = pairs_of_calls(
        Second::Same,
        131,
        |_| (),
        |seat, (), point| create(seat, point),
    );
    told("creation, the same rank", pairs, both, 100);
}

#[test]
fn a_fault_in_what_a_rank_does_after_its_own_in_a_close_leaves_a_pool_that_closes() {
    let (pairs, both) = pairs_of_calls(Second::Same, 1, |_| None, close);
    told("close, the same rank", pairs, both, 250);
}
