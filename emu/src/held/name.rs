//! Names of what a held run schedules. They do not depend on addresses, threads or handles, so that a seed means the same
//! run in another process.

use std::collections::BTreeMap;

use crate::operations::{OpId, Operations};

/// Something that a schedule chooses: a warp of a block, the next block of a grid, or an operation that can start.
///
/// Their order is the canonical one: by device, then by the operation's place among those of the device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Name {
    /// The device.
    pub(super) device: u32,
    /// Place of the operation among those of the device, as they were enqueued.
    pub(super) op: u32,
    /// Block of the grid, [`Name::NO_BLOCK`] for the operation's start and for the dispatch of its blocks.
    pub(super) block: u64,
    /// Warp of the block, 0 where there is none.
    pub(super) warp: u32,
}

impl Name {
    /// In place of a block.
    pub(super) const NO_BLOCK: u64 = u64::MAX;

    /// The operation as one number: the device, and in the low half its place there, by which the detector calls it.
    pub(super) fn op_number(self) -> u64 {
        u64::from(self.device) << 32 | u64::from(self.op)
    }

    /// One number for the trace.
    pub(super) fn digest(self) -> u64 {
        mix(mix(self.op_number(), self.block), u64::from(self.warp))
    }
}

/// The operations of a held phase and their places.
#[derive(Debug)]
pub(super) struct Names(BTreeMap<OpId, Name>);

impl Names {
    /// Names all of these operations.
    pub(super) fn of(ops: &Operations) -> Names {
        let mut next: BTreeMap<u32, u32> = BTreeMap::new();
        let names = ops.iter().map(|(id, op)| {
            let place = next.entry(op.device).or_default();
            *place += 1;
            let name = Name {
                device: op.device,
                op: *place,
                block: Name::NO_BLOCK,
                warp: 0,
            };
            (id, name)
        });
        Names(names.collect())
    }

    /// The name of an operation's start.
    pub(super) fn get(&self, id: OpId) -> Option<Name> {
        self.0.get(&id).copied()
    }

    /// The operations as numbers; those that are not of this phase are left out.
    pub(super) fn numbers(&self, ids: &[OpId]) -> Vec<u64> {
        let known = ids.iter().filter_map(|&id| self.get(id));
        known.map(Name::op_number).collect()
    }
}

/// Mixes a word into a hash.
pub(super) fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
}
