//! A socket between a rank and its hub, with the process at the other end.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};

use super::frame::MAX_FRAME;
use crate::socket::{self, Peer, Received};

/// A connection. It ends when the other end closes it, or when the process there ends: a forked child of that process may
/// hold the other end open for ever.
#[derive(Debug)]
pub(super) struct Connection {
    pub socket: OwnedFd,
    /// `None` for this process itself.
    pub peer: Option<Peer>,
}

impl Connection {
    /// Takes one message. What the other process had sent before it ended comes first.
    pub(super) fn receive(&self) -> Received {
        // Looked at first: once it has ended, nothing comes after what is there already.
        let ended = self.peer_has_ended();
        match socket::receive_message(&self.socket, MAX_FRAME) {
            Received::Nothing if ended => Received::End,
            received => received,
        }
    }

    pub(super) fn peer_has_ended(&self) -> bool {
        self.peer.as_ref().is_some_and(Peer::has_ended)
    }

    /// What wakes a wait for these events, or for the other process's end.
    pub(super) fn watch(&self, events: PollFlags) -> impl Iterator<Item = PollFd<'_>> {
        let end = self.peer.as_ref().and_then(Peer::end);
        let end = end.map(|end| PollFd::new(end, PollFlags::IN));
        std::iter::once(PollFd::new(&self.socket, events)).chain(end)
    }

    pub(super) fn wait(&self, events: PollFlags, until: Instant) -> io::Result<()> {
        let mut all: Vec<PollFd<'_>> = self.watch(events).collect();
        socket::poll(&mut all, until)
    }
}
