//! What can go wrong, in words that say what failed, where, and what to do.

use std::fmt;

use slabfence_sys::{LoadError, MissingSymbol};

use crate::channel::Ticket;
use crate::driver::{DriverError, ImageError};
use crate::group::{BootstrapError, Rank, list};
use crate::health::FaultReport;

/// The result of this library's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call of this library failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no usable driver.
    Load(LoadError),
    /// A driver call failed.
    Driver(DriverError),
    /// The driver lacks an entry that the call needs.
    Missing(MissingSymbol),
    /// A kernel image cannot be used on the device.
    Image(ImageError),
    /// The host's exchange between ranks failed.
    Bootstrap(BootstrapError),
    /// A step of a collective host call failed on some ranks, and therefore on all. What then is as it was, and what can
    /// be called next, is said of each call: the first steps change nothing on any rank, and after some of the later ones
    /// the pool can only be closed.
    Setup {
        /// The step that failed.
        phase: &'static str,
        /// Every rank that failed, with its own words.
        failures: Vec<(Rank, String)>,
    },
    /// An argument is wrong.
    Argument {
        /// The call, in the words of this library.
        operation: &'static str,
        /// What is wrong with which argument, and what would be right.
        what: String,
    },
    /// The call is right in itself but not allowed now, or not possible here.
    Refused {
        /// The call, in the words of this library.
        operation: &'static str,
        /// Why, and what to do.
        why: String,
    },
    /// What the call would take away is still held on some ranks. Nothing was changed on any.
    Busy {
        /// The call, in the words of this library.
        operation: &'static str,
        /// Every rank that holds it, with what does.
        holders: Vec<(Rank, String)>,
    },
    /// A creation failed, and what this rank or another had made is not all given back: the ticket does that.
    Retained {
        /// Why the creation failed.
        cause: Box<Error>,
        /// What could not be given back; `None` where a peer may use the memory, since this rank did not learn how the
        /// creation ended.
        left: Option<Box<Error>>,
        /// Gives back what is left.
        ticket: Box<Ticket>,
    },
    /// The object was closed.
    Closed {
        /// What was asked of it.
        what: &'static str,
    },
    /// An operation failed on the device earlier: its channel must be reset.
    Fault(Box<FaultReport>),
    /// Ranks did not come in time.
    Timeout {
        /// The step that was waited in.
        what: String,
        /// Who did not come.
        missing: Vec<Rank>,
    },
    /// This process is a forked child of one that had opened a driver, joined a group or told its state.
    Forked,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => error.fmt(f),
            Self::Driver(error) => error.fmt(f),
            Self::Missing(error) => error.fmt(f),
            Self::Image(error) => error.fmt(f),
            Self::Bootstrap(error) => error.fmt(f),
            Self::Setup { phase, failures } => {
                write!(f, "{phase} failed on ")?;
                by_rank(f, failures)
            }
            Self::Busy { operation, holders } => {
                write!(f, "{operation}: busy on ")?;
                by_rank(f, holders)
            }
            Self::Retained {
                cause,
                left,
                ticket,
            } => {
                write!(f, "{cause}; ")?;
                match left {
                    Some(left) => write!(f, "not all could be given back ({left})")?,
                    None => f.write_str("its memory is kept, since peers may use it")?,
                }
                f.write_str(match ticket.needs_all() {
                    true => ": call Ticket::retry on all ranks",
                    false => {
                        ": call Ticket::retry on each rank that has a ticket; none waits for another"
                    }
                })
            }
            Self::Argument { operation, what } => write!(f, "{operation}: {what}"),
            Self::Refused { operation, why } => write!(f, "{operation} refused: {why}"),
            Self::Closed { what } => {
                write!(f, "{what}: it is closed; make a new one")
            }
            Self::Fault(report) => report.fmt(f),
            Self::Timeout { what, missing } => write!(
                f,
                "{what}: {} did not come in time; look there for a crash or a wait, or raise the group's timeout",
                list(missing)
            ),
            Self::Forked => f.write_str(
                "nothing of slabfence can be used in a forked child of a process that had opened a driver, joined a group or told its state: start processes with exec (in Python: multiprocessing's 'spawn')",
            ),
        }
    }
}

/// The ranks, then each one's words.
fn by_rank(f: &mut fmt::Formatter<'_>, words: &[(Rank, String)]) -> fmt::Result {
    let ranks: Vec<Rank> = words.iter().map(|(rank, _)| *rank).collect();
    f.write_str(&list(&ranks))?;
    for (index, (rank, words)) in words.iter().enumerate() {
        let sign = if index == 0 { ':' } else { ';' };
        write!(f, "{sign} {rank}: {words}")?;
    }
    Ok(())
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Load(error) => Some(error),
            Self::Driver(error) => Some(error),
            Self::Missing(error) => Some(error),
            Self::Image(error) => Some(error),
            Self::Bootstrap(error) => Some(error),
            Self::Retained { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

macro_rules! from {
    ($($source:ty => $variant:ident;)*) => { $(
        impl From<$source> for Error {
            fn from(error: $source) -> Self {
                Self::$variant(error)
            }
        }
    )* };
}

from! {
    LoadError => Load;
    DriverError => Driver;
    MissingSymbol => Missing;
    ImageError => Image;
    BootstrapError => Bootstrap;
}

/// All of it done, or every failure: the one there is, or all of them in words.
pub(crate) fn every(results: impl Iterator<Item = Result<()>>) -> Result<()> {
    let mut failures: Vec<Error> = results.filter_map(Result::err).collect();
    match failures.len() {
        0 => Ok(()),
        1 => Err(failures.remove(0)),
        _ => {
            let words: Vec<String> = failures.iter().map(Error::to_string).collect();
            Err(Error::Refused {
                operation: "giving memory back",
                why: words.join("; "),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_names_every_rank_that_failed_with_its_words() {
        let error = Error::Setup {
            phase: "allocate",
            failures: vec![
                (Rank(1), "out of memory".to_owned()),
                (Rank(3), "no peer".to_owned()),
            ],
        };
        assert_eq!(
            error.to_string(),
            "allocate failed on ranks 1, 3: rank 1: out of memory; rank 3: no peer"
        );
    }

    #[test]
    fn a_timeout_names_who_did_not_come() {
        let error = Error::Timeout {
            what: "prepare".to_owned(),
            missing: vec![Rank(2)],
        };
        let said = error.to_string();
        assert!(
            said.starts_with("prepare: rank 2 did not come in time;"),
            "{said}"
        );
    }
}
