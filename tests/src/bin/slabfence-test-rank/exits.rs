//! A process that exits while its pool is open and watched.

use std::process::exit;
use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::mm::{MprotectFlags, mprotect};
use slabfence::channel::{Contract, Part as Kind};
use slabfence_tests::ranks::Member;

use super::Outcome;
use super::part::Part;

unsafe extern "C" {
    safe fn atexit(function: extern "C" fn()) -> i32;
}

/// First address of the pool's records.
static PAGE: AtomicUsize = AtomicUsize::new(0);

/// Exits with everything alive. As with a real driver, host memory goes first.
pub fn run(part: &Part, member: &Member) -> Outcome {
    let pool = member.pool(&Contract::new(2 * part.world, 64, 64, 8))?;
    let ranges = pool.ranges()?;
    let header = ranges.iter().find(|range| range.part == Kind::HealthHeader);
    let page = header.ok_or("no header")?.base;
    PAGE.store(page as usize, Ordering::Relaxed);
    if atexit(take_away) != 0 {
        return Err("no atexit".into());
    }
    // Later than the driver was opened.
    let _event = pool.fault_event()?;
    member.group.verdict("all are watched", &Ok(()))?;
    println!("exits");
    exit(0)
}

#[allow(unsafe_code, reason = "mprotect")]
extern "C" fn take_away() {
    let page = with_exposed_provenance_mut(PAGE.load(Ordering::Relaxed));
    // SAFETY: the page of the pool's records, which nobody may touch any more.
    let taken = unsafe { mprotect(page, 4096, MprotectFlags::empty()) };
    if taken.is_err() {
        println!("not taken away");
    }
    // Whoever still looks at it does so now.
    thread::sleep(Duration::from_millis(100));
}
