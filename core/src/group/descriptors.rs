//! Handing file descriptors to ranks in other processes, on sockets of our own: a host's bootstrap carries bytes only.
//!
//! Every rank opens a socket without a file (a name in the kernel's abstract space) and tells the others its name and a
//! token through the bootstrap. Then every rank sends each of the others one message, and takes one of each. Sending
//! needs nobody at the other end, so there is no order in which ranks could wait for one another.

use std::hash::{BuildHasher, RandomState};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::net::SocketAddrUnix;

use super::wire::{Reader, Writer};
use super::{Group, PeerIndex, Rank};
use crate::error::{Error, Result};
use crate::socket::{self, Peer};

/// First word of every message: the protocol and its version.
const MAGIC: u64 = u64::from_le_bytes(*b"slabfds1");
/// Longest message.
const MAX_MESSAGE: usize = 64;
/// Connections that have not said who they are.
const MAX_GUESTS: usize = 64;
/// Between two attempts at a socket whose queue is full.
const PAUSE: Duration = Duration::from_millis(5);

const OPERATION: &str = "handing over memory";

/// Where a rank takes descriptors.
#[derive(Debug)]
struct Door {
    listener: OwnedFd,
    number: u64,
    token: u64,
}

/// The address of the door with this number.
fn address(number: u64) -> Result<SocketAddrUnix> {
    let name = format!("slabfence-{number:016x}");
    SocketAddrUnix::new_abstract_name(name.as_bytes()).or_else(failed)
}

fn refuse<T>(why: String) -> Result<T> {
    Err(Error::Refused {
        operation: OPERATION,
        why,
    })
}

fn failed<T>(error: impl std::fmt::Display) -> Result<T> {
    refuse(format!("a socket failed: {error}"))
}

impl Door {
    fn open() -> Result<Self> {
        // The standard library seeds its hashers from the system's random numbers.
        let random = |what| RandomState::new().hash_one(what);
        let (number, token) = (random("door"), random("token"));
        let listener = socket::new().or_else(failed)?;
        rustix::net::bind(&listener, &address(number)?).or_else(failed)?;
        rustix::net::listen(&listener, MAX_GUESTS as i32).or_else(failed)?;
        Ok(Self {
            listener,
            number,
            token,
        })
    }

    /// What the others are told.
    fn record(&self) -> Vec<u8> {
        Writer::new().word(self.number).word(self.token).finish()
    }
}

/// Reads a rank's [`Door::record`]: number and token.
fn read_record(record: &[u8]) -> Option<(u64, u64)> {
    let mut reader = Reader::new(record);
    let door = (reader.word()?, reader.word()?);
    reader.end(door)
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
        let ready = mine.and_then(|mine| Ok((mine, Door::open()?)));
        let record = ready.as_ref().map(|(_, door)| door.record());
        let records = match record {
            Ok(record) => self.share("create: export", Ok(record))?,
            Err(_) => {
                self.verdict("create: export", &ready)?;
                return ready.map(|_| Vec::new());
            }
        };
        let theirs = ready.and_then(|(mine, door)| {
            // Half of the time, so that the verdict reaches the others before they give this rank up.
            let deadline = Instant::now() + self.timeout() / 2;
            let sent = self.send_to_all(peers, &records, &mine, deadline);
            let theirs = self.take_from_all(peers, &door, mine.len(), deadline);
            // Open until all have theirs.
            sent.and(theirs)
        });
        self.agree("create: hand over", theirs)
    }

    fn send_to_all(
        &self,
        peers: &[PeerIndex],
        records: &[Vec<u8>],
        mine: &[OwnedFd],
        deadline: Instant,
    ) -> Result<()> {
        for peer in peers {
            let Some((number, token)) = read_record(&records[peer.index()]) else {
                return refuse(format!("{} sent a malformed address", peer.rank()));
            };
            let there = address(number)?;
            let message = Writer::new()
                .word(MAGIC)
                .word(token)
                .word(self.me().0.into())
                .finish();
            loop {
                let sent = socket::connect(&there).and_then(|connection| {
                    let other = Peer::of(&connection).map_err(std::io::Error::other)?;
                    log::debug!("handing memory to {}, {other}", peer.rank());
                    socket::send_descriptors(&connection, &message, mine)
                });
                match sent {
                    Ok(true) => break,
                    Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => {
                        return refuse(format!(
                            "{} cannot be reached: {error}; ranks must be on one machine, of one user, in one network namespace",
                            peer.rank()
                        ));
                    }
                    _ if Instant::now() >= deadline => {
                        return refuse(format!("{} takes nothing", peer.rank()));
                    }
                    _ => thread::sleep(PAUSE),
                }
            }
        }
        Ok(())
    }

    fn take_from_all(
        &self,
        peers: &[PeerIndex],
        door: &Door,
        count: usize,
        deadline: Instant,
    ) -> Result<Vec<Vec<OwnedFd>>> {
        let mut theirs: Vec<Option<Vec<OwnedFd>>> = peers.iter().map(|_| None).collect();
        let mut guests: Vec<OwnedFd> = Vec::new();
        while theirs.iter().any(Option::is_none) {
            if Instant::now() >= deadline {
                let missing = peers.iter().zip(&theirs).filter(|(_, got)| got.is_none());
                return Err(Error::Timeout {
                    what: OPERATION.to_owned(),
                    missing: missing.map(|(peer, _)| peer.rank()).collect(),
                });
            }
            let all = std::iter::once(&door.listener).chain(&guests);
            let mut all: Vec<_> = all.map(|one| PollFd::new(one, PollFlags::IN)).collect();
            socket::poll(&mut all, deadline).or_else(failed)?;
            while let Some(guest) = socket::accept(&door.listener).or_else(failed)? {
                match Peer::of(&guest) {
                    // The longest without a word goes first.
                    Ok(_) if guests.len() == MAX_GUESTS => drop(guests.remove(0)),
                    Ok(_) => {}
                    Err(why) => {
                        log::warn!("a connection was refused: {why}");
                        continue;
                    }
                }
                guests.push(guest);
            }
            for guest in std::mem::take(&mut guests) {
                match socket::receive_descriptors(&guest, MAX_MESSAGE, count) {
                    Ok(None) => guests.push(guest),
                    Ok(Some(came)) => {
                        let place = read_sender(&came.message, door.token)
                            .and_then(|rank| peers.iter().position(|peer| peer.rank() == rank));
                        match place.map(|place| &mut theirs[place]) {
                            Some(free @ None) => *free = Some(came.descriptors),
                            _ => log::warn!("a connection was refused: it is of no rank"),
                        }
                    }
                    Err(why) => log::warn!("a connection was refused: {why}"),
                }
            }
        }
        Ok(theirs.into_iter().flatten().collect())
    }
}

/// The rank that a message is of, if it is one for the door with this token.
fn read_sender(message: &[u8], token: u64) -> Option<Rank> {
    let mut reader = Reader::new(message);
    let right = reader.word()? == MAGIC && reader.word()? == token;
    let rank = u32::try_from(reader.word()?).ok().filter(|_| right)?;
    reader.end(Rank(rank))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::ThreadBootstrap;
    use std::io::{Read, Write};
    use std::sync::Arc;

    /// Two ranks of which the second does what `second` says, with the first one's door and its own.
    fn two(
        second: impl FnOnce(&Group, Door, (u64, u64)) + Send,
        timeout: Duration,
    ) -> Result<Vec<Vec<OwnedFd>>> {
        let mut members = ThreadBootstrap::world(2).into_iter().map(|member| {
            let rank = member.rank();
            let group = Group::new(Arc::new(member), rank, 2).unwrap();
            group.with_timeout(timeout)
        });
        let (first, other) = (members.next().unwrap(), members.next().unwrap());
        thread::scope(|scope| {
            scope.spawn(move || {
                let door = Door::open().unwrap();
                let records = other.share("create: export", Ok(door.record())).unwrap();
                second(&other, door, read_record(&records[0]).unwrap());
            });
            let peers: Vec<PeerIndex> = first.peers().collect();
            let mine = (0..3).map(|_| pipe().1).collect();
            first.hand_over(&peers, Ok(mine))
        })
    }

    fn pipe() -> (std::io::PipeReader, OwnedFd) {
        let (reader, writer) = std::io::pipe().unwrap();
        (reader, writer.into())
    }

    /// A message as rank 1 would send it to the door with this token.
    fn message(token: u64) -> Vec<u8> {
        Writer::new().word(MAGIC).word(token).word(1).finish()
    }

    fn send(number: u64, message: &[u8], count: usize) {
        let connection = socket::connect(&address(number).unwrap()).unwrap();
        let descriptors: Vec<OwnedFd> = (0..count).map(|_| pipe().1).collect();
        let sent = match count {
            0 => socket::send_message(&connection, message),
            _ => socket::send_descriptors(&connection, message, &descriptors),
        };
        assert!(sent.unwrap());
    }

    #[test]
    fn descriptors_arrive_in_order_and_are_copies() {
        let (mut reader, writer) = pipe();
        let own = &mut vec![writer];
        let got = two(
            |group, door, (number, token)| {
                let there = socket::connect(&address(number).unwrap()).unwrap();
                own.extend([pipe().1, pipe().1]);
                assert!(socket::send_descriptors(&there, &message(token), own).unwrap());
                let peers: Vec<PeerIndex> = group.peers().collect();
                let until = Instant::now() + Duration::from_secs(10);
                let theirs = group.take_from_all(&peers, &door, 3, until).unwrap();
                assert_eq!((theirs.len(), theirs[0].len()), (1, 3));
                group.verdict("create: hand over", &Ok(())).unwrap();
            },
            Duration::from_secs(20),
        );
        let mut got = got.unwrap().remove(0);
        own.clear();
        let mut first = std::fs::File::from(got.remove(0));
        first.write_all(b"through").unwrap();
        drop(first);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), got.len()), ("through", 2));
    }

    #[test]
    fn what_is_not_a_ranks_handover_is_sent_away_and_waited_past() {
        let got = two(
            |group, _door, (number, token)| {
                send(number, &[0xa5; 24], 3);
                send(number, &message(token)[..23], 3);
                send(number, &[message(token), vec![0]].concat(), 3);
                send(number, &[7; MAX_MESSAGE + 1], 3);
                send(number, &message(token ^ 1), 3);
                for count in [0, 2, 4, socket::MAX_DESCRIPTORS] {
                    send(number, &message(token), count);
                }
                let of = |rank: u64| Writer::new().word(MAGIC).word(token).word(rank).finish();
                send(number, &of(0), 3);
                send(number, &of(2), 3);
                drop(socket::connect(&address(number).unwrap()).unwrap());
                send(number, &message(token), 3);
                group.verdict("create: hand over", &Ok(())).unwrap();
            },
            Duration::from_secs(20),
        );
        assert_eq!(got.unwrap()[0].len(), 3);
    }

    #[test]
    fn a_rank_that_hands_over_nothing_is_named() {
        let got = two(
            |group, _door, _| {
                let error = group.verdict("create: hand over", &Ok(())).unwrap_err();
                assert!(error.to_string().contains("rank 1 did not come in time"));
            },
            Duration::from_millis(600),
        );
        let error = got.unwrap_err();
        assert!(matches!(error, Error::Setup { .. }), "{error}");
    }

    #[test]
    fn a_rank_that_cannot_export_fails_the_handover_on_all() {
        let members = ThreadBootstrap::world(2);
        let outcomes: Vec<_> = thread::scope(|scope| {
            let ranks = members.into_iter().map(|member| {
                scope.spawn(move || {
                    let rank = member.rank();
                    let group = Group::new(Arc::new(member), rank, 2).unwrap();
                    let peers: Vec<PeerIndex> = group.peers().collect();
                    let mine = match rank.0 {
                        0 => Ok(vec![pipe().1]),
                        _ => refuse("nothing to give".to_owned()),
                    };
                    group.hand_over(&peers, mine).unwrap_err().to_string()
                })
            });
            let ranks: Vec<_> = ranks.collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        for said in outcomes {
            assert!(
                said.starts_with("create: export failed on rank 1"),
                "{said}"
            );
            assert!(said.contains("nothing to give"), "{said}");
        }
    }
}
