//! What this process uses of the system, before and after.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Threads that have done their work may take so long to be gone, on a busy host.
const PATIENCE: Duration = Duration::from_secs(30);
/// Ranges of the address space that come and go: stacks of threads that have ended are kept for the next ones, and the
/// allocator's areas grow and split.
const RANGES: usize = 24;
/// KiB of addresses that the allocator may reserve meanwhile: two of its areas for threads, of 64 MiB.
const ADDRESSES: u64 = 128 << 10;
/// KiB of memory that may come to be in use meanwhile.
const RESIDENT: u64 = 16 << 10;

/// What a process uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Open descriptors.
    pub descriptors: usize,
    /// Threads.
    pub threads: usize,
    /// Ranges of the address space.
    pub ranges: usize,
    /// KiB of the address space.
    pub addresses: u64,
    /// KiB of memory.
    pub resident: u64,
}

impl Usage {
    /// That of this process.
    ///
    /// # Panics
    ///
    /// Without `/proc`.
    pub fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").expect("/proc");
        let field = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|rest| rest.split_whitespace().next());
            let number = number.and_then(|number| number.parse().ok());
            number.expect("a number")
        };
        let maps = fs::read_to_string("/proc/self/maps").expect("/proc");
        Self {
            descriptors: fs::read_dir("/proc/self/fd").expect("/proc").count(),
            threads: field("Threads:") as usize,
            ranges: maps.lines().count(),
            addresses: field("VmSize:"),
            resident: field("VmRSS:"),
        }
    }

    /// Whether this is no more than `before`, but for what the allocator and the threads' stacks may take.
    pub fn is_within(&self, before: &Self) -> bool {
        self.descriptors <= before.descriptors
            && self.threads <= before.threads
            && self.ranges <= before.ranges + RANGES
            && self.addresses <= before.addresses + ADDRESSES
            && self.resident <= before.resident + RESIDENT
    }

    /// The usage once it is within `before`, or at the end of all patience.
    pub fn settled(before: &Self) -> Self {
        let until = Instant::now() + PATIENCE;
        loop {
            let now = Self::now();
            if now.is_within(before) || Instant::now() > until {
                return now;
            }
            thread::yield_now();
        }
    }
}
