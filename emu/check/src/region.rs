//! What memory there is, and what it is for.

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
    /// What it is called in reports.
    pub name: String,
    /// The channel it belongs to.
    pub channel: Option<u64>,
    /// The rank that owns it.
    pub rank: Option<u32>,
    /// The slot it belongs to, 0 or 1.
    pub slot: Option<u32>,
    /// Who may store to it.
    pub writers: Writers,
    /// Whether all its bytes hold something that may be read.
    pub initialised: bool,
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
    pub(crate) fn is_exported(self) -> bool {
        self.is_slab() && !matches!(self, Self::Epoch | Self::Ticket | Self::Counter)
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
            Self::Flag => "data flag",
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
            writers: Writers::Anyone,
            initialised: false,
        }
    }

    /// One past its last address.
    pub fn end(&self) -> u64 {
        self.base.saturating_add(self.len)
    }

    /// The one rank that may store at `address`, if it is one.
    pub fn writer(&self, address: u64) -> Option<u32> {
        match self.writers {
            Writers::Anyone => None,
            Writers::Rank(rank) => Some(rank),
            Writers::Lines { world } => {
                let line = address.wrapping_sub(self.base) / 128;
                Some((line % u64::from(world.max(1))) as u32)
            }
        }
    }
}
