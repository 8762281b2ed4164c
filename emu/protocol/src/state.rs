//! One state of the system: what memory holds and where every warp is.

use std::hash::{Hash, Hasher};

use crate::fingerprint::Mixer;
use crate::memory::{Access, Entry, Packet};
use crate::operation::{CTAS, PHASES, RANKS, ROWS, SLOTS, STREAMS};

/// Why a call did not deliver; the causes of `slabfence::layout::Cause`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// An entry line did not come.
    EntryTimeout,
    /// A flag or packet did not come.
    DataTimeout,
    /// Another operation runs there.
    TagMismatch,
    /// Two calls of the channel at once.
    Overlap,
    /// Another rank said that it failed.
    PeerFailed,
    /// The channel was poisoned at the start.
    Skipped,
}

impl Cause {
    pub(crate) const ALL: [Self; 6] = [
        Self::EntryTimeout,
        Self::DataTimeout,
        Self::TagMismatch,
        Self::Overlap,
        Self::PeerFailed,
        Self::Skipped,
    ];

    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Where a warp is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Agent {
    /// Step of its program; [`DONE`](Self::DONE) behind the last.
    pub at: u8,
    pub epoch: u8,
    /// Bit of the cause that keeps it from delivering, or 0.
    pub cause: u8,
    /// `started` as read, later the peers whose entry lines have come.
    pub seen: u8,
    /// The CTA must not go on.
    pub stopped: bool,
    /// The last to arrive.
    pub last: bool,
}

impl Agent {
    pub const DONE: u8 = u8::MAX;
}

impl Hash for Agent {
    fn hash<H: Hasher>(&self, h: &mut H) {
        let flags = u8::from(self.stopped) | u8::from(self.last) << 1;
        let bytes = [self.at, self.epoch, self.cause, self.seen, flags, 0, 0, 0];
        h.write_u64(u64::from_le_bytes(bytes));
    }
}

/// A stream and the call that it runs or runs next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Stream {
    pub position: u8,
    /// The call has got wrong rows, or has left some out.
    pub wrong: bool,
    /// Whose rows it got, counted from 1, where calls are interchangeable.
    pub got: u8,
    /// `[CTA][role]`.
    pub agents: [[Agent; 2]; CTAS],
}

/// Where a rank's host is in a seam.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum Host {
    /// Before it, or there is none.
    #[default]
    Before,
    /// The epoch is agreed.
    Agreed,
    /// Everything but the epoch is written.
    Cleared,
    /// The epoch too.
    Written,
    /// Behind it.
    Behind,
}

/// A rank: its memory and its streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Rank {
    pub epoch: u8,
    pub cta_epoch: [u8; CTAS],
    pub arrived: u8,
    pub sum: u32,
    pub started: u8,
    /// The epoch that `started` names.
    pub started_epoch: u8,
    pub retired: u8,
    /// Causes reported since the last reset.
    pub reported: u8,
    /// Sources whose poison word is set.
    pub poison: u8,
    /// `[slot][source]`.
    pub entry: [[Entry; RANKS]; SLOTS],
    /// `[slot][phase][CTA][source]`.
    pub flags: [[[[u8; RANKS]; CTAS]; PHASES]; SLOTS],
    /// `[slot][phase][source][row]`.
    pub inbox: [[[[u16; ROWS]; RANKS]; PHASES]; SLOTS],
    /// `[slot][phase][part][row]`.
    pub outbox: [[[[u16; ROWS]; RANKS]; PHASES]; SLOTS],
    /// `[slot][source][index]`.
    pub packets: [[[Packet; ROWS]; RANKS]; SLOTS],
    pub streams: [Stream; STREAMS],
    pub host: Host,
    pub next_epoch: u8,
    /// A call with wrong rows ended before anything was reported here.
    pub late: bool,
    /// A call with wrong rows has ended.
    pub wrong: bool,
    /// Bits of the calls whose rows were taken, where calls are interchangeable.
    pub taken: u8,
    /// The first call that was reported and the last that was not, counted from 1.
    pub failed: u8,
    pub succeeded: u8,
}

/// Whose access it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Issuer {
    pub rank: u8,
    pub stream: u8,
    pub position: u8,
    pub cta: u8,
    pub role: u8,
}

impl Issuer {
    pub fn same_cta(&self, other: &Self) -> bool {
        Self { role: 0, ..*self } == Self { role: 0, ..*other }
    }

    pub fn same_call(&self, other: &Self) -> bool {
        (self.rank, self.stream, self.position) == (other.rank, other.stream, other.position)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub ranks: [Rank; RANKS],
    /// Accesses not performed yet, in the order of their issue.
    pub pending: Vec<(Issuer, Access)>,
    pub give_ups: u8,
    pub jumps: u8,
    /// Calls chosen so far, and the latest of them by number mod 4.
    pub chosen: u8,
    pub window: [u8; 4],
}

impl State {
    pub fn fingerprint(&self, world: usize) -> u64 {
        let mut h = Mixer::default();
        self.ranks[..world]
            .iter()
            .for_each(|rank| rank.hash(&mut h));
        self.pending.hash(&mut h);
        h.write(&[self.give_ups, self.jumps, self.chosen]);
        h.write(&self.window);
        h.finish()
    }
}
