//! Standing still where the scenario wants it.

use std::io::{self, BufRead};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getgid, getrlimit, getuid, setrlimit};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use slabfence::group::{Bootstrap, BootstrapError};
use slabfence_tests::processes::READY;

/// Stands still until killed.
pub fn until_killed() -> ! {
    println!("{READY}");
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

/// Stands still until the test says to go on.
pub fn until_told() -> io::Result<()> {
    println!("{READY}");
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    match line.is_empty() {
        true => Err(io::Error::other("the test has gone")),
        false => Ok(()),
    }
}

/// From here on this process can open so many files more.
pub fn with_few_files(more: usize) -> io::Result<()> {
    let open = |number: &u64| std::fs::read_link(format!("/proc/self/fd/{number}")).is_ok();
    let limit = Rlimit {
        current: (0..).filter(|number| !open(number)).nth(more),
        maximum: getrlimit(Resource::Nofile).maximum,
    };
    Ok(setrlimit(Resource::Nofile, limit)?)
}

/// Undoes [`with_few_files`].
pub fn with_all_files() -> io::Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: maximum,
        maximum,
    };
    Ok(setrlimit(Resource::Nofile, limit)?)
}

/// Leaves the network namespace of the test for one in which nobody else is, as a container's; who has no right to it, in a
/// user namespace of its own in which it is the same user. `false`: neither is permitted. Called by a process of one thread.
#[allow(unsafe_code, reason = "the call is unsafe for other namespaces")]
pub fn in_a_network_of_its_own() -> io::Result<bool> {
    let before = std::fs::read_link("/proc/self/ns/net")?;
    // SAFETY: what is unsafe is to leave the table of descriptors, which this does not.
    let leave = |what| unsafe { unshare_unsafe(what) };
    match leave(UnshareFlags::NEWNET) {
        Err(Errno::PERM) => {
            let (user, group) = (getuid().as_raw(), getgid().as_raw());
            match leave(UnshareFlags::NEWUSER | UnshareFlags::NEWNET) {
                // A limit of zero is how hosts forbid it; others need a right for it.
                Err(Errno::PERM | Errno::NOSPC | Errno::ACCESS) => return Ok(false),
                other => other?,
            }
            std::fs::write("/proc/self/setgroups", "deny")?;
            std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
            std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
        }
        other => other?,
    }
    match std::fs::read_link("/proc/self/ns/net")? == before {
        true => Err(io::Error::other("the namespace is the same")),
        false => Ok(true),
    }
}

/// A bootstrap on which a rank stands still, until it is killed, after a number of exchanges.
pub struct Standing {
    inner: Arc<dyn Bootstrap>,
    left: Arc<Exchanges>,
}

/// Exchanges after which a rank stands still; none: it does not.
#[derive(Default)]
pub struct Exchanges(AtomicU32);

impl Exchanges {
    /// Stands still after so many from now on, at once after none.
    pub fn until_killed(&self, count: u32) {
        if count == 0 {
            until_killed();
        }
        self.0.store(count, Ordering::Relaxed);
    }
}

impl Standing {
    pub fn before(inner: Arc<dyn Bootstrap>, left: &Arc<Exchanges>) -> Self {
        let left = Arc::clone(left);
        Self { inner, left }
    }
}

impl Bootstrap for Standing {
    fn all_gather(&self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, BootstrapError> {
        let parts = self.inner.all_gather(bytes, deadline)?;
        let less = |left: u32| left.checked_sub(1);
        let left = self
            .left
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        match left {
            Ok(1) => until_killed(),
            _ => Ok(parts),
        }
    }

    fn folder(&self) -> Option<&Path> {
        self.inner.folder()
    }
}
