//! A bootstrap for ranks that are processes of one machine and one user: a hub in rank 0, reached through a Unix socket.

mod frame;
mod hub;
mod listener;
#[cfg(test)]
mod tests;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType};

use super::bootstrap::{Bootstrap, BootstrapError};
use super::rank::Rank;
use crate::driver::fork;
use crate::error::{Error, Result};
use crate::layout::MAX_WORLD;
use crate::socket::{self, Received};
use frame::{Assembly, Frame, MAX_FRAME, MAX_PART, pieces};
use hub::Hub;
use listener::Listener;

const OPERATION: &str = "UnixBootstrap::join";
/// Between two attempts to reach the hub.
const PAUSE: Duration = Duration::from_millis(5);
/// How long the hub may take to say who is missing.
const GRACE: Duration = Duration::from_secs(2);
/// Longest name of a job.
const MAX_JOB: usize = 48;

/// [`Bootstrap`] of ranks that are processes of one machine and one user. Rank 0 is the hub: a thread of it collects the
/// ranks' messages and hands them out, at a socket `slabfence-JOB.sock` (rights 0600) in a folder that all ranks name.
///
/// A rank that ends, in whatever way, wakes those that wait for it at once. The file is removed when rank 0 drops its
/// bootstrap; that of a run that was killed is removed by the next run of the same name. While a job lives, a second one
/// of its name is refused.
pub struct UnixBootstrap {
    me: Rank,
    world: u32,
    token: u64,
    line: Mutex<Line>,
    /// In rank 0.
    hub: Option<JoinHandle<()>>,
}

/// Every rank's part, or why not.
type Gathered = Result<Vec<Vec<u8>>, BootstrapError>;

/// A rank's connection to the hub.
#[derive(Debug)]
struct Line {
    socket: OwnedFd,
    round: u64,
    serial: u64,
    arriving: Assembly,
    arrived: Vec<Vec<u8>>,
    /// Why nothing can be exchanged any more.
    broken: Option<BootstrapError>,
}

impl Line {
    fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            round: 0,
            serial: 0,
            arriving: Assembly::default(),
            arrived: Vec::new(),
            broken: None,
        }
    }
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
        check(job, rank, world)?;
        fork::watch();
        if fork::forked() {
            return Err(Error::Forked);
        }
        if !dir.is_dir() {
            return refuse(format!("there is no folder {}", dir.display()));
        }
        let joined = match rank.0 {
            0 => Self::host(dir, job, world, deadline)?,
            _ => Self::visit(dir, job, rank, world, deadline)?,
        };
        match joined.all_gather(&[], deadline) {
            Ok(_) => Ok(joined),
            Err(BootstrapError::Timeout { missing }) => Err(missed(job, missing)),
            Err(error) => Err(error.into()),
        }
    }

    /// This rank.
    pub fn rank(&self) -> Rank {
        self.me
    }

    /// Rank 0: starts the hub.
    fn host(dir: &Path, job: &str, world: u32, deadline: Instant) -> Result<Self> {
        let listener = Listener::open(&listener::path(dir, job), deadline).or_else(refuse)?;
        let (mine, hubs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )
        .or_else(|error| refuse(format!("no sockets: {error}")))?;
        // The standard library seeds its hashers from the system's random numbers.
        let token = RandomState::new().hash_one(job) | 1;
        let hub = Hub::new(job.to_owned(), token, world, listener, hubs);
        let hub = thread::Builder::new()
            .name("slabfence-hub".to_owned())
            .spawn(move || hub.run())
            .or_else(|error| refuse(format!("no thread for the hub: {error}")))?;
        Ok(Self {
            me: Rank(0),
            world,
            token,
            line: Mutex::new(Line::new(mine)),
            hub: Some(hub),
        })
    }

    /// The other ranks: find the hub and say who they are.
    fn visit(dir: &Path, job: &str, rank: Rank, world: u32, deadline: Instant) -> Result<Self> {
        let path = listener::path(dir, job);
        let address = listener::address(&path).or_else(refuse)?;
        let hello = Frame::Hello {
            rank: rank.0.into(),
            world: world.into(),
            job: job.to_owned(),
        };
        let hello = hello.encode(0);
        while Instant::now() < deadline {
            let socket = match socket::connect(&address) {
                Ok(socket) => socket,
                Err(error) => match error.kind() {
                    // Not there yet, left by a run that was killed, or busy.
                    io::ErrorKind::NotFound
                    | io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::WouldBlock => {
                        thread::sleep(PAUSE);
                        continue;
                    }
                    _ => return refuse(format!("{} cannot be reached: {error}", path.display())),
                },
            };
            if let Err(why) = socket::peer(&socket) {
                return refuse(format!("the hub at {} is not ours: {why}", path.display()));
            }
            match greet(&socket, &hello, deadline) {
                Some(Ok(token)) => {
                    return Ok(Self {
                        me: rank,
                        world,
                        token,
                        line: Mutex::new(Line::new(socket)),
                        hub: None,
                    });
                }
                Some(Err(why)) => return refuse(format!("the hub of job '{job}' says: {why}")),
                // It ended meanwhile; another may come.
                None => thread::sleep(PAUSE),
            }
        }
        Err(missed(job, vec![Rank(0)]))
    }

    // What the line holds is changed in one step each, so a panic elsewhere leaves nothing half-made.
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message, waiting for room.
    fn send(&self, line: &Line, message: &[u8], deadline: Instant) -> Result<(), BootstrapError> {
        loop {
            match socket::send_message(&line.socket, message) {
                Ok(true) => return Ok(()),
                // The hub has gone; what it had sent before is still to be read, and says more.
                Err(_) => return Ok(()),
                Ok(false) if Instant::now() >= deadline => {
                    return Err(BootstrapError::Timeout {
                        missing: vec![Rank(0)],
                    });
                }
                Ok(false) => wait(&line.socket, PollFlags::OUT, deadline)?,
            }
        }
    }

    /// One attempt at the current round.
    fn attempt(&self, line: &mut Line, bytes: &[u8], deadline: Instant) -> Gathered {
        line.serial += 1;
        let (round, serial) = (line.round, line.serial);
        for piece in pieces(bytes) {
            let frame = Frame::Part {
                round,
                serial,
                piece,
            };
            // The hub always reads. If it stands still, a part that is half sent cannot be taken back.
            self.send(line, &frame.encode(self.token), deadline)
                .inspect_err(|error| line.broken = Some(error.clone()))?;
        }
        let (mut until, mut withdrawn) = (deadline, false);
        loop {
            match socket::receive_message(&line.socket, MAX_FRAME) {
                Received::Message(message) => {
                    if let Some(outcome) = self.understand(line, &message) {
                        return outcome;
                    }
                }
                Received::End => {
                    let error = match self.me.0 {
                        0 => BootstrapError::Other("the hub has ended".to_owned()),
                        _ => BootstrapError::Left {
                            ranks: vec![Rank(0)],
                        },
                    };
                    line.broken = Some(error.clone());
                    return Err(error);
                }
                Received::TooLong => return self.garbage(line),
                Received::Nothing if Instant::now() < until => {
                    wait(&line.socket, PollFlags::IN, until)?;
                }
                Received::Nothing if !withdrawn => {
                    withdrawn = true;
                    until = Instant::now() + GRACE;
                    let frame = Frame::Withdraw { round, serial };
                    self.send(line, &frame.encode(self.token), until)?;
                }
                Received::Nothing => {
                    return Err(BootstrapError::Timeout {
                        missing: vec![Rank(0)],
                    });
                }
            }
        }
    }

    /// Takes a message of the hub; the attempt's outcome, if it is one.
    fn understand(&self, line: &mut Line, message: &[u8]) -> Option<Gathered> {
        let frame = match Frame::decode(message) {
            Some((token, frame)) if token == self.token => frame,
            _ => return Some(self.garbage(line)),
        };
        match frame {
            Frame::Result { round, rank, piece }
                if round == line.round && rank == line.arrived.len() as u64 =>
            {
                match line.arriving.add(&piece) {
                    Ok(None) => None,
                    Ok(Some(part)) => {
                        line.arrived.push(part);
                        if line.arrived.len() < self.world as usize {
                            return None;
                        }
                        line.round += 1;
                        Some(Ok(std::mem::take(&mut line.arrived)))
                    }
                    Err(()) => Some(self.garbage(line)),
                }
            }
            // Answers to attempts that were given up without one are of no use any more.
            Frame::Missing { serial, .. } | Frame::Left { serial, .. } if serial < line.serial => {
                None
            }
            Frame::Missing { ranks, .. } => Some(Err(BootstrapError::Timeout {
                missing: self.ranks(ranks),
            })),
            Frame::Left { ranks, .. } => {
                let error = BootstrapError::Left {
                    ranks: self.ranks(ranks),
                };
                // No later attempt can succeed, and none may take a rank that leaves because of this for the cause.
                line.broken = Some(error.clone());
                Some(Err(error))
            }
            _ => Some(self.garbage(line)),
        }
    }

    fn garbage<T>(&self, line: &mut Line) -> Result<T, BootstrapError> {
        let error = BootstrapError::Other("the hub sent what it should not".to_owned());
        line.broken = Some(error.clone());
        Err(error)
    }

    fn ranks(&self, bits: u64) -> Vec<Rank> {
        let all = (0..self.world).map(Rank);
        all.filter(|rank| bits >> rank.0 & 1 == 1).collect()
    }
}

impl Bootstrap for UnixBootstrap {
    fn all_gather(&self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, BootstrapError> {
        if fork::forked() {
            return Err(BootstrapError::Other(Error::Forked.to_string()));
        }
        if bytes.len() > MAX_PART {
            return Err(BootstrapError::Other(format!(
                "a message of {} bytes; at most {MAX_PART} are possible",
                bytes.len()
            )));
        }
        let mut line = self.line();
        match &line.broken {
            Some(error) => Err(error.clone()),
            None => self.attempt(&mut line, bytes, deadline),
        }
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
        // Seen by the others even where a forked child still holds the descriptor.
        let closed = rustix::net::shutdown(&self.line().socket, Shutdown::Both);
        if let Err(error) = closed {
            log::debug!("leaving: {error}");
        }
        if hub.is_some_and(|hub| hub.join().is_err()) {
            log::error!("the hub's thread panicked");
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

fn check(job: &str, rank: Rank, world: u32) -> Result<()> {
    let refuse = |what: String| {
        Err(Error::Argument {
            operation: OPERATION,
            what,
        })
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if job.is_empty() || job.len() > MAX_JOB || !job.chars().all(plain) {
        return refuse(format!(
            "job name {job:?}; a name has 1 to {MAX_JOB} letters, digits, dots, dashes and underlines"
        ));
    }
    if !(2..=MAX_WORLD).contains(&(world as usize)) {
        return refuse(format!(
            "a job of {world}; it must have 2 to {MAX_WORLD} ranks"
        ));
    }
    if rank.0 >= world {
        return refuse(format!("{rank} in a job of {world}"));
    }
    Ok(())
}

fn refuse<T>(why: String) -> Result<T> {
    Err(Error::Refused {
        operation: OPERATION,
        why,
    })
}

fn missed(job: &str, missing: Vec<Rank>) -> Error {
    Error::Timeout {
        what: format!("joining job '{job}'"),
        missing,
    }
}

fn wait(socket: &OwnedFd, events: PollFlags, until: Instant) -> Result<(), BootstrapError> {
    socket::poll(&mut [PollFd::new(socket, events)], until)
        .map_err(|error| BootstrapError::Other(error.to_string()))
}

/// Says hello and waits for the answer: the job's token, or the reason of a refusal. `None`: the hub ended.
fn greet(
    socket: &OwnedFd,
    hello: &[u8],
    deadline: Instant,
) -> Option<std::result::Result<u64, String>> {
    // A fresh connection has room for a first message.
    socket::send_message(socket, hello).ok()?;
    while Instant::now() < deadline {
        match socket::receive_message(socket, MAX_FRAME) {
            Received::Nothing => {
                wait(socket, PollFlags::IN, deadline).ok()?;
            }
            Received::Message(message) => {
                return Some(match Frame::decode(&message) {
                    Some((token, Frame::Welcome)) => Ok(token),
                    Some((_, Frame::Refused { why })) => Err(why),
                    _ => Err("something that is no answer; is it another version?".to_owned()),
                });
            }
            Received::TooLong => return Some(Err("far too much".to_owned())),
            Received::End => return None,
        }
    }
    None
}
