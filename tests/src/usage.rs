//! What this process uses of the system, before and after.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Threads that have done their work may take so long to be gone, on a busy host.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long nothing may change before a look counts: a thread that ends takes its stack with it.
const STILL: Duration = Duration::from_millis(100);
/// KiB by which the heap may grow meanwhile: an emulated machine notes the addresses that were given back, 16 bytes each and
/// some sixty a cycle, in a list whose room doubles. A page a cycle is more.
const HEAP: u64 = 3 << 10;

/// What makes the C library keep nothing for later: one area for all threads in place of one a thread, of 64 MiB of addresses
/// each, and no stacks of threads that have ended. It reads this from the environment when a process starts.
pub const KEEPS_NOTHING: (&str, &str) = (
    "GLIBC_TUNABLES",
    "glibc.malloc.arena_max=1:glibc.pthread.stack_cache_size=0",
);

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
    fn now() -> Self {
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

    /// That of this process, once it stays as it is.
    ///
    /// # Panics
    ///
    /// Without `/proc`.
    pub fn still() -> Self {
        let until = Instant::now() + PATIENCE;
        let mut last = Self::now();
        let mut since = Instant::now();
        while since.elapsed() < STILL && Instant::now() < until {
            thread::sleep(STILL / 10);
            let now = Self::now();
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        last
    }

    /// Whether this is what was used `before`, in a process that [keeps nothing](KEEPS_NOTHING): the same descriptors, no more
    /// threads, no more ranges, and of addresses and memory no more than the heap may grow.
    pub fn is_that(&self, before: &Self) -> bool {
        self.descriptors == before.descriptors
            && self.threads <= before.threads
            && self.ranges <= before.ranges
            && self.addresses <= before.addresses + HEAP
            && self.resident <= before.resident + HEAP
    }

    /// The usage once it is that of `before`, or at the end of all patience.
    ///
    /// # Panics
    ///
    /// Without `/proc`.
    pub fn settled(before: &Self) -> Self {
        let until = Instant::now() + PATIENCE;
        loop {
            let now = Self::now();
            if now.is_that(before) || Instant::now() > until {
                return now;
            }
            // The stack of a thread that nobody joined stays until another one ends: it still stood on it when it gave it back.
            let other = thread::spawn(|| ());
            other.join().expect("it does nothing");
        }
    }
}
