//! How ranks reach one another before any device memory is shared.

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::time::Instant;

use super::rank::{Rank, list};
use crate::driver::fork;

/// The one thing that a group needs from its host: an ordered, bounded all-gather of small messages.
///
/// An implementation over MPI, a torch store or files is a few lines. Set-up and the other collective host calls use it;
/// no operation on a stream ever does.
pub trait Bootstrap: Send + Sync {
    /// Hands `bytes` to every rank and returns what every rank handed over, in rank order, the own part included.
    ///
    /// The n-th call on one rank meets the n-th call of every other rank. Messages differ in length from rank to rank.
    ///
    /// # Errors
    ///
    /// [`BootstrapError::Timeout`] with the ranks that did not come before `deadline`; a rank that timed out must be able
    /// to call again. [`BootstrapError::Left`] when a rank is known to be gone, [`BootstrapError::Other`] for the rest.
    fn all_gather(&self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, BootstrapError>;

    /// A folder that all ranks share, for the sockets over which processes hand over memory and subgroups meet. Its path may
    /// differ from rank to rank, as it does in containers; at most 75 bytes. Each socket's file has rights 0600 and goes as
    /// soon as the ranks have met.
    ///
    /// Without a folder, sockets have names in the kernel's abstract space, which only processes of one network namespace
    /// share.
    fn folder(&self) -> Option<&Path> {
        None
    }
}

/// An all-gather among the ranks failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BootstrapError {
    /// These ranks did not take part before the deadline.
    Timeout {
        /// In rank order.
        missing: Vec<Rank>,
    },
    /// These ranks have ended and will never take part.
    Left {
        /// In rank order.
        ranks: Vec<Rank>,
    },
    /// The host's own channel failed; its words.
    Other(String),
}

impl fmt::Display for BootstrapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout { missing } => write!(
                f,
                "{} did not take part in time; see what they are doing, or allow the group more time",
                list(missing)
            ),
            Self::Left { ranks } => write!(
                f,
                "{} left the group; end the other ranks or form a new group",
                list(ranks)
            ),
            Self::Other(words) => write!(f, "the bootstrap failed: {words}"),
        }
    }
}

impl Error for BootstrapError {}

/// The error of an exchange in a forked child: locks, threads and connections are the parent's.
pub(super) fn refuse_after_fork() -> Result<(), BootstrapError> {
    fork::refuse().map_err(|error| BootstrapError::Other(error.to_string()))
}
