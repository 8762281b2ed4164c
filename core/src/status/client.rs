//! The side of the process that asks.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::MESSAGE;
use super::document::{Document, SCHEMA};
use crate::socket::{self, Peer, Place, Received};

/// Longest document that is read: far beyond what any process has pools for.
const MOST_BYTES: usize = 64 << 20;
/// How long a process may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The processes that tell their state in `folder`, or did until they were killed.
pub fn processes(folder: &Path) -> io::Result<Vec<u32>> {
    let mut processes = Vec::new();
    for file in fs::read_dir(folder)? {
        let file = file?;
        let number = Place::status_of(&file.path());
        // One that goes meanwhile is none.
        let is_socket = file.file_type().is_ok_and(|kind| kind.is_socket());
        processes.extend(number.filter(|_| is_socket));
    }
    processes.sort_unstable();
    Ok(processes)
}

/// What a process tells in `folder`. `None` when it has ended, or tells nothing there. Bounded in time.
///
/// # Errors
///
/// In words: it does not answer, or not in this version's form, or it is of a user who is neither this process's nor root,
/// and may say what it likes.
pub fn read(folder: &Path, process: u32) -> Result<Option<Document>, String> {
    read_until(folder, process, Instant::now() + PATIENCE)
}

/// [`read`] that ends at `deadline`.
///
/// # Errors
///
/// Those of `read`.
pub fn read_until(
    folder: &Path,
    process: u32,
    deadline: Instant,
) -> Result<Option<Document>, String> {
    let address = Place::of_status(folder, process).address()?;
    let socket = match socket::connect(&address) {
        Ok(socket) => socket,
        Err(error) if is_nobody(&error) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Err(format!("process {process}: too many others ask it"));
        }
        Err(error) => return Err(format!("process {process}: {}", socket::explain(&error))),
    };
    let of_whom = socket::refuse_foreign(&socket);
    of_whom.map_err(|why| format!("process {process}: its socket is not asked: {why}"))?;
    // A forked child of it may still hold the socket.
    if Peer::of(&socket).is_ok_and(|peer| peer.has_ended()) {
        return Ok(None);
    }
    let mut text = Vec::new();
    loop {
        match socket::receive_message(&socket, MESSAGE) {
            Received::Message(part) if text.len() + part.len() <= MOST_BYTES => text.extend(part),
            Received::Message(_) | Received::TooLong => {
                return Err(format!("process {process}: its answer is too long"));
            }
            Received::End => break,
            Received::Nothing if Instant::now() >= deadline => {
                return Err(format!("process {process}: no answer in time"));
            }
            Received::Nothing => {
                let mut one = [PollFd::new(&socket, PollFlags::IN)];
                let waited = socket::poll(&mut one, deadline);
                waited.map_err(|error| format!("process {process}: {error}"))?;
            }
        }
    }
    parse(&text)
        .map(Some)
        .map_err(|why| format!("process {process}: {why}"))
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound
    )
}

fn parse(text: &[u8]) -> Result<Document, String> {
    #[derive(serde::Deserialize)]
    struct Version {
        schema: String,
    }
    if text.is_empty() {
        return Err("it gave no answer: its user is another one, or it has ended".to_owned());
    }
    let unread = |error: serde_json::Error| format!("its answer is none: {error}");
    let Version { schema } = serde_json::from_slice(text).map_err(unread)?;
    if schema != SCHEMA {
        return Err(format!(
            "its answer is of the form {schema:?}, and this version reads {SCHEMA:?}: use the slabfence of its version"
        ));
    }
    serde_json::from_slice(text).map_err(unread)
}
