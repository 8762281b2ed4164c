//! Telling the emulated driver's checker what ranges are for. A real driver is told nothing.

use slabfence_sys::{RangeKind, RangeNote};

use super::kind::{Inbox, Kind};
use super::peer::PeerRange;
use super::range::{Ptr, Range};
use crate::driver::Driver;
use crate::error::Result;
use crate::layout::Slot;

/// Whose a range is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Identity of the channel.
    pub channel: u64,
    /// Rank that owns the memory.
    pub owner: u32,
    /// The slot that it belongs to, if to one.
    pub slot: Option<Slot>,
    /// The one rank that writes it, if it is one.
    pub source: Option<u32>,
}

impl<K: Kind> Range<K> {
    /// Announces this range as memory of its kind.
    pub fn announce(&self, driver: &Driver, note: Note) -> Result<()> {
        driver.announce(&told(self.ptr(), self.bytes(), K::CODE, note))
    }

    /// Announces that this range is no longer what it was announced as.
    pub fn forget(&self, driver: &Driver) -> Result<()> {
        let nobody = Note {
            channel: 0,
            owner: RangeNote::NONE,
            slot: None,
            source: None,
        };
        driver.announce(&told(self.ptr(), self.bytes(), RangeKind::FORGET, nobody))
    }
}

impl<K: Kind> PeerRange<K> {
    /// Announces this range, of a peer in another process, as memory of its kind at the address that it has here. What is
    /// announced is forgotten when it is unmapped.
    pub fn announce(&self, driver: &Driver, note: Note) -> Result<()> {
        driver.announce(&told(self.ptr(), self.bytes(), K::CODE, note))
    }
}

fn told<K: Kind>(ptr: Ptr<K>, bytes: usize, kind: RangeKind, note: Note) -> RangeNote {
    RangeNote {
        base: ptr.get(),
        bytes: bytes as u64,
        kind,
        slot: note.slot.map_or(RangeNote::NONE, |slot| slot as u32),
        rank: note.owner,
        source: note.source.unwrap_or(RangeNote::NONE),
        channel: note.channel,
    }
}

impl Range<Inbox> {
    /// Announces this range as packets of one source, which never hold anything else.
    pub fn announce_packets(&self, driver: &Driver, note: Note) -> Result<()> {
        driver.announce(&told(self.ptr(), self.bytes(), RangeKind::PACKETS, note))
    }
}
