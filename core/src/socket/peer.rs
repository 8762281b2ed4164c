//! Who is at the other end of a Unix socket: its user, and the process.

use std::fmt;
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::socket::{UnixCredentials, getsockopt, sockopt};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};

/// The process at the other end of a socket, or, seen from a connection to a listener, the process that listens.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Its number here. A process of a pid namespace that cannot be seen from here has none.
    number: Option<NonZeroU32>,
    life: Life,
}

#[derive(Debug)]
enum Life {
    /// Readable once the process has ended.
    Watched(OwnedFd),
    /// It has ended, and has been waited for.
    Ended,
    /// The kernel cannot tell: then only the socket does, and a forked child may hold that open.
    Unknown,
}

/// Refuses a process at the other end that is neither of this process's user nor of root.
#[cfg(feature = "serde")]
pub(crate) fn refuse_strangers(socket: &OwnedFd) -> Result<(), String> {
    let other = credentials(socket)?;
    match other.uid() {
        0 => Ok(()),
        theirs => refuse_user(theirs, geteuid().as_raw()),
    }
}

/// Refuses a process that listens at the other end and that this one would not answer, but to root, who asks everybody.
#[cfg(feature = "serde")]
pub(crate) fn refuse_foreign(socket: &OwnedFd) -> Result<(), String> {
    match geteuid().is_root() {
        true => Ok(()),
        false => refuse_strangers(socket),
    }
}

fn credentials(socket: &OwnedFd) -> Result<UnixCredentials, String> {
    getsockopt(socket, sockopt::PeerCredentials)
        .map_err(|error| format!("its user cannot be told: {error}"))
}

/// Refuses any other user than this process's.
fn refuse_user(theirs: u32, mine: u32) -> Result<(), String> {
    match theirs == mine {
        true => Ok(()),
        false => Err(format!(
            "it is of user {theirs}, and this process of user {mine}"
        )),
    }
}

impl Peer {
    /// The process at the other end, if it is of this process's user.
    pub(crate) fn of(socket: &OwnedFd) -> Result<Self, String> {
        // Not rustix's: its process numbers are never zero, and the kernel's are, across pid namespaces.
        let other = credentials(socket)?;
        refuse_user(other.uid(), geteuid().as_raw())?;
        let number = u32::try_from(other.pid()).ok().and_then(NonZeroU32::new);
        let life = match getsockopt(socket, sockopt::PeerPidfd) {
            Ok(handle) => Life::Watched(handle),
            Err(Errno::ESRCH | Errno::EINVAL) => Life::Ended,
            // Linux before 6.5.
            Err(_) => number.map_or(Life::Unknown, open),
        };
        Ok(Self { number, life })
    }

    /// Whether it has ended, as far as the kernel can tell.
    pub(crate) fn has_ended(&self) -> bool {
        match &self.life {
            Life::Watched(handle) => {
                let mut one = [PollFd::new(handle, PollFlags::IN)];
                super::poll(&mut one, Instant::now()).is_ok() && !one[0].revents().is_empty()
            }
            Life::Ended => true,
            Life::Unknown => false,
        }
    }

    /// What becomes readable when it ends.
    pub(crate) fn end(&self) -> Option<&OwnedFd> {
        match &self.life {
            Life::Watched(handle) => Some(handle),
            Life::Ended | Life::Unknown => None,
        }
    }
}

/// Watches a process by its number. Should the number have passed to another process meanwhile, that one is watched: then
/// only the socket tells of the end.
fn open(number: NonZeroU32) -> Life {
    let process = i32::try_from(number.get()).ok().and_then(Pid::from_raw);
    match process.map(|process| pidfd_open(process, PidfdFlags::empty())) {
        Some(Ok(handle)) => Life::Watched(handle),
        Some(Err(rustix::io::Errno::SRCH)) => Life::Ended,
        // Linux before 5.3, or a sandbox that forbids it.
        _ => Life::Unknown,
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "process {number}"),
            None => f.write_str("a process of another pid namespace"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    #[test]
    fn a_peer_is_known_by_its_number() {
        let (here, _there) = UnixStream::pair().unwrap();
        let peer = Peer::of(&here.into()).unwrap();
        assert_eq!(peer.to_string(), format!("process {}", std::process::id()));
        assert!(!peer.has_ended());
    }

    #[test]
    fn no_other_user_is_this_one_and_root_is_none() {
        assert_eq!(refuse_user(7, 7), Ok(()));
        for theirs in [0, 6, u32::MAX] {
            let why = format!("it is of user {theirs}, and this process of user 7");
            assert_eq!(refuse_user(theirs, 7), Err(why));
        }
    }

    #[test]
    fn a_process_watched_by_its_number_is_seen_to_end() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .spawn()
            .expect("cat runs");
        let number = NonZeroU32::new(child.id()).unwrap();
        let life = open(number);
        let peer = Peer {
            number: Some(number),
            life,
        };
        assert!(!peer.has_ended());
        drop(child.stdin.take());
        let until = Instant::now() + Duration::from_secs(60);
        let mut end = [PollFd::new(peer.end().unwrap(), PollFlags::IN)];
        super::super::poll(&mut end, until).unwrap();
        assert!(peer.has_ended());
        child.wait().unwrap();
    }

    #[test]
    fn a_process_without_a_number_here_has_words() {
        let peer = Peer {
            number: None,
            life: Life::Unknown,
        };
        assert_eq!(peer.to_string(), "a process of another pid namespace");
        assert!(!peer.has_ended());
    }
}
