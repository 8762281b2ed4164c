//! A bootstrap for ranks that are processes of one machine and one user: a hub in rank 0, reached through a Unix socket.

mod connection;
mod frame;
mod hub;
mod join;
mod line;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::net::Shutdown;

use super::bootstrap::{Bootstrap, BootstrapError, refuse_after_fork};
use super::rank::Rank;
use super::speaker::Speaker;
use crate::driver::fork;
use crate::error::{Error, Result};
use crate::socket::{Place, sweep};
use frame::MAX_PART;
use line::Line;

/// [`Bootstrap`] of ranks that are processes of one machine and one user. Rank 0 is the hub: a thread of it collects the
/// ranks' messages and hands them out, at a socket `slabfence-JOB.sock` (rights 0600) in a folder that all ranks name.
///
/// A rank that ends, in whatever way, wakes those that wait for it at once. The file is removed when rank 0 drops its
/// bootstrap; that of a run that was killed is removed by the next run of the same name. While a job lives, a second one
/// of its name is refused.
pub struct UnixBootstrap {
    me: Rank,
    world: u32,
    line: Mutex<Line>,
    /// Where ranks find one another's sockets.
    folder: Option<PathBuf>,
    /// In rank 0.
    hub: Option<JoinHandle<()>>,
}

impl UnixBootstrap {
    /// Meets the other ranks of `job`, a group of `world` ranks of which this is `rank`, in the folder `dir`. All ranks
    /// call this, in any order; it returns when all have.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] with the ranks that did not come before `deadline`; [`Error::Refused`] for a folder that is not
    /// there, a job of this name that is running, a rank that is there already, another world size or version;
    /// [`Error::Bootstrap`] when a rank came and left; [`Error::Argument`] for a name or number out of range.
    pub fn join(dir: &Path, job: &str, rank: Rank, world: u32, deadline: Instant) -> Result<Self> {
        join::check(job, rank, world)?;
        fork::watch();
        if fork::forked() {
            return Err(Error::Forked);
        }
        if !dir.is_dir() {
            return join::refuse(format!("there is no folder {}", dir.display()));
        }
        // Told now, and not when the ranks have met and first need it.
        let later = Place::of_meeting(Some(dir), 0);
        later.address().or_else(join::refuse)?;
        if rank.0 == 0
            && let Err(why) = sweep(dir, deadline)
        {
            log::warn!("{rank}: {why}");
        }
        let place = Place::of_job(dir, job);
        Self::meet(&place, Some(dir), job, rank, world, deadline)
    }

    /// [`join`](Self::join) at a place, of ranks that share a folder or none.
    pub(super) fn meet(
        place: &Place,
        folder: Option<&Path>,
        job: &str,
        rank: Rank,
        world: u32,
        deadline: Instant,
    ) -> Result<Self> {
        let (line, hub) = match rank.0 {
            0 => {
                let (line, hub) = join::host(place, job, world, deadline)?;
                (line, Some(hub))
            }
            _ => (join::visit(place, job, rank, world, deadline)?, None),
        };
        let joined = Self {
            me: rank,
            world,
            line: Mutex::new(line),
            folder: folder.map(Path::to_owned),
            hub,
        };
        match joined.all_gather(&[], deadline) {
            Ok(_) => Ok(joined),
            Err(BootstrapError::Timeout { missing }) => Err(join::missed(job, missing)),
            Err(error) => Err(error.into()),
        }
    }

    /// This rank.
    pub fn rank(&self) -> Rank {
        self.me
    }

    // What the line holds is changed in one step each, so a panic elsewhere leaves nothing half-made.
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bootstrap for UnixBootstrap {
    fn all_gather(&self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, BootstrapError> {
        refuse_after_fork()?;
        if bytes.len() > MAX_PART {
            return Err(BootstrapError::Other(format!(
                "a message of {} bytes; at most {MAX_PART} are possible",
                bytes.len()
            )));
        }
        self.line().gather(bytes, deadline)
    }

    fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }
}

impl Drop for UnixBootstrap {
    fn drop(&mut self) {
        let hub = self.hub.take();
        if fork::forked() {
            // The thread is the parent's, and so is the connection.
            std::mem::forget(hub);
            return;
        }
        let speaker = Speaker {
            rank: self.me,
            pool: None,
        };
        // Seen by the others even where a forked child still holds the descriptor.
        let closed = rustix::net::shutdown(&self.line().connection.socket, Shutdown::Both);
        if let Err(error) = closed {
            log::debug!("{speaker}: leaving the group: {error}");
        }
        if hub.is_some_and(|hub| hub.join().is_err()) {
            log::error!("{speaker}: the hub's thread panicked");
        }
    }
}

impl fmt::Debug for UnixBootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixBootstrap")
            .field("me", &self.me)
            .field("world", &self.world)
            .finish_non_exhaustive()
    }
}
