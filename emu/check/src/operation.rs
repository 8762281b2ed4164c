//! Operations: what they start after, and what the parameters of a launch point to.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use slabfence_emu_exec::Launch;

use crate::{Region, RegionKind, clock::Clock, map::Map};

/// Memory that one pointer stands for: the ranges of one kind, of all sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Family {
    kind: RegionKind,
    channel: Option<u64>,
    rank: Option<u32>,
    slot: Option<u32>,
}

/// A grid, copy, fill or host function.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) device: u32,
    /// The rank that the device works for, if that is known.
    owner: Option<u32>,
    /// What happened before it began.
    pub(crate) begin: Arc<Clock>,
    /// What happened before it ended, as far as its warps have ended.
    pub(crate) end: Clock,
    /// Addresses in its parameters at which there was something else when they were taken, and what.
    pub(crate) captured: Vec<(u64, String)>,
    pub(crate) bound: Option<Bound>,
    /// How many operations are still to begin behind it, once that is known.
    pub(crate) followers: Option<usize>,
}

/// What the parameters of a launch say.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) launch: Arc<Launch>,
    /// The rank whose local block it uses.
    pub(crate) rank: Option<u32>,
    pub(crate) families: FxHashSet<Family>,
    /// The epoch that it read first.
    pub(crate) first: Option<u64>,
    /// Whether a warp read one after another: the launch is several operations, and has no number.
    pub(crate) several: bool,
}

impl Bound {
    pub(crate) fn number(&self) -> Option<u64> {
        self.first.filter(|_| !self.several)
    }
}

impl Family {
    pub(crate) fn of(region: &Region) -> Self {
        let kind = match region.kind {
            // One block, one pointer.
            RegionKind::Ticket | RegionKind::Counter => RegionKind::Epoch,
            kind => kind,
        };
        Self {
            kind,
            channel: region.channel,
            rank: region.rank,
            slot: region.slot,
        }
    }
}

impl Operation {
    pub(crate) fn new(device: u32, owner: Option<u32>, begin: Clock) -> Self {
        Self {
            device,
            owner,
            end: begin.clone(),
            begin: Arc::new(begin),
            captured: Vec::new(),
            bound: None,
            followers: None,
        }
    }

    /// It has ended: all that matters of it is what happened before.
    pub(crate) fn ended(&mut self) {
        self.begin = Arc::default();
        self.captured = Vec::new();
        self.bound = None;
    }

    /// Looks at what the launch's parameters, and its module's variables, point to.
    pub(crate) fn bind(&mut self, launch: &Launch, map: &Map) {
        let mut bound = Bound {
            launch: Arc::new(launch.clone()),
            rank: None,
            families: FxHashSet::default(),
            first: None,
            several: false,
        };
        let words = launch.params.chunks_exact(8).filter_map(|bytes| {
            let bytes: [u8; 8] = bytes.try_into().ok()?;
            Some(u64::from_le_bytes(bytes))
        });
        for word in words.chain(launch.globals.iter().copied()) {
            let Some(region) = map.region_at(word) else {
                continue;
            };
            let family = Family::of(region);
            if family.kind == RegionKind::Epoch && bound.rank.is_none() {
                bound.rank = region.rank;
            }
            bound.families.insert(family);
        }
        self.bound = Some(bound);
    }

    /// The number of a collective's operation: the epoch that its grid read.
    pub(crate) fn number(&self) -> Option<u64> {
        self.bound.as_ref()?.number()
    }

    /// The rank that it works for: its device tells, or its parameters do.
    pub(crate) fn rank(&self) -> Option<u32> {
        let bound = self.bound.as_ref();
        self.owner.or(bound.and_then(|bound| bound.rank))
    }
}
