//! A serving engine's boot by ranks that are threads, on emulated machines.

use slabfence::layout::Transport;
use slabfence_emu::Live;
use slabfence_tests::boot::Boot;
use slabfence_tests::late::on_ranks;
use slabfence_tests::probe::machine;

/// Boots with so many ranks on a machine of so many devices, and finds nothing left.
fn boots(world: u32, devices: u32, transport: Transport) {
    let (machine, driver) = machine(devices);
    let boot = Boot {
        transport,
        oversubscribe: devices < world,
        steps: 20,
    };
    on_ranks(&driver, world, |member| {
        boot.run(member.of(member.group.clone())).unwrap();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn four_ranks_whose_target_pushes_and_whose_draft_pulls_boot_serve_and_shut_down() {
    boots(4, 4, Transport::Push);
}

#[test]
fn four_ranks_whose_target_pulls_and_whose_draft_pushes_share_two_devices() {
    boots(4, 2, Transport::Pull);
}

#[test]
fn two_ranks_boot_serve_and_shut_down() {
    boots(2, 2, Transport::Push);
}

#[test]
fn eight_ranks_share_two_devices() {
    boots(8, 2, Transport::Pull);
}
