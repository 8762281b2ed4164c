//! Standing still where the scenario wants it.

use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

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

/// A bootstrap on which a rank stands still, until it is killed, after a number of exchanges.
pub struct Standing {
    pub inner: Arc<dyn Bootstrap>,
    pub left: AtomicU32,
}

impl Bootstrap for Standing {
    fn all_gather(&self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, BootstrapError> {
        let parts = self.inner.all_gather(bytes, deadline)?;
        match self.left.fetch_sub(1, Ordering::Relaxed) {
            1 => until_killed(),
            _ => Ok(parts),
        }
    }
}
