//! The scenarios of `faults_hardware` on emulated machines: what a run on hardware does is then known to be what it should.

use std::time::Duration;

use slabfence::driver::Driver;
use slabfence::layout::Transport;
use slabfence_emu::Live;
use slabfence_tests::faults;
use slabfence_tests::probe::machine;

/// A scenario on a machine of so many devices, after which nothing is left.
fn on(devices: u32, transport: Transport, scenario: impl Fn(&Driver, Transport)) {
    let (machine, driver) = machine(devices);
    scenario(&driver, transport);
    assert_eq!(machine.faults(), Vec::<String>::new());
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

// One after the other: it counts driver calls.
#[test]
fn a_late_rank_is_warned_of_and_waited_for_while_its_record_can_be_read() {
    on(1, Transport::Push, faults::a_late_rank_is_warned_of);
    on(2, Transport::Pull, faults::a_late_rank_is_warned_of);
}

#[test]
fn a_rank_that_stays_away_fails_the_operation_and_a_reset_revives_all_graphs() {
    let scenario = faults::a_rank_that_stays_away_fails_the_operation;
    on(1, Transport::Push, scenario);
    on(2, Transport::Pull, scenario);
}

#[test]
fn a_reset_beside_an_operation_that_waits_fails_by_name() {
    let timeout = Duration::from_secs(3);
    on(1, Transport::Pull, |driver, transport| {
        faults::a_reset_beside_a_wait_fails_by_name(driver, transport, timeout);
    });
}

#[test]
fn operations_and_replays_that_overlap_end_and_are_reported() {
    on(1, Transport::Pull, faults::overlaps_are_reported);
    on(2, Transport::Push, faults::overlaps_are_reported);
}

#[test]
fn one_ranks_failure_ends_the_waits_of_the_others_which_name_it() {
    let scenario = faults::a_failure_ends_the_waits_of_the_others;
    on(1, Transport::Push, scenario);
    on(2, Transport::Pull, scenario);
}

#[test]
fn different_operations_at_the_same_epoch_are_diagnosed() {
    let scenario = faults::different_operations_are_diagnosed;
    on(1, Transport::Push, scenario);
    on(2, Transport::Pull, scenario);
}

#[test]
fn operations_that_queue_up_behind_one_that_waits_in_vain_end_with_it() {
    on(1, Transport::Push, |driver, transport| {
        faults::a_queue_behind_a_wait_ends_with_it(driver, transport, 100);
    });
}

#[test]
fn epochs_pass_the_limits_of_32_bits() {
    let scenario = faults::epochs_pass_the_limits_of_32_bits;
    on(1, Transport::Pull, scenario);
    on(2, Transport::Push, scenario);
}
