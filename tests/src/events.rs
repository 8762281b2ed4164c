//! What a host does with the event of a pool's faults.

use std::fs;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::late::FAIL;

/// Waits for `limit` at most, and tells whether the event is readable.
///
/// # Panics
///
/// When it cannot be waited for: these are tests.
pub fn is_readable(event: impl AsFd, limit: Duration) -> bool {
    let limit = Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: limit.subsec_nanos().into(),
    };
    let mut events = [PollFd::new(&event, PollFlags::IN)];
    poll(&mut events, Some(&limit)).expect("a descriptor") == 1
}

/// Waits until the event is readable, and gives its count.
///
/// # Panics
///
/// When it is not in the time that no wait may take.
pub fn count(event: impl AsFd) -> u64 {
    assert!(is_readable(&event, FAIL), "no event");
    let mut bytes = [0; 8];
    let read = rustix::io::read(event, &mut bytes);
    assert_eq!(read, Ok(8));
    u64::from_ne_bytes(bytes)
}

/// How many threads of this process watch pools.
///
/// # Panics
///
/// When the list of threads cannot be read.
pub fn watchers() -> usize {
    let all = fs::read_dir("/proc/self/task").expect("the list of threads");
    let names = all.filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("comm")).ok());
    names
        .filter(|name| name.trim() == "slabfence-watch")
        .count()
}

/// How many events this process has open.
///
/// # Panics
///
/// When the list of descriptors cannot be read.
pub fn open_events() -> usize {
    let all = fs::read_dir("/proc/self/fd").expect("the list of descriptors");
    let links = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links
        .filter(|to| to.to_string_lossy().contains("[eventfd]"))
        .count()
}
