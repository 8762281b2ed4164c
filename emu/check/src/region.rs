//! What memory there is, and what it is for.

use crate::Place;

/// What the words of a region are for. Those up to [`Packets`](Self::Packets) carry the protocol (`docs/protocol.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RegionKind {
    /// The epoch of a channel. A launch that loads it learns the number of its operation from it.
    Epoch,
    /// The ticket of a channel.
    Ticket,
    /// Entry lines: a vector whose every element names the epoch.
    Entry,
    /// Data flags.
    Flag,
    /// Poison words: written at any time, read at any time, never an end of a wait for data.
    Poison,
    /// Packets: data and stamp in one scalar access. The stamp is in the last four bytes.
    Packets,
    /// Other words of a channel that its owner alone touches: counters, the verdict.
    Counter,
    /// Raw payload that one source pushes.
    Inbox,
    /// Payload that peers pull.
    Outbox,
    /// A user's allocation.
    Buffer,
    /// A module's variable.
    Variable,
    /// Host memory.
    Host,
}

/// Bytes of a line.
const LINE: u64 = 128;

/// The name of a slot.
pub(crate) fn letter(slot: u32) -> char {
    if slot == 0 { 'A' } else { 'B' }
}

/// Which ranks may store to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// Any.
    Anyone,
    /// One.
    Rank(u32),
    /// Lines of 128 bytes, line n by rank n modulo the world.
    Lines {
        /// Number of ranks.
        world: u32,
    },
}

impl Writers {
    /// The one rank that may store so many bytes from the start, if it is one.
    pub fn at(self, offset: u64) -> Option<u32> {
        match self {
            Self::Anyone => None,
            Self::Rank(rank) => Some(rank),
            Self::Lines { world } => Some((offset / LINE % u64::from(world.max(1))) as u32),
        }
    }
}

/// A range of device memory.
#[derive(Clone, Debug)]
pub struct Region {
    /// First address.
    pub base: u64,
    /// Bytes.
    pub len: u64,
    /// The device whose memory it is.
    pub device: u32,
    /// What it is for.
    pub kind: RegionKind,
    /// What it is called in reports. Empty for what the library laid out, which is called after the fields below.
    pub name: String,
    /// The channel it belongs to.
    pub channel: Option<u64>,
    /// The rank that owns it.
    pub rank: Option<u32>,
    /// The slot it belongs to, 0 or 1.
    pub slot: Option<u32>,
    /// The phase that flags are for.
    pub phase: Option<u32>,
    /// Who may store to it.
    pub writers: Writers,
    /// Whether all its bytes hold something that may be read.
    pub initialised: bool,
    /// Other devices that have it mapped, a bit each, or [`ANYWHERE`](Self::ANYWHERE), where who laid it out has told:
    /// atomics on it need the scope of the system.
    pub mapped: u32,
}

impl RegionKind {
    /// Whether the words carry the protocol: weak accesses of kernels are wrong there.
    pub fn is_signal(self) -> bool {
        self <= Self::Packets
    }

    /// Whether the library laid it out.
    pub fn is_slab(self) -> bool {
        self <= Self::Outbox
    }

    /// Whether peers' devices can reach it.
    pub fn is_exported(self) -> bool {
        self.is_slab() && !matches!(self, Self::Epoch | Self::Ticket | Self::Counter)
    }

    /// Whether several ranks write to memory of this kind, each to its own part.
    pub(crate) fn is_written_by_sources(self) -> bool {
        self.is_exported() && self != Self::Outbox
    }

    /// Whether a wait for data or for an entry ends there.
    pub(crate) fn is_awaited(self) -> bool {
        matches!(self, Self::Entry | Self::Flag | Self::Packets)
    }

    /// Its word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Epoch => "epoch",
            Self::Ticket => "ticket",
            Self::Entry => "entry line",
            Self::Flag => "flag",
            Self::Poison => "poison word",
            Self::Packets => "packets",
            Self::Counter => "counters",
            Self::Inbox => "inbox",
            Self::Outbox => "outbox",
            Self::Buffer => "buffer",
            Self::Variable => "variable",
            Self::Host => "host memory",
        }
    }
}

impl Region {
    /// In [`mapped`](Self::mapped): any device may have it.
    pub const ANYWHERE: u32 = u32::MAX;

    /// A buffer of a device: anyone may write, nothing is there yet.
    pub fn buffer(base: u64, len: u64, device: u32, name: impl Into<String>) -> Self {
        Self {
            base,
            len,
            device,
            kind: RegionKind::Buffer,
            name: name.into(),
            channel: None,
            rank: None,
            slot: None,
            phase: None,
            writers: Writers::Anyone,
            initialised: false,
            mapped: 0,
        }
    }

    /// What it is called: `entry line (slot A, source 1) of rank 0`.
    pub fn title(&self) -> String {
        let source = match self.writers {
            Writers::Rank(source) if self.kind.is_written_by_sources() => Some(source),
            _ => None,
        };
        self.titled(None, source)
    }

    /// An address in it as reports name it: of many lines, the one that it is in.
    pub fn place(&self, address: u64) -> Place {
        let offset = address.wrapping_sub(self.base);
        let (region, offset) = match (self.writers, self.writer(address)) {
            (Writers::Lines { world }, Some(source)) if self.name.is_empty() => {
                let block = offset / LINE / u64::from(world.max(1));
                (self.titled(Some(block), Some(source)), offset % LINE)
            }
            _ => (self.title(), offset),
        };
        Place {
            address,
            region,
            kind: Some(self.kind),
            offset,
        }
    }

    fn titled(&self, block: Option<u64>, source: Option<u32>) -> String {
        if !self.name.is_empty() {
            return self.name.clone();
        }
        let rank = self.rank.unwrap_or(self.device);
        let parts = [
            self.slot.map(|slot| format!("slot {}", letter(slot))),
            self.phase.map(|phase| format!("phase {phase}")),
            block.map(|block| format!("CTA {block}")),
            source.map(|source| format!("source {source}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let kind = self.kind.name();
        match parts.is_empty() {
            true => format!("{kind} of rank {rank}"),
            false => format!("{kind} ({}) of rank {rank}", parts.join(", ")),
        }
    }

    /// One past its last address.
    pub fn end(&self) -> u64 {
        self.base.saturating_add(self.len)
    }

    /// The one rank that may store at `address`, if it is one.
    pub fn writer(&self, address: u64) -> Option<u32> {
        self.writers.at(address.wrapping_sub(self.base))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_called_after_what_it_is_for_and_a_line_after_its_writer() {
        let part = |kind, slot, phase, writers| Region {
            kind,
            rank: Some(0),
            slot,
            phase,
            writers,
            ..Region::buffer(0x1000, 0x2000, 0, "")
        };
        let at = |region: &Region, address| region.place(address).to_string();
        let lines = Writers::Lines { world: 3 };
        let flags = part(RegionKind::Flag, Some(0), Some(1), lines);
        assert_eq!(flags.title(), "flag (slot A, phase 1) of rank 0");
        let tenth = 0x1000 + 10 * LINE;
        let words = "flag (slot A, phase 1, CTA 3, source 1) of rank 0, + 8";
        assert_eq!(at(&flags, tenth + 8), words);
        let entry = part(RegionKind::Entry, Some(1), None, Writers::Rank(2));
        let words = "entry line (slot B, source 2) of rank 0, + 16";
        assert_eq!(at(&entry, 0x1010), words);
        let outbox = part(RegionKind::Outbox, Some(1), None, Writers::Rank(0));
        assert_eq!(at(&outbox, 0x1000), "outbox (slot B) of rank 0, + 0");
        let epoch = part(RegionKind::Epoch, None, None, Writers::Rank(0));
        assert_eq!(at(&epoch, 0x1000), "epoch of rank 0, + 0");
        let buffer = Region::buffer(0x1000, 64, 0, "mine");
        assert_eq!(at(&buffer, 0x1004), "mine, + 4");
    }
}
