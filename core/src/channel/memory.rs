//! A pool's memory on this rank, and what this rank may touch at its peers.

use core::mem::offset_of;
use std::os::fd::OwnedFd;

use crate::driver::Device;
use crate::error::{Error, Result, every};
use crate::group::PeerIndex;
use crate::layout::{InboxLayout, LocalBlock, SignalLayout, Transport, started_word};
use crate::slab::{Arena, ArenaRecord, Imported, Inbox, Kind, Local, Outbox, PeerArena, Signal};

use super::contract::{Contract, Staging};

/// How one channel's ranges are cut, the same on all ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub world: u32,
    pub grid: u32,
    pub signal: SignalLayout,
    pub inbox: InboxLayout,
    /// Bytes of one outbox slot.
    pub outbox: usize,
}

impl Cut {
    pub(super) fn new(contract: &Contract, world: u32, staging: Staging) -> Result<Self> {
        let refuse = |what: &str| Error::Argument {
            operation: "Pool::create",
            what: what.to_owned(),
        };
        let bytes = |bytes: u64| {
            usize::try_from(bytes).map_err(|_| refuse("staging exceeds the address space"))
        };
        let size = world as usize;
        Ok(Self {
            world,
            grid: contract.max_grid,
            signal: SignalLayout::new(size, contract.max_grid as usize)
                .ok_or_else(|| refuse("world or max_grid out of range"))?,
            inbox: InboxLayout::new(size, bytes(staging.inbox)?, 0)
                .ok_or_else(|| refuse("inboxes exceed the address space"))?,
            outbox: bytes(staging.outbox)?,
        })
    }
}

/// Both slots' staging memory, by the contract's transport.
#[derive(Debug)]
pub(super) enum Staged<I, O> {
    Push([I; 2]),
    Pull([O; 2]),
}

/// Everything that this rank allocates or maps for a pool. Dropping it frees it, peers' memory first.
#[derive(Debug)]
pub(super) struct Memory {
    /// Peers' memory, where they are other processes.
    imported: Vec<Imported>,
    pub local: Arena<Local>,
    pub signal: Arena<Signal>,
    pub staged: Staged<Arena<Inbox>, Arena<Outbox>>,
}

/// What this rank may touch at one peer.
#[derive(Debug)]
pub(super) struct PeerMemory {
    pub peer: PeerIndex,
    /// Whether it is another process's and mapped here, at an address of its own.
    pub imported: bool,
    pub signal: PeerArena<Signal>,
    pub staged: Staged<PeerArena<Inbox>, PeerArena<Outbox>>,
}

impl Memory {
    pub(super) fn allocate(device: &Device, contract: &Contract, cut: &Cut) -> Result<Self> {
        let count = contract.max_channels as usize;
        let (inbox, outbox) = (cut.inbox.bytes(), cut.outbox);
        Ok(Self {
            imported: Vec::new(),
            local: Arena::create(device, size_of::<LocalBlock>(), count)?,
            signal: Arena::create(device, cut.signal.bytes(), count)?,
            staged: match contract.transport {
                Transport::Push => Staged::Push([
                    Arena::create(device, inbox, count)?,
                    Arena::create(device, inbox, count)?,
                ]),
                Transport::Pull => Staged::Pull([
                    Arena::create(device, outbox, count)?,
                    Arena::create(device, outbox, count)?,
                ]),
            },
        })
    }

    /// What peers are told: where the shared arenas are.
    pub(super) fn records(&self) -> Vec<u8> {
        let [a, b] = match &self.staged {
            Staged::Push([a, b]) => [a.record(), b.record()],
            Staged::Pull([a, b]) => [a.record(), b.record()],
        };
        let records = [self.signal.record(), a, b];
        records
            .into_iter()
            .flat_map(ArenaRecord::to_bytes)
            .collect()
    }

    /// Descriptors of the shared arenas, in the order of the records.
    pub(super) fn export(&self) -> Result<Vec<OwnedFd>> {
        let [a, b] = match &self.staged {
            Staged::Push([a, b]) => [a.export()?, b.export()?],
            Staged::Pull([a, b]) => [a.export()?, b.export()?],
        };
        Ok(vec![self.signal.export()?, a, b])
    }

    /// Reads a peer's [`records`](Self::records) and checks them against the own arenas. `descriptors` are those that the
    /// peer has exported, if it is another process: then its memory is mapped here.
    pub(super) fn accept(
        &mut self,
        peer: PeerIndex,
        message: &[u8],
        descriptors: Option<Vec<OwnedFd>>,
    ) -> Result<PeerMemory> {
        let mut imported = Vec::new();
        let seen = self.see(peer, message, descriptors, &mut imported);
        // Kept in any case: the first of several may be mapped when another fails.
        self.imported.append(&mut imported);
        seen
    }

    fn see(
        &self,
        peer: PeerIndex,
        message: &[u8],
        descriptors: Option<Vec<OwnedFd>>,
        imported: &mut Vec<Imported>,
    ) -> Result<PeerMemory> {
        let elsewhere = descriptors.is_some();
        let mut descriptors = descriptors.map(Vec::into_iter);
        let mut parts = message.chunks_exact(ArenaRecord::BYTES);
        let mut record = || {
            let record = parts.next().and_then(ArenaRecord::from_bytes);
            record.ok_or_else(|| Error::Refused {
                operation: "Pool::create",
                why: format!("{} sent malformed addresses", peer.rank()),
            })
        };
        let mut hand = || match &mut descriptors {
            None => Ok(None),
            Some(left) => left.next().map(Some).ok_or_else(|| Error::Refused {
                operation: "Pool::create",
                why: format!("{} handed over too little memory", peer.rank()),
            }),
        };
        let signal = see(&record()?, &self.signal, hand()?, imported)?;
        let staged = match &self.staged {
            Staged::Push([a, b]) => Staged::Push([
                see(&record()?, a, hand()?, imported)?,
                see(&record()?, b, hand()?, imported)?,
            ]),
            Staged::Pull([a, b]) => Staged::Pull([
                see(&record()?, a, hand()?, imported)?,
                see(&record()?, b, hand()?, imported)?,
            ]),
        };
        Ok(PeerMemory {
            peer,
            imported: elsewhere,
            signal,
            staged,
        })
    }

    /// Lets the peers' devices reach what they may.
    pub(super) fn grant(&self, ordinals: &[u32]) -> Result<()> {
        self.signal.grant(ordinals)?;
        match &self.staged {
            Staged::Push(inbox) => inbox.iter().try_for_each(|arena| arena.grant(ordinals)),
            Staged::Pull(outbox) => outbox.iter().try_for_each(|arena| arena.grant(ordinals)),
        }
    }

    /// Sets the epoch of channel `index`, whose operations have run so many warps so far. Its ranges are at rest.
    pub(super) fn set_epoch(&self, index: usize, epoch: u64, warps: u64) -> Result<()> {
        for (place, word) in [
            (offset_of!(LocalBlock, started), started_word(warps, epoch)),
            (offset_of!(LocalBlock, retired), warps),
            (offset_of!(LocalBlock, epoch), epoch),
        ] {
            self.local.write(index, place, &word.to_le_bytes())?;
        }
        Ok(())
    }

    /// Zeroes what channel `index` keeps of its operations, as it was after the allocation. Its ranges are at rest. Staged
    /// payload stays: nothing reads it before a peer has written it anew.
    pub(super) fn clear(&self, index: usize) -> Result<()> {
        let local = self.local.range(index)?.bytes();
        self.local.fill(index, 0, 0, local)?;
        let signal = self.signal.range(index)?.bytes();
        self.signal.fill(index, 0, 0, signal)
    }

    /// Unmaps peers' memory, as much of it as can be. What fails stays, and a later call goes on there.
    pub(super) fn let_go(&mut self) -> Result<()> {
        every(self.imported.iter_mut().map(Imported::close))
    }

    /// Frees the own memory, as much of it as can be. What fails stays, and a later call goes on there.
    pub(super) fn close(&mut self) -> Result<()> {
        let staged = match &mut self.staged {
            Staged::Push(inbox) => inbox.each_mut().map(Arena::close),
            Staged::Pull(outbox) => outbox.each_mut().map(Arena::close),
        };
        let rest = [self.signal.close(), self.local.close()];
        every(staged.into_iter().chain(rest))
    }

    /// [`let_go`](Self::let_go), and frees what no peer has ever had.
    pub(super) fn leave_private(&mut self) -> Result<()> {
        every([self.let_go(), self.local.close()].into_iter())
    }

    /// Whether all of it can be used: nothing was given back, or may have been.
    pub(super) fn is_whole(&self) -> bool {
        let staged = match &self.staged {
            Staged::Push(inbox) => inbox.iter().all(Arena::is_mapped),
            Staged::Pull(outbox) => outbox.iter().all(Arena::is_mapped),
        };
        let own = staged && self.signal.is_mapped() && self.local.is_mapped();
        own && self.imported.iter().all(Imported::is_mapped)
    }

    /// Bytes of the own memory.
    pub(super) fn bytes(&self) -> u64 {
        self.shared_bytes() + bytes(&self.local) as u64
    }

    /// Bytes that peers may use.
    pub(super) fn shared_bytes(&self) -> u64 {
        let staged: usize = match &self.staged {
            Staged::Push(inbox) => inbox.iter().map(bytes).sum(),
            Staged::Pull(outbox) => outbox.iter().map(bytes).sum(),
        };
        (bytes(&self.signal) + staged) as u64
    }

    /// Bytes of peers' memory that are mapped here.
    pub(super) fn imported(&self) -> u64 {
        let imported = self.imported.iter();
        imported.map(|memory| memory.mapped() as u64).sum()
    }

    /// [`let_go`](Self::let_go) and [`close`](Self::close).
    pub(super) fn leave(&mut self) -> Result<()> {
        every([self.let_go(), self.close()].into_iter())
    }
}

fn bytes<K: Kind>(arena: &Arena<K>) -> usize {
    arena.stride() * arena.count()
}

/// One arena of a peer: at its owner's address in this process, or mapped from its descriptor.
fn see<K: Kind>(
    record: &ArenaRecord,
    own: &Arena<K>,
    descriptor: Option<OwnedFd>,
    imported: &mut Vec<Imported>,
) -> Result<PeerArena<K>> {
    let Some(descriptor) = descriptor else {
        return PeerArena::accept(record, own);
    };
    let (seen, memory) = PeerArena::import(record, own, descriptor)?;
    imported.push(memory);
    Ok(seen)
}

#[cfg(test)]
mod tests;
