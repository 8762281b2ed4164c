//! A serving engine's boot on this machine's real driver, by ranks that are threads. Without a GPU these tests say so and
//! end. The program needs no file beside it: it can be built here and run on a machine that has no Rust.

use std::sync::Arc;
use std::time::Duration;

use slabfence::group::{Bootstrap, ThreadBootstrap};
use slabfence::layout::Transport;
use slabfence_tests::boot::Boot;
use slabfence_tests::hardware::Hardware;
use slabfence_tests::ranks::on_members;
use slabfence_tests::untested::untested;

/// How long ranks wait for one another in collective host calls.
const PATIENCE: Duration = Duration::from_secs(120);
const STEPS: u32 = 200;

/// Boots with so many ranks, on at least so many devices.
fn boots(world: u32, least: u32, transport: Transport) {
    let hardware = match Hardware::open() {
        Ok(hardware) if hardware.devices >= least => hardware,
        Ok(Hardware { devices, .. }) => {
            return untested(&format!("{devices} devices, not {least}"));
        }
        Err(why) => return untested(&why),
    };
    let devices = hardware.devices;
    let members = ThreadBootstrap::world(world).into_iter();
    let members = members.map(|member| Arc::new(member) as Arc<dyn Bootstrap>);
    let boot = Boot {
        transport,
        oversubscribe: devices < world,
        steps: STEPS,
    };
    on_members(&hardware.driver, members.collect(), PATIENCE, |member| {
        boot.run(member.of(member.group.clone())).unwrap();
    });
    println!("{world} ranks on {devices} devices: {STEPS} steps, every output right");
}

#[test]
fn two_ranks_on_two_devices_whose_target_pushes_boot_serve_and_shut_down() {
    boots(2, 2, Transport::Push);
}

#[test]
fn two_ranks_on_two_devices_whose_target_pulls_boot_serve_and_shut_down() {
    boots(2, 2, Transport::Pull);
}

#[test]
fn four_ranks_that_may_share_devices_boot_serve_and_shut_down() {
    boots(4, 1, Transport::Push);
}

#[test]
fn eight_ranks_that_may_share_devices_boot_serve_and_shut_down() {
    boots(8, 1, Transport::Pull);
}
