//! The side of the process that tells.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};

use super::MESSAGE;
use super::document::Document;
use crate::channel::statuses;
use crate::driver::fork;
use crate::error::{Error, Result};
use crate::socket::{self, Listener, Place, refuse_strangers};

const OPERATION: &str = "status::serve";
/// How long starting may take, with other processes that start in the same folder.
const START: Duration = Duration::from_secs(5);
/// How long a client may take to read.
const PATIENCE: Duration = Duration::from_secs(2);
/// Clients that are served at once; more wait.
const MOST_CLIENTS: usize = 32;
/// Sleep without a client, after which it only sleeps again.
const IDLE: Duration = Duration::from_secs(3600);

/// Tells what this process's pools are doing, until it is dropped.
#[derive(Debug)]
#[must_use = "it stops when it is dropped"]
pub struct StatusServer {
    path: PathBuf,
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

/// Lets processes of this user, and root's, see what all pools of this process are doing, by a socket in `folder`
/// (`slabfence-PROCESS.status`, readable and writable by this user alone). Costs nothing while nobody asks: one thread
/// that sleeps.
///
/// # Errors
///
/// [`Error::Refused`], with the reason, when the socket cannot be made, or this process has one there already.
pub fn serve(folder: &Path) -> Result<StatusServer> {
    fork::watch();
    fork::refuse()?;
    let refuse = |why: String| Error::Refused {
        operation: OPERATION,
        why,
    };
    let deadline = Instant::now() + START;
    socket::sweep(folder, deadline).map_err(refuse)?;
    let place = Place::of_status(folder, std::process::id());
    let listener = Listener::open(&place, deadline).map_err(refuse)?;
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let event = || eventfd(0, flags);
    let stop = event().map_err(|error| refuse(socket::explain(&error.into())))?;
    let stopped = stop
        .try_clone()
        .map_err(|error| refuse(socket::explain(&error)))?;
    let thread = thread::Builder::new()
        .name("slabfence-status".to_owned())
        .spawn(move || serve_until(&listener, &stopped))
        .map_err(|error| refuse(format!("no thread to answer on: {error}")))?;
    Ok(StatusServer {
        path: folder.join(format!("slabfence-{}.status", std::process::id())),
        stop,
        thread: Some(thread),
    })
}

impl StatusServer {
    /// The socket's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for StatusServer {
    fn drop(&mut self) {
        // The child has no such thread, and the socket is its parent's.
        let thread = self.thread.take().filter(|_| !fork::forked());
        let Some(thread) = thread else { return };
        match rustix::io::write(&self.stop, &1u64.to_ne_bytes()) {
            // Its panic, which nothing is known to cause, was printed.
            Ok(_) => drop(thread.join()),
            Err(error) => log::error!("the status server could not be stopped: {error}"),
        }
    }
}

/// A client, and what it has not been sent yet.
struct Client {
    socket: OwnedFd,
    text: Vec<u8>,
    sent: usize,
    deadline: Instant,
}

impl Client {
    /// Sends what there is room for. Whether the client is done with.
    fn go_on(&mut self) -> bool {
        while self.sent < self.text.len() {
            let end = self.text.len().min(self.sent + MESSAGE);
            match socket::send_message(&self.socket, &self.text[self.sent..end]) {
                Ok(true) => self.sent = end,
                Ok(false) => return Instant::now() >= self.deadline,
                Err(_) => return true,
            }
        }
        true
    }
}

/// Answers whoever connects. What clients send is not read: there is one question.
fn serve_until(listener: &Listener, stop: &OwnedFd) {
    let mut clients: Vec<Client> = Vec::new();
    loop {
        let until = clients.iter().map(|client| client.deadline).min();
        let until = until.unwrap_or_else(|| Instant::now() + IDLE);
        let mut sources = vec![PollFd::new(stop, PollFlags::IN)];
        let room = clients.len() < MOST_CLIENTS;
        let accepts = if room {
            PollFlags::IN
        } else {
            PollFlags::empty()
        };
        sources.push(PollFd::new(&listener.socket, accepts));
        let room_to_send = |client| PollFd::new(client, PollFlags::OUT);
        sources.extend(clients.iter().map(|client| room_to_send(&client.socket)));
        if let Err(error) = socket::poll(&mut sources, until) {
            log::error!("the status server has stopped: {error}");
            return;
        }
        if !sources[0].revents().is_empty() {
            return;
        }
        let comes = !sources[1].revents().is_empty();
        drop(sources);
        clients.retain_mut(|client| !client.go_on());
        if comes {
            match socket::accept(&listener.socket) {
                Ok(Some(socket)) => clients.extend(client(socket)),
                Ok(None) => {}
                Err(error) => {
                    log::warn!("status server: {}", socket::explain(&error));
                    // Too many open files: the connection stays, and would be tried again at once.
                    thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }
}

fn client(socket: OwnedFd) -> Option<Client> {
    if let Err(why) = refuse_strangers(&socket) {
        log::warn!("status server: a client was refused: {why}");
        return None;
    }
    let statuses = statuses().inspect_err(|error| log::warn!("status server: {error}"));
    // Every map has text keys and no member can fail, so there is always a text.
    let text = serde_json::to_vec(&Document::new(statuses.ok()?)).unwrap_or_default();
    Some(Client {
        socket,
        text,
        sent: 0,
        deadline: Instant::now() + PATIENCE,
    })
}
