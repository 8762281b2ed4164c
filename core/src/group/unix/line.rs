//! A rank's side of its connection to the hub: attempts at a round, and what the hub answers.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::connection::Connection;
use super::frame::{Assembly, Frame, pieces};
use crate::group::{BootstrapError, Rank};
use crate::socket::{self, Received};

/// How long the hub may take to say who is missing.
const GRACE: Duration = Duration::from_secs(2);

/// Every rank's part, or why not.
type Gathered = Result<Vec<Vec<u8>>, BootstrapError>;

/// A rank's connection to the hub.
#[derive(Debug)]
pub(super) struct Line {
    pub connection: Connection,
    /// The job's, in every frame.
    pub token: u64,
    me: Rank,
    world: u32,
    round: u64,
    serial: u64,
    arriving: Assembly,
    arrived: Vec<Vec<u8>>,
    /// Why the hub of this process has ended by itself.
    hubs_end: Arc<OnceLock<String>>,
    /// Why nothing can be exchanged any more.
    broken: Option<BootstrapError>,
}

impl Line {
    pub(super) fn new(
        connection: Connection,
        token: u64,
        me: Rank,
        world: u32,
        hubs_end: Arc<OnceLock<String>>,
    ) -> Self {
        Self {
            connection,
            token,
            me,
            world,
            round: 0,
            serial: 0,
            arriving: Assembly::default(),
            arrived: Vec::new(),
            hubs_end,
            broken: None,
        }
    }

    /// Hands `bytes` in and waits for every rank's part.
    pub(super) fn gather(&mut self, bytes: &[u8], deadline: Instant) -> Gathered {
        match &self.broken {
            Some(error) => Err(error.clone()),
            None => self.attempt(bytes, deadline),
        }
    }

    /// One attempt at the current round.
    fn attempt(&mut self, bytes: &[u8], deadline: Instant) -> Gathered {
        self.serial += 1;
        let (round, serial) = (self.round, self.serial);
        for piece in pieces(bytes) {
            let frame = Frame::Part {
                round,
                serial,
                piece,
            };
            // The hub always reads. If it stands still, a part that is half sent cannot be taken back.
            if let Err(error) = self.send(&frame, deadline) {
                return self.end(error);
            }
        }
        let (mut until, mut withdrawn) = (deadline, false);
        loop {
            match self.connection.receive() {
                Received::Message(message) => {
                    if let Some(outcome) = self.understand(&message) {
                        return outcome;
                    }
                }
                Received::End => {
                    return self.end(match self.me.0 {
                        0 => BootstrapError::Other(match self.hubs_end.get() {
                            Some(why) => why.clone(),
                            None => "the hub has ended".to_owned(),
                        }),
                        _ => BootstrapError::Left {
                            ranks: vec![Rank(0)],
                        },
                    });
                }
                Received::TooLong => return self.garbage(),
                Received::Nothing if Instant::now() < until => self.wait(PollFlags::IN, until)?,
                Received::Nothing if !withdrawn => {
                    withdrawn = true;
                    until = Instant::now() + GRACE;
                    self.send(&Frame::Withdraw { round, serial }, until)?;
                }
                Received::Nothing => {
                    return Err(BootstrapError::Timeout {
                        missing: vec![Rank(0)],
                    });
                }
            }
        }
    }

    /// Sends a message, waiting for room.
    fn send(&self, frame: &Frame, deadline: Instant) -> Result<(), BootstrapError> {
        let message = frame.encode(self.token);
        loop {
            match socket::send_message(&self.connection.socket, &message) {
                Ok(true) => return Ok(()),
                // The hub has gone; what it had sent before is still to be read, and says more.
                Err(_) => return Ok(()),
                Ok(false) if self.connection.peer_has_ended() => return Ok(()),
                Ok(false) if Instant::now() >= deadline => {
                    return Err(BootstrapError::Timeout {
                        missing: vec![Rank(0)],
                    });
                }
                Ok(false) => self.wait(PollFlags::OUT, deadline)?,
            }
        }
    }

    /// Takes a message of the hub; the attempt's outcome, if it is one.
    fn understand(&mut self, message: &[u8]) -> Option<Gathered> {
        let frame = match Frame::decode(message) {
            Some((token, frame)) if token == self.token => frame,
            _ => return Some(self.garbage()),
        };
        match frame {
            Frame::Result { round, rank, piece }
                if round == self.round && rank == self.arrived.len() as u64 =>
            {
                match self.arriving.add(&piece) {
                    Ok(None) => None,
                    Ok(Some(part)) => {
                        self.arrived.push(part);
                        if self.arrived.len() < self.world as usize {
                            return None;
                        }
                        self.round += 1;
                        Some(Ok(std::mem::take(&mut self.arrived)))
                    }
                    Err(()) => Some(self.garbage()),
                }
            }
            // Answers to attempts that were given up without one are of no use any more.
            Frame::Missing { serial, .. } | Frame::Left { serial, .. } if serial < self.serial => {
                None
            }
            Frame::Missing { ranks, .. } => Some(Err(BootstrapError::Timeout {
                missing: self.ranks(ranks),
            })),
            // No later attempt can succeed, and none may take a rank that leaves because of this for the cause.
            Frame::Left { ranks, .. } => Some(self.end(BootstrapError::Left {
                ranks: self.ranks(ranks),
            })),
            _ => Some(self.garbage()),
        }
    }

    /// Fails this attempt and all later ones.
    fn end<T>(&mut self, error: BootstrapError) -> Result<T, BootstrapError> {
        self.broken = Some(error.clone());
        Err(error)
    }

    fn garbage<T>(&mut self) -> Result<T, BootstrapError> {
        self.end(BootstrapError::Other(
            "the hub sent what it should not".to_owned(),
        ))
    }

    fn wait(&self, events: PollFlags, until: Instant) -> Result<(), BootstrapError> {
        let woken = self.connection.wait(events, until);
        woken.map_err(|error| BootstrapError::Other(error.to_string()))
    }

    fn ranks(&self, bits: u64) -> Vec<Rank> {
        let all = (0..self.world).map(Rank);
        all.filter(|rank| bits >> rank.0 & 1 == 1).collect()
    }
}
