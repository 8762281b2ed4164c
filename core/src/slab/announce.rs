//! Telling the emulated driver's checker what ranges are for. A real driver is told nothing.

use core::mem::offset_of;

use slabfence_sys::{RangeKind, RangeNote};

use super::kind::{Inbox, Kind, Local};
use super::peer::PeerRange;
use super::range::{Ptr, Range};
use crate::driver::Driver;
use crate::error::Result;
use crate::layout::{LocalBlock, Slot};

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
    /// The phase of data flags.
    pub phase: Option<u32>,
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
            phase: None,
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
        phase: note.phase.unwrap_or(RangeNote::NONE),
        reserved: 0,
    }
}

impl Range<Local> {
    /// Announces this range as a channel's local block: epoch, ticket, and the owner's other words.
    pub fn announce_block(&self, driver: &Driver, note: Note) -> Result<()> {
        let (epoch, ticket) = (
            offset_of!(LocalBlock, epoch),
            offset_of!(LocalBlock, ticket),
        );
        let word = size_of::<u64>();
        let parts = [
            (RangeKind::LOCAL, 0..epoch),
            (RangeKind::EPOCH, epoch..epoch + word),
            (RangeKind::LOCAL, epoch + word..ticket),
            (RangeKind::TICKET, ticket..ticket + word),
            (RangeKind::LOCAL, ticket + word..self.bytes()),
        ];
        let mut some = parts.into_iter().filter(|(_, part)| !part.is_empty());
        some.try_for_each(|(kind, part)| {
            let whole = told(self.ptr(), self.bytes(), kind, note);
            driver.announce(&RangeNote {
                base: whole.base + part.start as u64,
                bytes: part.len() as u64,
                ..whole
            })
        })
    }
}

impl Range<Inbox> {
    /// Announces this range as packets of one source, which never hold anything else.
    pub fn announce_packets(&self, driver: &Driver, note: Note) -> Result<()> {
        driver.announce(&told(self.ptr(), self.bytes(), RangeKind::PACKETS, note))
    }
}
