//! The parameter blocks, as the library would fill them.

use super::{Collective, FLAG_GRID};
use core::mem::{offset_of, size_of};
use slabfence::layout::{
    GatherParams, Header, HealthHeader, PeerAddresses, ReduceParams, Slot, SlotAddresses,
};

/// Bytes of a parameter block.
struct Block(Vec<u8>);

impl Block {
    fn put(&mut self, offset: usize, value: u64) {
        self.0[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn put32(&mut self, offset: usize, value: u32) {
        self.0[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    }
}

impl Collective {
    fn header(&self, rank: u32, block: &mut Block) {
        let signal = self.signal();
        let own = Self::base(rank);
        block.put(offset_of!(Header, tag), self.tag);
        block.put(offset_of!(Header, fail_ticks), self.fail_ticks);
        block.put32(offset_of!(Header, rank), rank);
        block.put32(offset_of!(Header, world), self.world);
        block.put32(offset_of!(Header, flag_grid), FLAG_GRID);
        block.put(
            offset_of!(Header, inbox_stride),
            self.inbox().raw_stride() as u64,
        );
        block.put(offset_of!(Header, local), own + Self::LOCAL);
        block.put(offset_of!(Header, health_header), own + Self::HEALTH);
        let records = own + Self::HEALTH + size_of::<HealthHeader>() as u64;
        block.put(offset_of!(Header, health), records);
        block.put(
            offset_of!(Header, poison),
            own + Self::SIGNAL + signal.poison() as u64,
        );
        for (slot, n) in Slot::BOTH.into_iter().zip(0..) {
            let size = size_of::<SlotAddresses>();
            let at = offset_of!(Header, own) + n * size;
            let slot_offset = Self::SLOT * n as u64;
            let flags = signal.flags(slot) as u64;
            let entry = signal.entry(slot) as u64;
            block.put(
                at + offset_of!(SlotAddresses, entry),
                own + Self::SIGNAL + entry,
            );
            block.put(
                at + offset_of!(SlotAddresses, flags),
                own + Self::SIGNAL + flags,
            );
            block.put(
                at + offset_of!(SlotAddresses, outbox),
                own + Self::OUTBOX + slot_offset,
            );
            block.put(
                at + offset_of!(SlotAddresses, inbox),
                own + Self::INBOX + slot_offset,
            );
            for peer in (0..self.world).filter(|&peer| peer != rank) {
                let there = Self::base(peer);
                let line = signal.source(rank as usize) as u64;
                let peers = offset_of!(Header, peers) + peer as usize * size_of::<PeerAddresses>();
                let at = peers + offset_of!(PeerAddresses, slot) + n * size;
                let raw = self.inbox().raw(rank as usize) as u64;
                block.put(
                    at + offset_of!(SlotAddresses, entry),
                    there + Self::SIGNAL + entry + line,
                );
                block.put(
                    at + offset_of!(SlotAddresses, flags),
                    there + Self::SIGNAL + flags,
                );
                block.put(
                    at + offset_of!(SlotAddresses, outbox),
                    there + Self::OUTBOX + slot_offset,
                );
                block.put(
                    at + offset_of!(SlotAddresses, inbox),
                    there + Self::INBOX + slot_offset + raw,
                );
                let poison = there + Self::SIGNAL + signal.poison() as u64 + line;
                block.put(peers + offset_of!(PeerAddresses, poison), poison);
            }
        }
    }

    pub(super) fn params(&self, rank: u32) -> Vec<u8> {
        let own = Self::base(rank);
        let (row, heads) = (self.row, u64::from(self.heads));
        if self.is_gather() {
            let mut block = Block(vec![0; size_of::<GatherParams>()]);
            self.header(rank, &mut block);
            block.put(offset_of!(GatherParams, input), own + Self::INPUT);
            block.put(offset_of!(GatherParams, output), own + Self::OUTPUT);
            let packs = (self.payload() / 16) as u32;
            block.put32(offset_of!(GatherParams, packs), packs);
            block.put32(offset_of!(GatherParams, token_packs), packs / self.batch);
            return block.0;
        }
        let mut block = Block(vec![0; size_of::<ReduceParams>()]);
        self.header(rank, &mut block);
        let token = row * heads;
        for (offset, value) in [
            (offset_of!(ReduceParams, input), own + Self::INPUT),
            (offset_of!(ReduceParams, lse), own + Self::LSE),
            (offset_of!(ReduceParams, output), own + Self::OUTPUT),
            (
                offset_of!(ReduceParams, in_token_stride),
                token * u64::from(self.world),
            ),
            (offset_of!(ReduceParams, in_head_stride), row),
            (offset_of!(ReduceParams, out_token_stride), token),
            (offset_of!(ReduceParams, out_head_stride), row),
            (offset_of!(ReduceParams, lse_offset), self.payload()),
            (offset_of!(ReduceParams, part_bytes), self.part()),
        ] {
            block.put(offset, value);
        }
        let row_packs = (row / 16) as u32;
        let threads = row_packs.next_power_of_two().min(256);
        for (offset, value) in [
            (offset_of!(ReduceParams, batch), self.batch),
            (offset_of!(ReduceParams, heads), self.heads),
            (offset_of!(ReduceParams, row_packs), row_packs),
            (offset_of!(ReduceParams, row_threads_log2), threads.ilog2()),
        ] {
            block.put32(offset, value);
        }
        block.0
    }
}
