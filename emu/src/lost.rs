//! Paths between a device and memory that do not work though they are granted, as behind a misconfigured switch.

use std::collections::BTreeMap;

use slabfence_emu_exec::Region;

use crate::host::{self, Nowhere};

/// What does not arrive of what a device's kernels do at some memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Its stores: they end as if they had been performed, and change nothing.
    Stores,
    /// Its loads: they give zeros.
    Loads,
}

/// Which devices have lost what of one range, a bit each.
#[derive(Clone, Copy, Default)]
struct Devices {
    stores: u32,
    loads: u32,
}

/// The paths of a machine that do not work.
#[derive(Default)]
pub(crate) struct LostPaths {
    /// By the id of a range.
    ranges: BTreeMap<u64, Devices>,
    /// Where stores go and loads come from.
    nowhere: Option<Nowhere>,
}

impl LostPaths {
    /// Loses what a device does at the range of this id. `most` are the bytes that any range has at most.
    pub(crate) fn lose(
        &mut self,
        id: u64,
        device: u32,
        lost: Lost,
        most: u64,
    ) -> Result<(), rustix::io::Errno> {
        if self.nowhere.is_none() {
            self.nowhere = Some(Nowhere::reserve(most)?);
        }
        let devices = self.ranges.entry(id).or_default();
        match lost {
            Lost::Stores => devices.stores |= 1 << device,
            Lost::Loads => devices.loads |= 1 << device,
        }
        Ok(())
    }

    /// The range of this id is no more.
    pub(crate) fn forget(&mut self, id: u64) {
        self.ranges.remove(&id);
    }

    /// What the device accesses for stores, or for loads, in place of the range of this id, of which it has lost
    /// something.
    pub(crate) fn region(
        &self,
        id: u64,
        device: u32,
        write: bool,
        base: u64,
        len: u64,
    ) -> Option<Region> {
        let devices = self.ranges.get(&id)?;
        let has = |mask: u32| mask >> device & 1 == 1;
        if !has(devices.stores | devices.loads) {
            return None;
        }
        let nowhere = self.nowhere.as_ref()?;
        Some(match write {
            true if has(devices.stores) => nowhere.sink(base, len).for_stores_alone(),
            true => host::region(base, len, true).for_stores_alone(),
            false if has(devices.loads) => nowhere.source(base, len),
            false => host::region(base, len, false),
        })
    }
}
