//! Telling the emulated driver's checker what a channel is made of: this rank's memory, and that of other processes which
//! is mapped here.

use crate::driver::Driver;
use crate::error::Result;
use crate::group::Rank;
use crate::layout::{LINE, PHASES, Slot};
use crate::slab::{Kind, Note, PeerRange, Range};

use super::memory::{Cut, Memory, PeerMemory, Staged};

/// A range of one kind, this rank's or a peer's.
trait Told: Sized {
    fn sub(&self, offset: usize, bytes: usize) -> Result<Self>;
    fn announce(&self, driver: &Driver, note: Note) -> Result<()>;
}

impl<K: Kind> Told for Range<K> {
    fn sub(&self, offset: usize, bytes: usize) -> Result<Self> {
        self.sub(offset, bytes)
    }

    fn announce(&self, driver: &Driver, note: Note) -> Result<()> {
        self.announce(driver, note)
    }
}

impl<K: Kind> Told for PeerRange<K> {
    fn sub(&self, offset: usize, bytes: usize) -> Result<Self> {
        self.sub(offset, bytes)
    }

    fn announce(&self, driver: &Driver, note: Note) -> Result<()> {
        self.announce(driver, note)
    }
}

/// One rank's part of a channel, as it is told.
pub(super) struct Teller<'a> {
    pub driver: &'a Driver,
    pub cut: &'a Cut,
    /// Number of the channel's ranges in every arena.
    pub index: usize,
    /// Identity of the channel.
    pub channel: u64,
}

impl Teller<'_> {
    /// Tells of this rank's own memory.
    pub(super) fn own(&self, memory: &Memory, me: Rank) -> Result<()> {
        let local = memory.local.range(self.index)?;
        local.announce_block(self.driver, self.note(me, None, None))?;
        self.signal(&memory.signal.range(self.index)?, me)?;
        match &memory.staged {
            Staged::Push([a, b]) => self.inboxes([a.range(self.index)?, b.range(self.index)?], me),
            Staged::Pull([a, b]) => self.outboxes([a.range(self.index)?, b.range(self.index)?], me),
        }
    }

    /// Tells of a peer's memory that is mapped here. That of a peer in this process is known by what the peer tells.
    pub(super) fn imported(&self, peer: &PeerMemory) -> Result<()> {
        if !peer.imported {
            return Ok(());
        }
        let owner = peer.peer.rank();
        self.signal(&peer.signal.range(self.index)?, owner)?;
        match &peer.staged {
            Staged::Push([a, b]) => {
                self.inboxes([a.range(self.index)?, b.range(self.index)?], owner)
            }
            Staged::Pull([a, b]) => {
                self.outboxes([a.range(self.index)?, b.range(self.index)?], owner)
            }
        }
    }

    fn note(&self, owner: Rank, slot: Option<Slot>, source: Option<u32>) -> Note {
        Note {
            channel: self.channel,
            owner: owner.0,
            slot,
            source,
            phase: None,
        }
    }

    /// Flags are told a slot and phase at a time: one note a line would be thousands.
    fn signal(&self, signal: &impl Told, owner: Rank) -> Result<()> {
        let cut = self.cut;
        for slot in Slot::BOTH {
            let bytes = cut.signal.flag_bytes() / PHASES;
            for phase in 0..PHASES {
                let flags = signal.sub(cut.signal.flags(slot) + phase * bytes, bytes)?;
                let note = Note {
                    phase: Some(phase as u32),
                    ..self.note(owner, Some(slot), None)
                };
                flags.announce(self.driver, note)?;
            }
        }
        for source in 0..cut.world {
            let line = cut.signal.source(source as usize);
            signal
                .sub(cut.signal.poison() + line, LINE)?
                .announce(self.driver, self.note(owner, None, Some(source)))?;
            for slot in Slot::BOTH {
                signal
                    .sub(cut.signal.entry(slot) + line, LINE)?
                    .announce(self.driver, self.note(owner, Some(slot), Some(source)))?;
            }
        }
        Ok(())
    }

    fn inboxes(&self, slots: [impl Told; 2], owner: Rank) -> Result<()> {
        let inbox = &self.cut.inbox;
        for (slot, range) in Slot::BOTH.into_iter().zip(slots) {
            for source in 0..self.cut.world {
                range
                    .sub(inbox.raw(source as usize), inbox.raw_stride())?
                    .announce(self.driver, self.note(owner, Some(slot), Some(source)))?;
            }
        }
        Ok(())
    }

    fn outboxes(&self, slots: [impl Told; 2], owner: Rank) -> Result<()> {
        for (slot, range) in Slot::BOTH.into_iter().zip(slots) {
            range.announce(self.driver, self.note(owner, Some(slot), Some(owner.0)))?;
        }
        Ok(())
    }
}
