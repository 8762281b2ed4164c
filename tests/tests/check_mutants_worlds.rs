//! Some of the known bugs are found on whole machines of more ranks too, where reductions are unrolled for four sources and for
//! sixteen.

use slabfence_emu_mutants::Family;
use slabfence_tests::mutants::these_bugs_are_found;

#[test]
fn bugs_of_kernels_for_three_ranks_are_found() {
    const BUGS: [&str; 6] = [
        "flag-of-one-peer",
        "flag-low-half",
        "row-in-next-range",
        "data-cached",
        "slot-frozen",
        "poison-unseen-for-entries",
    ];
    for family in Family::ALL {
        these_bugs_are_found(&BUGS, family, 3);
    }
}

#[test]
fn bugs_of_kernels_for_eight_ranks_are_found() {
    const BUGS: [&str; 2] = ["row-in-next-range", "data-cached"];
    for family in Family::ALL {
        these_bugs_are_found(&BUGS, family, 8);
    }
}
