//! The hub: a thread of rank 0 that collects every rank's part of a round and hands all parts to all.
//!
//! It never waits for a single connection. One round is open at a time: a rank can begin the next only after it has the
//! results of this one.

mod welcome;

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::connection::Connection;
use super::frame::{ANY_ATTEMPT, Assembly, Frame, pieces};
use crate::group::{Rank, Speaker};
use crate::socket::{self, Listener, Received, Refusals};
use welcome::{Guest, MAX_GUESTS};

/// Whose lines of the log are the hub's.
const SPEAKER: Speaker = Speaker {
    rank: Rank(0),
    pool: None,
};
/// How long results may take to leave after rank 0 has left.
const FAREWELL: Duration = Duration::from_secs(1);
/// Between two looks when nothing happens.
const LOOK: Duration = Duration::from_secs(3600);

/// A rank, from the hub's side.
#[derive(Debug, Default)]
struct Member {
    /// `None` before it has come, and after it has left.
    connection: Option<Connection>,
    has_come: bool,
    arriving: Assembly,
    /// Its part of the open round, with the attempt that it belongs to.
    part: Option<(u64, Vec<u8>)>,
    /// Whether it has taken back its part of the open round.
    gave_up: bool,
    waiting: VecDeque<Arc<[u8]>>,
}

/// The hub's state.
#[derive(Debug)]
pub(super) struct Hub {
    job: String,
    token: u64,
    /// `None` once all have come to a place that is for nothing else.
    listener: Option<Listener>,
    once: bool,
    /// Why the hub has ended, if it did by itself.
    end: Arc<OnceLock<String>>,
    guests: Vec<Guest>,
    refusals: Refusals,
    members: Vec<Member>,
    round: u64,
    /// The ranks that everybody has been told have left.
    told: u64,
}

impl Hub {
    /// A hub for `world` ranks, of which rank 0 is at the other end of `first`. It listens until all have come if that is
    /// `once`, or else as long as it lives.
    pub(super) fn new(
        job: String,
        token: u64,
        world: u32,
        listener: Listener,
        once: bool,
        end: Arc<OnceLock<String>>,
        first: Connection,
    ) -> Self {
        let mut members: Vec<Member> = (0..world).map(|_| Member::default()).collect();
        members[0].connection = Some(first);
        members[0].has_come = true;
        Self {
            job,
            token,
            listener: Some(listener),
            once,
            end,
            guests: Vec::new(),
            refusals: Refusals::of(SPEAKER),
            members,
            round: 0,
            told: 0,
        }
    }

    /// Serves until rank 0 has left.
    pub(super) fn run(mut self) {
        while self.members[0].connection.is_some() {
            if let Err(error) = self.wait(Instant::now() + LOOK) {
                log::error!("{SPEAKER}: the hub of job '{}' ends: {error}", self.job);
                return;
            }
            if let Err(why) = self.welcome() {
                // Whoever has come sees that this rank's hub has ended, and this rank why.
                let _ = self.end.set(why);
                return;
            }
            // Before anybody is told that all have come.
            if self.once && self.all_have_come() {
                self.listener = None;
            }
            for rank in 0..self.members.len() {
                self.hear(rank);
            }
            self.settle();
            self.flush();
        }
        self.take_leave();
        let until = Instant::now() + FAREWELL;
        while self.members.iter().any(Member::unsent) && Instant::now() < until {
            if self.wait(until).is_err() {
                return;
            }
            self.flush();
        }
    }

    /// Tells those that still wait for others to come who those are. That rank 0 has left they see by themselves, and is no
    /// more than that if it has waited in vain.
    fn take_leave(&mut self) {
        let gave_up = self.members[0].gave_up;
        let ranks = self
            .bits(|member| !member.has_come || gave_up && member.part.is_none() && !member.gave_up);
        if ranks > 0 {
            self.answer(|serial| Frame::Missing { serial, ranks });
        }
        self.flush();
    }

    /// Gives every rank that waits the same answer.
    fn answer(&mut self, frame: impl Fn(u64) -> Frame) {
        for member in self.members.iter_mut().filter(|m| m.connection.is_some()) {
            if let Some((serial, _)) = member.part.take() {
                member.say(&frame(serial), self.token);
            }
        }
    }

    /// Waits until there is something to do.
    fn wait(&self, until: Instant) -> std::io::Result<()> {
        let mut until = until;
        let mut all = Vec::new();
        if let Some(listener) = &self.listener
            && self.guests.len() < MAX_GUESTS
        {
            all.push(PollFd::new(&listener.socket, PollFlags::IN));
        }
        for guest in &self.guests {
            all.push(PollFd::new(&guest.socket, PollFlags::IN));
            until = until.min(guest.until);
        }
        for member in &self.members {
            if let Some(connection) = &member.connection {
                let mut events = PollFlags::IN;
                events.set(PollFlags::OUT, member.unsent());
                all.extend(connection.watch(events));
            }
        }
        socket::poll(&mut all, until)
    }

    /// Reads what a rank has sent.
    fn hear(&mut self, rank: usize) {
        while let Some(connection) = &self.members[rank].connection {
            let understood = match connection.receive() {
                Received::Nothing => return,
                Received::End => false,
                Received::TooLong => {
                    log::warn!("{SPEAKER}: rank {rank} of job '{}' sent too much", self.job);
                    false
                }
                Received::Message(message) => {
                    let heard = self.take(rank, &message).is_some();
                    if !heard {
                        log::warn!("{SPEAKER}: rank {rank} of job '{}' sent garbage", self.job);
                    }
                    heard
                }
            };
            if !understood {
                let member = &mut self.members[rank];
                member.connection = None;
                member.waiting.clear();
            }
        }
    }

    /// Acts on a message; `None` for one that a rank would not send.
    fn take(&mut self, rank: usize, message: &[u8]) -> Option<()> {
        let (token, frame) = Frame::decode(message)?;
        if token != self.token {
            return None;
        }
        match frame {
            Frame::Part {
                round,
                serial,
                piece,
            } => {
                if round == self.round {
                    let member = &mut self.members[rank];
                    if let Some(part) = member.arriving.add(&piece).ok()? {
                        member.part = Some((serial, part));
                        member.gave_up = false;
                    }
                    return Some(());
                }
                // The round was completed by an attempt that the rank had given up without an answer.
                (round < self.round).then_some(())
            }
            Frame::Withdraw { round, serial } => {
                let member = &mut self.members[rank];
                let current = member.part.as_ref().is_some_and(|(of, _)| *of == serial);
                // Else the answer is under way already.
                if round == self.round && current && !self.complete() {
                    let ranks = self.missing();
                    let member = &mut self.members[rank];
                    member.part = None;
                    member.gave_up = true;
                    member.say(&Frame::Missing { serial, ranks }, self.token);
                }
                Some(())
            }
            _ => None,
        }
    }

    fn all_have_come(&self) -> bool {
        self.members.iter().all(|member| member.has_come)
    }

    fn complete(&self) -> bool {
        self.members.iter().all(|member| member.part.is_some())
    }

    /// Who keeps the round from its end: the ranks that never brought a part, or else those that took theirs back.
    fn missing(&self) -> u64 {
        match self.bits(|member| member.part.is_none() && !member.gave_up) {
            0 => self.bits(|member| member.part.is_none()),
            ranks => ranks,
        }
    }

    fn bits(&self, is: impl Fn(&Member) -> bool) -> u64 {
        let members = self.members.iter().enumerate();
        members
            .filter(|(_, member)| is(member))
            .fold(0, |bits, (rank, _)| bits | 1 << rank)
    }

    /// Ends the round if every part is there, and every attempt at it if one will never come.
    fn settle(&mut self) {
        if self.complete() {
            let round = self.round;
            for rank in 0..self.members.len() {
                let part = self.members[rank].part.take();
                self.members[rank].gave_up = false;
                for piece in pieces(&part.map(|(_, part)| part).unwrap_or_default()) {
                    let rank = rank as u64;
                    let frame = Frame::Result { round, rank, piece }.encode(self.token);
                    let frame: Arc<[u8]> = frame.into();
                    for member in self.members.iter_mut().filter(|m| m.connection.is_some()) {
                        member.waiting.push_back(Arc::clone(&frame));
                    }
                }
            }
            self.round += 1;
            return;
        }
        let left = |member: &Member| {
            member.has_come && member.connection.is_none() && member.part.is_none()
        };
        // Without rank 0 there is nobody to answer for: see `take_leave`.
        if self.bits(left) == 0 || self.members[0].connection.is_none() {
            return;
        }
        let mut ranks = self.bits(|member| left(member) && !member.gave_up);
        if ranks == 0 {
            // Whoever waited in vain and then left is not the cause.
            let absent = self.bits(|member| member.part.is_none() && !member.gave_up);
            if absent != 0 {
                return self.answer(|serial| Frame::Missing {
                    serial,
                    ranks: absent,
                });
            }
            ranks = self.bits(left);
        }
        if ranks & !self.told != 0 {
            // Those that do not wait yet hear it too: when they ask, whoever heard it first may have left in its turn,
            // the hub's own rank among them, and be taken for the cause.
            self.told |= ranks;
            for member in self.members.iter_mut().filter(|m| m.connection.is_some()) {
                let serial = member.part.take().map_or(ANY_ATTEMPT, |(serial, _)| serial);
                member.say(&Frame::Left { serial, ranks }, self.token);
            }
        }
        self.answer(|serial| Frame::Left { serial, ranks });
    }

    fn flush(&mut self) {
        for member in &mut self.members {
            while let (Some(connection), Some(message)) =
                (&member.connection, member.waiting.front())
            {
                match socket::send_message(&connection.socket, message) {
                    Ok(true) => drop(member.waiting.pop_front()),
                    Ok(false) => break,
                    // What it had sent before it closed is read first; that ends it.
                    Err(_) => member.waiting.clear(),
                }
            }
        }
    }
}

impl Member {
    fn say(&mut self, frame: &Frame, token: u64) {
        self.waiting.push_back(frame.encode(token).into());
    }

    fn unsent(&self) -> bool {
        self.connection.is_some() && !self.waiting.is_empty()
    }
}
