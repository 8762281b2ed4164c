//! A process that exits while its pool is open and watched, or asked for its state.

use std::path::Path;
use std::process::{self, exit};
use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::mm::{MprotectFlags, mprotect};
use slabfence::channel::{Contract, Part as Kind};
use slabfence::status::{self, StatusServer};
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
    if atexit(take_away) != 0 {
        return Err("no atexit".into());
    }
    // Later than the driver was opened.
    let pool = member.pool(&Contract::new(2 * part.world, 64, 64, 8))?;
    let ranges = pool.ranges()?;
    let header = ranges.iter().find(|range| range.part == Kind::HealthHeader);
    let page = header.ok_or("no header")?.base;
    PAGE.store(page as usize, Ordering::Relaxed);
    let _server = match part.name.as_str() {
        "exits-asked" => Some(asked(&part.folder)?),
        _ => {
            pool.fault_event()?;
            None
        }
    };
    member.group.verdict("all are watched", &Ok(()))?;
    println!("exits");
    exit(0)
}

/// Begins to tell the state, and to ask for it without end.
fn asked(folder: &str) -> slabfence::Result<StatusServer> {
    let folder = Path::new(folder).to_owned();
    let server = status::serve(&folder)?;
    let (answer, answered) = mpsc::channel();
    thread::spawn(move || {
        loop {
            let document = status::read(&folder, process::id());
            // Nobody listens any more after the first.
            let _ = answer.send(document);
        }
    });
    let first = answered.recv();
    assert!(matches!(first, Ok(Ok(Some(document))) if !document.pools.is_empty()));
    Ok(server)
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
