//! What a pool's memory is, range by range: for whoever has an address and asks whose it is.

use std::fmt;
use std::sync::Arc;

use crate::error::Result;
use crate::group::Rank;
use crate::layout::{ChannelHealth, HealthHeader, InboxLayout, LINE, SignalLayout, Slot};

use super::lane::Lane;
use super::memory::{Cut, Memory, PeerMemory, Staged};
use super::pool::Pool;
use super::shared::{Shared, Ties, given_back};

/// What a range holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// A channel's epoch, ticket and counters.
    Local,
    /// A poison line of one source.
    Poison,
    /// An entry line of one source.
    Entry,
    /// Data flags.
    Flags,
    /// What peers pull.
    Outbox,
    /// What one source pushes.
    Inbox,
    /// A channel's host-mapped records.
    HealthRecord,
    /// The pool's host-mapped header.
    HealthHeader,
}

impl Part {
    const ALL: [Self; 8] = [
        Self::Local,
        Self::Poison,
        Self::Entry,
        Self::Flags,
        Self::Outbox,
        Self::Inbox,
        Self::HealthRecord,
        Self::HealthHeader,
    ];

    /// Its name: the kind of memory, and for kinds with several parts the part.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Poison => "signal/poison",
            Self::Entry => "signal/entry",
            Self::Flags => "signal/flags",
            Self::Outbox => "outbox",
            Self::Inbox => "inbox",
            Self::HealthRecord => "health/record",
            Self::HealthHeader => "health/header",
        }
    }

    /// The part of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }
}

/// What a part of a pool's memory is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PoolRange {
    /// What it holds.
    pub part: Part,
    /// The channel, where it is one channel's.
    pub channel: Option<String>,
    /// The slot, where it is one slot's.
    pub slot: Option<Slot>,
    /// The rank that owns the memory.
    pub owner: Rank,
    /// The one rank that writes it, where it is one of several.
    pub source: Option<Rank>,
    /// First address, as this rank's device uses it.
    pub base: u64,
    /// Length.
    pub bytes: u64,
}

impl fmt::Display for PoolRange {
    /// Such as `signal/entry A of rank 1, written by rank 0, channel decode.graph.1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.part.name())?;
        match self.slot {
            Some(Slot::A) => f.write_str(" A")?,
            Some(Slot::B) => f.write_str(" B")?,
            None => {}
        }
        write!(f, " of {}", self.owner)?;
        if let Some(source) = self.source {
            write!(f, ", written by {source}")?;
        }
        match &self.channel {
            Some(channel) => write!(f, ", channel {channel}"),
            None => Ok(()),
        }
    }
}

const OPERATION: &str = "Pool::ranges";

impl Pool {
    /// Every range of the prepared channels: this rank's own, and those of its peers that its device reaches.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`](crate::Error::Closed) once the pool is closed, [`Error::Refused`](crate::Error::Refused) when a close
    /// or an abandonment has given some of the memory back, or may have, here or at a peer.
    pub fn ranges(&self) -> Result<Vec<PoolRange>> {
        let shared = &self.shared;
        let (lanes, ties) = {
            let state = shared.read()?;
            let lanes: Vec<Arc<Lane>> = state.lanes.values().cloned().collect();
            (lanes, state.ties)
        };
        let memory = shared.require_memory(OPERATION, Memory::is_whole)?;
        match memory.as_ref().filter(|_| ties == Ties::Tied) {
            Some(memory) => ranges(shared, memory, &lanes),
            None => Err(given_back(OPERATION)),
        }
    }
}

fn ranges(shared: &Shared, memory: &Memory, lanes: &[Arc<Lane>]) -> Result<Vec<PoolRange>> {
    let me = shared.group.me();
    let page = &shared.page;
    let mut ranges = vec![PoolRange {
        part: Part::HealthHeader,
        channel: None,
        slot: None,
        owner: me,
        source: None,
        base: page.header().raw(),
        bytes: size_of::<HealthHeader>() as u64,
    }];
    for lane in lanes {
        let mut own = Lister::new(lane, me, &mut ranges);
        own.memory(memory, &shared.cut)?;
        if let Some(record) = page.channel(lane.index) {
            own.add(
                Part::HealthRecord,
                None,
                None,
                record.raw(),
                size_of::<ChannelHealth>(),
            );
        }
        for peer in &shared.peers {
            Lister::new(lane, peer.peer.rank(), &mut ranges).peer(peer, &shared.cut)?;
        }
    }
    Ok(ranges)
}

/// Lists the ranges of one channel at one rank.
struct Lister<'a> {
    lane: &'a Lane,
    owner: Rank,
    to: &'a mut Vec<PoolRange>,
}

impl<'a> Lister<'a> {
    fn new(lane: &'a Lane, owner: Rank, to: &'a mut Vec<PoolRange>) -> Self {
        Self { lane, owner, to }
    }

    fn add(
        &mut self,
        part: Part,
        slot: Option<Slot>,
        source: Option<usize>,
        base: u64,
        bytes: usize,
    ) {
        self.to.push(PoolRange {
            part,
            channel: Some(self.lane.name.clone()),
            slot,
            owner: self.owner,
            source: source.map(|source| Rank(source as u32)),
            base,
            bytes: bytes as u64,
        });
    }

    fn memory(&mut self, memory: &Memory, cut: &Cut) -> Result<()> {
        let index = self.lane.index;
        let local = memory.local.range(index)?;
        self.add(Part::Local, None, None, local.ptr().get(), local.bytes());
        let signal = memory.signal.range(index)?;
        self.signal(signal.ptr().get(), &cut.signal, cut.world as usize);
        for slot in Slot::BOTH {
            match &memory.staged {
                Staged::Push(inbox) => {
                    let inbox = inbox[slot as usize].range(index)?;
                    self.inbox(slot, inbox.ptr().get(), &cut.inbox, cut.world as usize);
                }
                Staged::Pull(outbox) => {
                    let range = outbox[slot as usize].range(index)?;
                    let (base, bytes) = (range.ptr().get(), range.bytes());
                    self.add(Part::Outbox, Some(slot), None, base, bytes);
                }
            }
        }
        Ok(())
    }

    fn peer(&mut self, peer: &PeerMemory, cut: &Cut) -> Result<()> {
        let index = self.lane.index;
        let signal = peer.signal.range(index)?;
        self.signal(signal.ptr().get(), &cut.signal, cut.world as usize);
        for slot in Slot::BOTH {
            match &peer.staged {
                Staged::Push(inbox) => {
                    let base = inbox[slot as usize].range(index)?.ptr().get();
                    self.inbox(slot, base, &cut.inbox, cut.world as usize);
                }
                Staged::Pull(outbox) => {
                    let range = outbox[slot as usize].range(index)?;
                    let (base, bytes) = (range.ptr().get(), range.bytes());
                    self.add(Part::Outbox, Some(slot), None, base, bytes);
                }
            }
        }
        Ok(())
    }

    fn signal(&mut self, base: u64, layout: &SignalLayout, world: usize) {
        let at = |offset: usize| base + offset as u64;
        for source in 0..world {
            let line = layout.source(source);
            let poison = at(layout.poison() + line);
            self.add(Part::Poison, None, Some(source), poison, LINE);
            for slot in Slot::BOTH {
                let entry = at(layout.entry(slot) + line);
                self.add(Part::Entry, Some(slot), Some(source), entry, LINE);
            }
        }
        for slot in Slot::BOTH {
            let flags = at(layout.flags(slot));
            self.add(Part::Flags, Some(slot), None, flags, layout.flag_bytes());
        }
    }

    fn inbox(&mut self, slot: Slot, base: u64, layout: &InboxLayout, world: usize) {
        for source in 0..world {
            let raw = base + layout.raw(source) as u64;
            self.add(
                Part::Inbox,
                Some(slot),
                Some(source),
                raw,
                layout.raw_stride(),
            );
        }
    }
}
