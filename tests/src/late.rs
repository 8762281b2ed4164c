//! Ranks that are late, and ranks that can wait for them.

use core::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use slabfence::driver::{Driver, Stream};
use slabfence::group::{Bootstrap, ThreadBootstrap};

use crate::ranks::{self, Member};

/// How long a wait inside an operation may last: a bug that would hang then fails with a report, while a loaded host does
/// not.
pub const FAIL: Duration = Duration::from_secs(60);

/// How long ranks wait for one another in collective host calls. A rank that panics ends the others' wait at once.
const PATIENCE: Duration = Duration::from_secs(120);

/// [`ranks::on_ranks`] for ranks of which some have much to compute before they meet the others.
///
/// # Panics
///
/// When a rank panics or cannot be set up: these are tests.
pub fn on_ranks<T: Send>(
    driver: &Driver,
    world: u32,
    body: impl Fn(&Member) -> T + Sync,
) -> Vec<T> {
    let members = ThreadBootstrap::world(world).into_iter();
    let members = members.map(|member| Arc::new(member) as Arc<dyn Bootstrap>);
    ranks::on_members(driver, members.collect(), PATIENCE, body)
}

/// Enqueues a host function that holds `stream` up for `time`.
///
/// # Panics
///
/// When the driver refuses: these are tests.
pub fn hold(stream: &Stream, time: Duration) {
    let micros = core::ptr::without_provenance_mut(time.as_micros() as usize);
    let device = stream.device();
    let _guard = device.bind().expect("the device's context");
    let api = device.driver().api();
    let enqueue = api.cuLaunchHostFunc().expect("host functions");
    // SAFETY: the stream is live; the function uses its argument as a number only.
    let code = unsafe { enqueue(stream.raw(), Some(sleep), micros) };
    assert!(code.is_success(), "cuLaunchHostFunc: {code:?}");
}

unsafe extern "C" fn sleep(micros: *mut c_void) {
    std::thread::sleep(Duration::from_micros(micros.addr() as u64));
}
