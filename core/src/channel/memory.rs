//! A pool's memory on this rank, and what this rank may touch at its peers.

use crate::driver::Device;
use crate::error::{Error, Result};
use crate::group::{Group, PeerIndex};
use crate::layout::{InboxLayout, LINE, LocalBlock, SignalLayout, Slot, Transport};
use crate::slab::{Arena, ArenaRecord, Inbox, Local, Note, Outbox, PeerArena, Signal};

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

/// Everything that this rank allocates for a pool. Dropping it frees it.
#[derive(Debug)]
pub(super) struct Memory {
    pub local: Arena<Local>,
    pub signal: Arena<Signal>,
    pub staged: Staged<Arena<Inbox>, Arena<Outbox>>,
}

/// What this rank may touch at one peer.
#[derive(Debug)]
pub(super) struct PeerMemory {
    pub peer: PeerIndex,
    pub signal: PeerArena<Signal>,
    pub staged: Staged<PeerArena<Inbox>, PeerArena<Outbox>>,
}

impl Memory {
    pub(super) fn allocate(device: &Device, contract: &Contract, cut: &Cut) -> Result<Self> {
        let count = contract.max_channels as usize;
        let (inbox, outbox) = (cut.inbox.bytes(), cut.outbox);
        Ok(Self {
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

    /// Reads a peer's [`records`](Self::records) and checks them against the own arenas.
    pub(super) fn accept(&self, peer: PeerIndex, message: &[u8]) -> Result<PeerMemory> {
        let mut parts = message.chunks_exact(ArenaRecord::BYTES);
        let mut record = || {
            let record = parts.next().and_then(ArenaRecord::from_bytes);
            record.ok_or_else(|| Error::Refused {
                operation: "Pool::create",
                why: format!("{} sent malformed addresses", peer.rank()),
            })
        };
        let signal = PeerArena::accept(&record()?, &self.signal)?;
        let staged = match &self.staged {
            Staged::Push([a, b]) => Staged::Push([
                PeerArena::accept(&record()?, a)?,
                PeerArena::accept(&record()?, b)?,
            ]),
            Staged::Pull([a, b]) => Staged::Pull([
                PeerArena::accept(&record()?, a)?,
                PeerArena::accept(&record()?, b)?,
            ]),
        };
        Ok(PeerMemory {
            peer,
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

    /// Tells the emulated driver's checker what channel `index` is made of. Flags are announced a slot at a time: one
    /// note a line would be thousands.
    pub(super) fn announce(
        &self,
        index: usize,
        channel: u64,
        cut: &Cut,
        group: &Group,
    ) -> Result<()> {
        let driver = self.local.device().driver();
        let note = |slot, source| Note {
            channel,
            owner: group.me().0,
            slot,
            source,
        };
        self.local
            .range(index)?
            .announce(driver, note(None, None))?;
        let signal = self.signal.range(index)?;
        for slot in Slot::BOTH {
            signal
                .sub(cut.signal.flags(slot), cut.signal.flag_bytes())?
                .announce(driver, note(Some(slot), None))?;
        }
        for source in 0..cut.world {
            let line = cut.signal.source(source as usize);
            signal
                .sub(cut.signal.poison() + line, LINE)?
                .announce(driver, note(None, Some(source)))?;
            for slot in Slot::BOTH {
                signal
                    .sub(cut.signal.entry(slot) + line, LINE)?
                    .announce(driver, note(Some(slot), Some(source)))?;
            }
        }
        match &self.staged {
            Staged::Push(inbox) => {
                for (slot, arena) in Slot::BOTH.into_iter().zip(inbox) {
                    for source in 0..cut.world {
                        arena
                            .range(index)?
                            .sub(cut.inbox.raw(source as usize), cut.inbox.raw_stride())?
                            .announce(driver, note(Some(slot), Some(source)))?;
                    }
                }
            }
            Staged::Pull(outbox) => {
                for (slot, arena) in Slot::BOTH.into_iter().zip(outbox) {
                    arena
                        .range(index)?
                        .announce(driver, note(Some(slot), Some(group.me().0)))?;
                }
            }
        }
        Ok(())
    }

    /// Frees everything. What fails stays, and a later call goes on there.
    pub(super) fn close(&mut self) -> Result<()> {
        match &mut self.staged {
            Staged::Push(inbox) => inbox.iter_mut().try_for_each(Arena::close)?,
            Staged::Pull(outbox) => outbox.iter_mut().try_for_each(Arena::close)?,
        }
        self.signal.close()?;
        self.local.close()
    }
}
