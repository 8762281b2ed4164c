//! A serving engine's boot on this machine's real driver, by ranks that are threads. Without a GPU these tests say so and
//! end. The program needs no file beside it: it can be built here and run on a machine that has no Rust.

use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use slabfence::driver::{Device, Driver};
use slabfence::group::{Bootstrap, ThreadBootstrap};
use slabfence::layout::Transport;
use slabfence_tests::boot::Boot;
use slabfence_tests::ranks::on_members;
use slabfence_tests::untested::untested;

/// How long ranks wait for one another in collective host calls.
const PATIENCE: Duration = Duration::from_secs(120);
const STEPS: u32 = 200;

/// One boot at a time: each expects the devices for itself.
static TURN: Mutex<()> = Mutex::new(());

/// The driver, if its devices reach each other.
fn hardware() -> Result<(MutexGuard<'static, ()>, Driver, u32), String> {
    // A boot that failed says nothing about the next.
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    more_queues();
    let driver = Driver::open().map_err(|error| error.to_string())?;
    let devices = driver.devices().map_err(|error| error.to_string())?.len() as u32;
    for at in 0..devices {
        let device = Device::open(&driver, at).map_err(|error| error.to_string())?;
        for peer in (0..devices).filter(|&peer| peer != at) {
            match device.is_accessible_from(peer) {
                Ok(true) => {}
                Ok(false) => return Err(format!("device {peer} does not reach device {at}")),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
    match devices {
        0 => Err("the driver has no device".to_owned()),
        _ => Ok((turn, driver, devices)),
    }
}

/// Ranks that share a device have more streams there than the driver's eight queues. Streams of one queue wait for each
/// other, which ranks that wait for each other must not.
#[allow(
    unsafe_code,
    reason = "the call is unsafe beside readers of the environment"
)]
fn more_queues() {
    static ONCE: Once = Once::new();
    // SAFETY: every test begins here, before it loads the driver: nothing else reads the environment.
    ONCE.call_once(|| unsafe { std::env::set_var("CUDA_DEVICE_MAX_CONNECTIONS", "32") });
}

/// Boots with so many ranks, on at least so many devices.
fn boots(world: u32, least: u32, transport: Transport) {
    let (_turn, driver, devices) = match hardware() {
        Ok(hardware) if hardware.2 >= least => hardware,
        Ok((_, _, devices)) => {
            return untested(&format!("{devices} devices, not {least}"));
        }
        Err(why) => return untested(&why),
    };
    let members = ThreadBootstrap::world(world).into_iter();
    let members = members.map(|member| Arc::new(member) as Arc<dyn Bootstrap>);
    let boot = Boot {
        transport,
        oversubscribe: devices < world,
        steps: STEPS,
    };
    on_members(&driver, members.collect(), PATIENCE, |member| {
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
