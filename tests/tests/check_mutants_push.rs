//! Every known bug of pushing kernels is found on a whole machine, and nothing in the shipped ones.

use slabfence_emu::held::Policy;
use slabfence_emu_mutants::Family;
use slabfence_tests::mutants::every_bug_is_found_and_nothing_else;

#[test]
fn every_bug_of_pushing_gathers_is_found_and_nothing_else() {
    every_bug_is_found_and_nothing_else(Policy::Random, Family::GatherPush);
}

#[test]
fn every_bug_of_pushing_reductions_is_found_and_nothing_else() {
    every_bug_is_found_and_nothing_else(Policy::Random, Family::ReducePush);
}
