//! Saying that something could not be tested where the tests run.

use std::io::{self, Write};
use std::panic::Location;

use rustix::thread::{CapabilitySet, capabilities};

/// Says why something was not tested: past the test harness, which shows what a test prints only when it fails.
#[track_caller]
pub fn untested(why: &str) {
    let place = Location::caller();
    // Nobody is told where there is no standard error.
    let _ = writeln!(io::stderr().lock(), "NOTHING WAS TESTED: {why} ({place})");
}

/// Whether this process may make namespaces: as root, unless a sandbox took the right away.
///
/// # Panics
///
/// When the kernel does not tell.
pub fn may_make_namespaces() -> bool {
    let sets = capabilities(None).expect("this thread's rights");
    sets.effective.contains(CapabilitySet::SYS_ADMIN)
}
