//! A serving engine's boot by four ranks that are threads, on emulated machines.

use slabfence::layout::Transport;
use slabfence_emu::Live;
use slabfence_tests::boot::Boot;
use slabfence_tests::late::on_ranks;
use slabfence_tests::probe::machine;

/// Boots on a machine of so many devices, and finds nothing left.
fn boots(devices: u32, transport: Transport) {
    let (machine, driver) = machine(devices);
    let boot = Boot {
        transport,
        oversubscribe: devices < 4,
        steps: 24,
    };
    on_ranks(&driver, 4, |member| {
        boot.run(member.of(member.group.clone())).unwrap();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn a_target_that_pushes_and_a_draft_that_pulls_boot_serve_and_shut_down_on_four_devices() {
    boots(4, Transport::Push);
}

#[test]
fn a_target_that_pulls_and_a_draft_that_pushes_boot_serve_and_shut_down_on_two_devices() {
    boots(2, Transport::Pull);
}
