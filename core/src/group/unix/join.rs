//! Meeting: rank 0 starts the hub, the others find it and say who they are.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::connection::Connection;
use super::frame::{Frame, Versions};
use super::hub::Hub;
use super::line::Line;
use crate::error::{Error, Result};
use crate::group::Rank;
use crate::layout::MAX_WORLD;
use crate::socket::{self, Listener, Peer, Place, Received};

const OPERATION: &str = "UnixBootstrap::join";
/// Between two attempts to reach the hub.
const PAUSE: Duration = Duration::from_millis(5);
/// Longest name of a job.
pub(super) const MAX_JOB: usize = 48;

/// Refuses what no job can have.
pub(super) fn check(job: &str, rank: Rank, world: u32) -> Result<()> {
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

/// Rank 0: starts the hub.
pub(super) fn host(
    place: &Place,
    job: &str,
    world: u32,
    deadline: Instant,
) -> Result<(Line, JoinHandle<()>)> {
    let listener = Listener::open(place, deadline).or_else(refuse)?;
    let (mine, hubs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
    .or_else(|error| refuse(format!("no sockets: {}", socket::explain(&error.into()))))?;
    let token = socket::random().or_else(|error| refuse(format!("no token: {error}")))? | 1;
    let of_this_process = |socket: OwnedFd| Connection { socket, peer: None };
    let end = Arc::default();
    let hub = Hub::new(
        job.to_owned(),
        token,
        world,
        listener,
        place.is_for_one_meeting(),
        Arc::clone(&end),
        of_this_process(hubs),
    );
    let hub = thread::Builder::new()
        .name("slabfence-hub".to_owned())
        .spawn(move || hub.run())
        .or_else(|error| refuse(format!("no thread for the hub: {error}")))?;
    let line = Line::new(of_this_process(mine), token, Rank(0), world, end);
    Ok((line, hub))
}

/// The other ranks: find the hub and say who they are.
pub(super) fn visit(
    place: &Place,
    job: &str,
    rank: Rank,
    world: u32,
    deadline: Instant,
) -> Result<Line> {
    let address = place.address().or_else(refuse)?;
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
                _ => {
                    return refuse(format!(
                        "{place} cannot be reached: {}",
                        socket::explain(&error)
                    ));
                }
            },
        };
        let peer = match Peer::of(&socket) {
            Ok(peer) => Some(peer),
            Err(why) => {
                return refuse(format!("the hub at {place} is not ours: {why}"));
            }
        };
        let connection = Connection { socket, peer };
        match greet(&connection, &hello, deadline) {
            Some(Ok(token)) => {
                return Ok(Line::new(connection, token, rank, world, Arc::default()));
            }
            Some(Err(why)) => return refuse(format!("the hub of job '{job}' {why}")),
            // It ended meanwhile; another may come.
            None => thread::sleep(PAUSE),
        }
    }
    Err(missed(job, vec![Rank(0)]))
}

/// Says hello and waits for the answer: the job's token, or what the hub does instead. `None`: it ended.
fn greet(
    connection: &Connection,
    hello: &[u8],
    deadline: Instant,
) -> Option<std::result::Result<u64, String>> {
    // A fresh connection has room for a first message.
    socket::send_message(&connection.socket, hello).ok()?;
    while Instant::now() < deadline {
        match connection.receive() {
            Received::Nothing => connection.wait(PollFlags::IN, deadline).ok()?,
            Received::Message(message) => {
                return Some(match Frame::decode(&message) {
                    Some((token, Frame::Welcome)) => Ok(token),
                    Some((_, Frame::Refused { why })) => Err(format!("says: {why}")),
                    _ => Err(Versions::of(&message).map_or_else(
                        || "says something that is no answer".to_owned(),
                        |versions| format!("cannot be understood: {versions}"),
                    )),
                });
            }
            Received::TooLong => return Some(Err("says far too much".to_owned())),
            Received::End => return None,
        }
    }
    None
}

/// The meeting is refused, with these words.
pub(super) fn refuse<T>(why: String) -> Result<T> {
    Err(Error::Refused {
        operation: OPERATION,
        why,
    })
}

/// The meeting failed for ranks that did not come.
pub(super) fn missed(job: &str, missing: Vec<Rank>) -> Error {
    Error::Timeout {
        what: format!("joining job '{job}'"),
        missing,
    }
}
