//! What memory each rank has.

use super::Collective;
use core::mem::{offset_of, size_of};
use slabfence::layout::{ChannelHealth, EntryLine, HealthHeader, LINE, LocalBlock, Slot};
use slabfence_emu_check::{Region, RegionKind, Writers};

impl Collective {
    /// All regions of all ranks.
    pub fn regions(&self) -> Vec<Region> {
        (0..self.world)
            .flat_map(|rank| self.regions_of(rank))
            .collect()
    }

    fn regions_of(&self, rank: u32) -> Vec<Region> {
        let mut regions = Vec::new();
        let mut add = |offset: u64, len: u64, kind: RegionKind, slot, source| {
            let name = format!(
                "{} of rank {rank}, slot {slot:?}, source {source:?}",
                kind.name()
            );
            regions.push(Region {
                kind,
                slot,
                channel: kind.is_slab().then_some(1),
                rank: kind.is_slab().then_some(rank),
                writers: source,
                mapped: match kind.is_exported() {
                    true => Region::ANYWHERE,
                    false => 0,
                },
                initialised: !matches!(kind, RegionKind::Inbox | RegionKind::Outbox),
                ..Region::buffer(Self::base(rank) + offset, len, rank, name)
            });
        };
        let own = Writers::Rank(rank);
        let local = size_of::<LocalBlock>() as u64;
        add(Self::LOCAL, local, RegionKind::Counter, None, own);
        add(
            Self::LOCAL + offset_of!(LocalBlock, epoch) as u64,
            8,
            RegionKind::Epoch,
            None,
            own,
        );
        add(
            Self::LOCAL + offset_of!(LocalBlock, ticket) as u64,
            8,
            RegionKind::Ticket,
            None,
            own,
        );
        let signal = self.signal();
        for source in 0..self.world {
            let line = signal.source(source as usize) as u64;
            let at = Self::SIGNAL + line;
            let writer = Writers::Rank(source);
            add(
                at + signal.poison() as u64,
                LINE as u64,
                RegionKind::Poison,
                None,
                writer,
            );
            for (slot, n) in Slot::BOTH.into_iter().zip(0..) {
                let entry = at + signal.entry(slot) as u64;
                let bytes = size_of::<EntryLine>() as u64;
                add(entry, bytes, RegionKind::Entry, Some(n), writer);
                let raw = self.inbox().raw(source as usize) as u64;
                let inbox = Self::INBOX + Self::SLOT * u64::from(n) + raw;
                let stride = self.inbox().raw_stride() as u64;
                add(inbox, stride, RegionKind::Inbox, Some(n), writer);
            }
        }
        for (slot, n) in Slot::BOTH.into_iter().zip(0..) {
            let flags = Self::SIGNAL + signal.flags(slot) as u64;
            let lines = Writers::Lines { world: self.world };
            add(
                flags,
                signal.flag_bytes() as u64,
                RegionKind::Flag,
                Some(n),
                lines,
            );
            let outbox = Self::OUTBOX + Self::SLOT * u64::from(n);
            let bytes = self.part() * u64::from(self.world);
            add(outbox, bytes, RegionKind::Outbox, Some(n), own);
        }
        let health = (size_of::<HealthHeader>() + size_of::<ChannelHealth>()) as u64;
        add(
            Self::HEALTH,
            health,
            RegionKind::Host,
            None,
            Writers::Anyone,
        );
        let rows = self.payload() * u64::from(self.world);
        let anyone = Writers::Anyone;
        add(Self::INPUT, rows, RegionKind::Buffer, None, anyone);
        let lse = u64::from(self.batch * self.heads * self.world) * 4;
        add(Self::LSE, lse, RegionKind::Buffer, None, anyone);
        add(Self::OUTPUT, rows, RegionKind::Buffer, None, anyone);
        regions
    }
}
