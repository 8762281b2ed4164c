//! Waits, faults, overlaps and resets on this machine's real driver, by ranks that are threads: on a device each, or on one that
//! they share. Without a GPU these tests say so and end. The program needs no file beside it: it can be built here and run on a
//! machine that has no Rust.

use std::time::Duration;

use slabfence::driver::Driver;
use slabfence::layout::Transport;
use slabfence_tests::faults;
use slabfence_tests::hardware::{Hardware, ends_within};
use slabfence_tests::untested::untested;

/// Of the whole program.
const LIMIT: Duration = Duration::from_secs(60);

/// A scenario by both transports, on all devices.
fn both(scenario: impl Fn(&Driver, Transport)) {
    ends_within(LIMIT);
    let hardware = match Hardware::open() {
        Ok(hardware) => hardware,
        Err(why) => return untested(&why),
    };
    for transport in [Transport::Push, Transport::Pull] {
        scenario(&hardware.driver, transport);
    }
    println!(
        "passed on {} device(s), by push and by pull",
        hardware.devices
    );
}

#[test]
fn a_late_rank_is_warned_of_and_waited_for_while_its_record_can_be_read() {
    both(faults::a_late_rank_is_warned_of);
}

#[test]
fn a_rank_that_stays_away_fails_the_operation_and_a_reset_revives_all_graphs() {
    both(faults::a_rank_that_stays_away_fails_the_operation);
}

#[test]
fn a_reset_beside_an_operation_that_waits_fails_by_name() {
    let timeout = Duration::from_secs(5);
    both(|driver, transport| {
        faults::a_reset_beside_a_wait_fails_by_name(driver, transport, timeout);
    });
}

#[test]
fn operations_and_replays_that_overlap_end_and_are_reported() {
    both(faults::overlaps_are_reported);
}

#[test]
fn one_ranks_failure_ends_the_waits_of_the_others_which_name_it() {
    both(faults::a_failure_ends_the_waits_of_the_others);
}

#[test]
fn different_operations_at_the_same_epoch_are_diagnosed() {
    both(faults::different_operations_are_diagnosed);
}

#[test]
fn operations_that_queue_up_behind_one_that_waits_in_vain_end_with_it() {
    // More than a stream's queue holds.
    both(|driver, transport| {
        faults::a_queue_behind_a_wait_ends_with_it(driver, transport, 3000);
    });
}

#[test]
fn epochs_pass_the_limits_of_32_bits() {
    both(faults::epochs_pass_the_limits_of_32_bits);
}
