//! Who comes to the hub: connections that have yet to say who they are.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::super::connection::Connection;
use super::super::frame::{Frame, MAX_FRAME, Versions};
use super::{Hub, SPEAKER};
use crate::socket::{self, Peer, Received, Refusals};

/// How long a connection may take to say who it is.
const HELLO_PATIENCE: Duration = Duration::from_secs(5);
/// Connections that have not said who they are; what comes beyond waits in the kernel.
pub(super) const MAX_GUESTS: usize = 64;

/// A connection that has not said who it is.
#[derive(Debug)]
pub(super) struct Guest {
    pub socket: OwnedFd,
    peer: Peer,
    pub until: Instant,
}

impl Hub {
    /// Takes connections, and takes in those that say who they are.
    ///
    /// # Errors
    ///
    /// When this process cannot take the ranks that are still to come.
    pub(super) fn welcome(&mut self) -> Result<(), String> {
        // Those that are refused count too: whoever keeps coming must not keep the hub here.
        for _ in self.guests.len()..MAX_GUESTS {
            let Some(listener) = &self.listener else {
                break;
            };
            match socket::accept(&listener.socket) {
                Ok(Some(socket)) => match Peer::of(&socket) {
                    Ok(peer) => self.guests.push(Guest {
                        socket,
                        peer,
                        until: Instant::now() + HELLO_PATIENCE,
                    }),
                    Err(why) => refuse(&mut self.refusals, &socket, why),
                },
                Ok(None) => break,
                Err(error) => {
                    let why = format!("the hub takes no connection: {}", socket::explain(&error));
                    log::warn!("{SPEAKER}: {why}");
                    // No guest will make room, and a rank that is kept out would be named in this one's place.
                    let full = error.raw_os_error() == Some(Errno::MFILE.raw_os_error());
                    if full && self.guests.is_empty() && !self.all_have_come() {
                        return Err(why);
                    }
                    // The ranks that are there go on.
                    std::thread::sleep(Duration::from_millis(10));
                    break;
                }
            }
        }
        let now = Instant::now();
        for guest in std::mem::take(&mut self.guests) {
            match socket::receive_message(&guest.socket, MAX_FRAME) {
                Received::Nothing if now < guest.until => self.guests.push(guest),
                Received::Nothing => refuse(
                    &mut self.refusals,
                    &guest.socket,
                    "it said nothing".to_owned(),
                ),
                Received::End => {}
                Received::TooLong => refuse(
                    &mut self.refusals,
                    &guest.socket,
                    "that is no greeting".to_owned(),
                ),
                Received::Message(message) => match self.admit(&message) {
                    Ok(rank) => {
                        let member = &mut self.members[rank];
                        member.connection = Some(Connection {
                            socket: guest.socket,
                            peer: Some(guest.peer),
                        });
                        member.has_come = true;
                        member.say(&Frame::Welcome, self.token);
                    }
                    Err(why) => refuse(&mut self.refusals, &guest.socket, why),
                },
            }
        }
        Ok(())
    }

    /// The rank of who says this.
    fn admit(&mut self, message: &[u8]) -> Result<usize, String> {
        let Some((_, Frame::Hello { rank, world, job })) = Frame::decode(message) else {
            let other = Versions::of(message).map(|versions| versions.refusal());
            return Err(other.unwrap_or_else(|| "that is no greeting of slabfence".to_owned()));
        };
        if job != self.job {
            return Err(format!("this is job '{}', not '{job}'", self.job));
        }
        let here = self.members.len() as u64;
        if world != here {
            return Err(format!("this job has {here} ranks, not {world}"));
        }
        let known = usize::try_from(rank).ok();
        let Some(rank) = known.filter(|&rank| rank < self.members.len()) else {
            return Err(format!("rank {rank} in a job of {here}"));
        };
        // The end of its first connection may be here, too, and not have been seen yet.
        self.hear(rank);
        let member = &self.members[rank];
        if member.has_come {
            let is = match &member.connection {
                Some(Connection {
                    peer: Some(peer), ..
                }) => format!("is there already ({peer})"),
                Some(_) => "is there already".to_owned(),
                None => "has been there and has left".to_owned(),
            };
            return Err(format!(
                "rank {rank} {is}; give every rank a number of its own and every job a name of its own"
            ));
        }
        Ok(rank)
    }
}

/// Sends a connection away, with the reason if it can still hear it.
fn refuse(refusals: &mut Refusals, guest: &OwnedFd, why: String) {
    refusals.tell(&why);
    // Whoever has gone need not know.
    let _ = socket::send_message(guest, &Frame::Refused { why }.encode(0));
}
