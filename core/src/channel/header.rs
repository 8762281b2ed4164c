//! A channel's part of every parameter block: both slots' addresses, own and peers'. No slot, no epoch, no flag value.

use crate::error::{Error, Result};
use crate::group::Group;
use crate::health::HealthPage;
use crate::layout::{ABI, Header, MAGIC, MAX_WORLD, PeerAddresses, Preamble, Slot, SlotAddresses};

use super::contract::Contract;
use super::memory::{Cut, Memory, PeerMemory, Staged};

const NO_SLOT: SlotAddresses = SlotAddresses {
    entry: 0,
    flags: 0,
    outbox: 0,
    inbox: 0,
    packets: 0,
};
const NO_PEER: PeerAddresses = PeerAddresses {
    slot: [NO_SLOT; 2],
    poison: 0,
};

/// Everything from which headers are made.
#[derive(Debug)]
pub(super) struct Source<'a> {
    pub group: &'a Group,
    pub contract: &'a Contract,
    pub cut: &'a Cut,
    pub memory: &'a Memory,
    pub peers: &'a [PeerMemory],
    pub page: &'a HealthPage,
}

impl Source<'_> {
    /// The header of channel `index`, complete but for operation, element type and tag.
    pub(super) fn header(&self, index: usize, channel: u64) -> Result<Header> {
        let health = self.page.channel(index).ok_or_else(|| Error::Argument {
            operation: "Pool::prepare",
            what: format!("channel {index} is past the last record of the health page"),
        })?;
        let signal = self.memory.signal.range(index)?;
        let clock = self.page.clock();
        let at = |offset: usize| signal.sub(offset, 0).map(|part| part.ptr().get());
        Ok(Header {
            preamble: Preamble {
                magic: MAGIC,
                abi: ABI,
                operation: 0,
            },
            channel,
            tag: 0,
            rank: self.group.me().0,
            world: self.group.world(),
            transport: self.contract.transport.code(),
            dtype: 0,
            flag_grid: self.cut.grid,
            clock: clock.code(),
            warn_ticks: clock.ticks(self.contract.warn),
            fail_ticks: clock.ticks(self.contract.fail),
            inbox_stride: self.cut.inbox.raw_stride() as u64,
            packet_stride: 0,
            packet_capacity: 0,
            packet_bytes: 0,
            local: self.memory.local.range(index)?.ptr().get(),
            health: health.raw(),
            health_header: self.page.header().raw(),
            poison: at(self.cut.signal.poison())?,
            own: [self.own(index, Slot::A)?, self.own(index, Slot::B)?],
            peers: self.peers(index)?,
            reserved: 0,
        })
    }

    fn own(&self, index: usize, slot: Slot) -> Result<SlotAddresses> {
        let layout = &self.cut.signal;
        let signal = self.memory.signal.range(index)?;
        let at = |offset: usize| signal.sub(offset, 0).map(|part| part.ptr().get());
        let (inbox, outbox) = match &self.memory.staged {
            Staged::Push(inbox) => (inbox[slot as usize].range(index)?.ptr().get(), 0),
            Staged::Pull(outbox) => (0, outbox[slot as usize].range(index)?.ptr().get()),
        };
        Ok(SlotAddresses {
            entry: at(layout.entry(slot))?,
            flags: at(layout.flags(slot))?,
            outbox,
            inbox,
            packets: 0,
        })
    }

    fn peers(&self, index: usize) -> Result<[PeerAddresses; MAX_WORLD]> {
        let me = self.group.me().index();
        let layout = &self.cut.signal;
        let mut peers = [NO_PEER; MAX_WORLD];
        for there in self.peers {
            let signal = there.signal.range(index)?;
            let at = |offset: usize| signal.sub(offset, 0).map(|part| part.ptr().get());
            let mut slots = [NO_SLOT; 2];
            for slot in Slot::BOTH {
                let (inbox, outbox) = match &there.staged {
                    Staged::Push(inbox) => {
                        let mine = inbox[slot as usize]
                            .range(index)?
                            .sub(self.cut.inbox.raw(me), self.cut.inbox.raw_stride())?;
                        (mine.ptr().get(), 0)
                    }
                    Staged::Pull(outbox) => (0, outbox[slot as usize].range(index)?.ptr().get()),
                };
                slots[slot as usize] = SlotAddresses {
                    entry: at(layout.entry(slot) + layout.source(me))?,
                    flags: at(layout.flags(slot))?,
                    outbox,
                    inbox,
                    packets: 0,
                };
            }
            peers[there.peer.index()] = PeerAddresses {
                slot: slots,
                poison: at(layout.poison() + layout.source(me))?,
            };
        }
        Ok(peers)
    }
}
