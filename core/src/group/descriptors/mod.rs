//! Handing file descriptors to ranks in other processes, on sockets of our own: a host's bootstrap carries bytes only.
//!
//! Every rank opens a socket without a file (a name in the kernel's abstract space) and tells the others its name and a
//! token through the bootstrap. Then every rank sends each of the others one message, and takes one of each. Sending
//! needs nobody at the other end, so there is no order in which ranks could wait for one another.

#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

use super::wire::{Reader, Writer};
use super::{BootstrapError, Group, PeerIndex, Rank, Speaker};
use crate::error::{Error, Result};
use crate::socket::{self, Listener, Peer, Place, Refusals, Untaken, random};

/// First word of every message: the protocol and its version.
const MAGIC: u64 = u64::from_le_bytes(*b"slabfds1");
/// Longest message.
const MAX_MESSAGE: usize = 64;
/// Connections that have not said who they are, and as many more that are taken at once.
const MAX_GUESTS: usize = 64;
/// Between two attempts at a socket whose queue is full.
const PAUSE: Duration = Duration::from_millis(5);

const OPERATION: &str = "handing over memory";
const STEP: &str = "create: hand over";

/// Where a rank takes descriptors. Its file, if it has one, goes with it.
#[derive(Debug)]
struct Door {
    listener: Listener,
    record: Record,
    /// Connections that have not said anything.
    guests: Vec<OwnedFd>,
    refusals: Refusals,
}

/// What the others are told of a door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Record {
    number: u64,
    token: u64,
    in_folder: bool,
}

fn refuse<T>(why: String) -> Result<T> {
    Err(Error::Refused {
        operation: OPERATION,
        why,
    })
}

fn failed<T>(error: impl Into<io::Error>) -> Result<T> {
    refuse(format!(
        "a socket failed: {}",
        socket::explain(&error.into())
    ))
}

impl Door {
    fn open(folder: Option<&Path>, deadline: Instant) -> Result<Self> {
        let record = Record {
            number: random().or_else(failed)?,
            token: random().or_else(failed)?,
            in_folder: folder.is_some(),
        };
        let place = Place::of_meeting(folder, record.number);
        let listener = Listener::open(&place, deadline).or_else(refuse)?;
        Ok(Self {
            listener,
            record,
            guests: Vec::new(),
            refusals: Refusals::default(),
        })
    }
}

impl Record {
    fn write(&self) -> Vec<u8> {
        let words = Writer::new().word(self.number).word(self.token);
        words.word(self.in_folder.into()).finish()
    }

    fn read(record: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(record);
        let record = Self {
            number: reader.word()?,
            token: reader.word()?,
            in_folder: reader.word()? != 0,
        };
        reader.end(record)
    }

    /// The door's address, for a rank with this folder.
    fn address(&self, folder: Option<&Path>) -> Result<SocketAddrUnix> {
        let folder = match (self.in_folder, folder) {
            (true, None) => {
                return refuse(
                    "its socket is in a folder, and this rank's bootstrap names none".to_owned(),
                );
            }
            (true, folder) => folder,
            (false, _) => None,
        };
        let place = Place::of_meeting(folder, self.number);
        place.address().or_else(refuse)
    }
}

impl Group {
    /// Hands copies of `mine` to each of `peers`, all of them in other processes, and returns theirs in the order of
    /// `peers`: as many from each as this rank has. Collective; closed by a verdict, so that all ranks have what they need
    /// or all fail. The own descriptors are closed afterwards.
    pub(crate) fn hand_over(
        &self,
        peers: &[PeerIndex],
        mine: Result<Vec<OwnedFd>>,
    ) -> Result<Vec<Vec<OwnedFd>>> {
        let folder = self.bootstrap.folder();
        let soon = || Instant::now() + self.timeout() / 2;
        let ready = mine.and_then(|mine| Ok((mine, Door::open(folder, soon())?)));
        let record = ready.as_ref().map(|(_, door)| door.record.write());
        let records = match record {
            Ok(record) => self.share("create: export", Ok(record))?,
            Err(_) => {
                self.verdict("create: export", &ready)?;
                return ready.map(|_| Vec::new());
            }
        };
        let (mine, mut door) = ready?;
        // Half of the time, so that the verdict reaches the others before they give this rank up.
        let deadline = soon();
        let sent: Vec<Result<Peer>> = peers
            .iter()
            .map(|peer| {
                let record = Record::read(&records[peer.index()]);
                send_to(*peer, self.speaker(), record, folder, &mine, deadline)
            })
            .collect();
        let others: Vec<Option<&Peer>> = sent.iter().map(|one| one.as_ref().ok()).collect();
        let theirs = take_from_all(peers, &others, &mut door, mine.len(), deadline);
        // Only now: the others send to this rank meanwhile.
        let sent: Result<Vec<Peer>> = sent.into_iter().collect();
        let agreed = self.agree(STEP, sent.and(theirs));
        // Not before: those that still come here, or are here, must not take a rank that has failed for one that has gone.
        drop(door);
        agreed
    }
}

/// Sends copies of `mine` to a peer's door; the process there.
fn send_to(
    peer: PeerIndex,
    from: Speaker,
    record: Option<Record>,
    folder: Option<&Path>,
    mine: &[OwnedFd],
    deadline: Instant,
) -> Result<Peer> {
    let Some(record) = record else {
        return refuse(format!("{} sent a malformed address", peer.rank()));
    };
    let there = match record.address(folder) {
        Ok(there) => there,
        Err(why) => return refuse(format!("{}: {why}", peer.rank())),
    };
    let message = Writer::new()
        .word(MAGIC)
        .word(record.token)
        .word(from.rank.0.into())
        .finish();
    loop {
        let sent = socket::connect(&there).and_then(|connection| {
            let other = Peer::of(&connection).map_err(io::Error::other)?;
            let sent = socket::send_descriptors(&connection, &message, mine)?;
            Ok(sent.then_some(other))
        });
        match sent {
            Ok(Some(other)) => {
                log::debug!("{from}: {STEP}: memory for {}, {other}", peer.rank());
                return Ok(other);
            }
            Err(error) if error.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {
                return failed(error);
            }
            Err(error) if !comes_again(&error) => {
                return refuse(format!(
                    "{} cannot be reached: {error}; it has ended, or is not on one machine and of one user with this rank, or {}",
                    peer.rank(),
                    match record.in_folder {
                        true => "does not share the bootstrap's folder with it",
                        false =>
                            "is in another network namespace (a bootstrap that names a folder needs none in common)",
                    }
                ));
            }
            _ if Instant::now() >= deadline => {
                return refuse(format!("{} takes nothing", peer.rank()));
            }
            _ => thread::sleep(PAUSE),
        }
    }
}

/// Whether a later attempt may succeed: there are too many others now, and it was kept out or sent away among them.
fn comes_again(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, WouldBlock};
    matches!(error.kind(), WouldBlock | BrokenPipe | ConnectionReset)
}

/// Takes `count` descriptors of each peer. Nobody waits for the message of one that has ended, or that could not be
/// reached (`None` in `others`).
fn take_from_all(
    peers: &[PeerIndex],
    others: &[Option<&Peer>],
    door: &mut Door,
    count: usize,
    deadline: Instant,
) -> Result<Vec<Vec<OwnedFd>>> {
    let mut theirs: Vec<Option<Vec<OwnedFd>>> = peers.iter().map(|_| None).collect();
    loop {
        // Looked at first: once one has ended, nothing comes of it that is not there already.
        let late = Instant::now() >= deadline;
        let gone: Vec<bool> = others
            .iter()
            .map(|other| other.is_none_or(Peer::has_ended))
            .collect();
        take_in(door)?;
        let mut guests = std::mem::take(&mut door.guests).into_iter();
        while let Some(guest) = guests.next() {
            if door.guests.len() + guests.len() >= MAX_GUESTS {
                // One too many: the longest without a word goes first, unless it has said something by now.
                socket::end(&guest);
            }
            match socket::receive_descriptors(&guest, MAX_MESSAGE, count) {
                Ok(None) => door.guests.push(guest),
                Ok(Some(came)) => {
                    let place = read_sender(&came.message, door.record.token)
                        .and_then(|rank| peers.iter().position(|peer| peer.rank() == rank));
                    match place.map(|place| &mut theirs[place]) {
                        Some(free @ None) => *free = Some(came.descriptors),
                        _ => door.refusals.tell("it is of no rank"),
                    }
                }
                Err(Untaken::Unexpected(why)) => door.refusals.tell(why),
                // It may have been a peer's message, for which nobody else is to be blamed.
                Err(Untaken::Full) => {
                    door.guests.extend(guests);
                    return refuse(socket::full());
                }
            }
        }
        let missing = |of: &dyn Fn(usize) -> bool| -> Vec<Rank> {
            let open = theirs.iter().enumerate().filter(|(_, got)| got.is_none());
            let open = open.filter(|(place, _)| of(*place));
            open.map(|(place, _)| peers[place].rank()).collect()
        };
        let waited = missing(&|_| true);
        if waited.is_empty() {
            return Ok(theirs.into_iter().flatten().collect());
        }
        let ranks = missing(&|place| gone[place]);
        if !ranks.is_empty() {
            return Err(Error::Bootstrap(BootstrapError::Left { ranks }));
        }
        if late {
            return Err(Error::Timeout {
                what: OPERATION.to_owned(),
                missing: waited,
            });
        }
        // Of those whose message is still to come: who has ended wakes every wait.
        let open = others.iter().zip(&theirs).filter(|(_, got)| got.is_none());
        let ends = open.filter_map(|(other, _)| other.and_then(Peer::end));
        let all = std::iter::once(&door.listener.socket)
            .chain(&door.guests)
            .chain(ends);
        let mut all: Vec<_> = all.map(|one| PollFd::new(one, PollFlags::IN)).collect();
        socket::poll(&mut all, deadline).or_else(failed)?;
    }
}

/// Takes connections of this user. Not all that ever come, but as many as can wait: those that are there are heard between.
fn take_in(door: &mut Door) -> Result<()> {
    for _ in 0..MAX_GUESTS {
        let Some(guest) = socket::accept(&door.listener.socket).or_else(failed)? else {
            break;
        };
        match Peer::of(&guest) {
            Ok(_) => door.guests.push(guest),
            Err(why) => door.refusals.tell(why),
        }
    }
    Ok(())
}

/// The rank that a message is of, if it is one for the door with this token.
fn read_sender(message: &[u8], token: u64) -> Option<Rank> {
    let mut reader = Reader::new(message);
    let right = reader.word()? == MAGIC && reader.word()? == token;
    let rank = u32::try_from(reader.word()?).ok().filter(|_| right)?;
    reader.end(Rank(rank))
}
