//! The regions that a warp used lately.

use super::{GlobalMemory, MemoryFault, Region};

/// How many are remembered: a kernel walks through a few buffers at once.
const KEPT: usize = 4;

/// Regions of one generation of the device's memory.
#[derive(Debug, Default)]
pub(crate) struct RegionCache {
    generation: Option<u64>,
    regions: [Option<Region>; KEPT],
    oldest: usize,
}

impl RegionCache {
    /// Forgets everything if the memory has changed since.
    pub(crate) fn refresh<M: GlobalMemory>(&mut self, memory: &M) {
        let now = Some(memory.generation());
        if self.generation != now {
            *self = Self {
                generation: now,
                ..Self::default()
            };
        }
    }

    /// The region that holds `size` bytes at `addr`.
    pub(crate) fn find<M: GlobalMemory>(
        &mut self,
        memory: &M,
        addr: u64,
        size: u64,
        write: bool,
    ) -> Result<Region, MemoryFault> {
        let fits = |region: &Region| region.holds(addr, size) && region.serves(write);
        if let Some(region) = self.regions.iter().flatten().find(|region| fits(region)) {
            return Ok(*region);
        }
        let region = memory.region(addr, write)?;
        if !region.holds(addr, size) {
            return Err(MemoryFault::Unmapped);
        }
        if write && !region.writable() {
            return Err(MemoryFault::ReadOnly);
        }
        self.regions[self.oldest] = Some(region);
        self.oldest = (self.oldest + 1) % KEPT;
        Ok(region)
    }
}
