//! Where a warp stands, whole, so that it can be told whether it came round to the same again.

use crate::{
    Cta,
    registers::Registers,
    warp::{Standing, Warp},
};

/// All that decides what a warp does next, but for the memory that it shares with others and the time. A warp that comes to
/// the same again, though nothing was stored and it did not read the time, goes round for ever.
#[derive(Clone, Debug)]
pub struct Stand {
    places: Vec<(u32, u32, Standing)>,
    registers: Registers,
    local: Vec<u8>,
}

impl Cta {
    /// Where a warp stands now. `None`: there is no such warp.
    pub fn stand(&self, warp: usize) -> Option<Stand> {
        let warp = self.warp(warp)?;
        Some(Stand {
            places: places(warp),
            registers: warp.registers.clone(),
            local: warp.local.clone(),
        })
    }

    /// Whether a warp stands where it stood.
    pub fn stands(&self, warp: usize, stand: &Stand) -> bool {
        self.warp(warp).is_some_and(|warp| {
            warp.registers == stand.registers
                && warp.local == stand.local
                && places(warp) == stand.places
        })
    }

    /// How often a warp has read a clock.
    pub fn clocks(&self, warp: usize) -> u64 {
        self.warp(warp).map_or(0, |warp| warp.clocks)
    }
}

/// Where its lanes are; in which order they came there says nothing.
fn places(warp: &Warp) -> Vec<(u32, u32, Standing)> {
    let fragments = warp.fragments.iter();
    let places = fragments.map(|fragment| (fragment.pc, fragment.lanes, fragment.standing));
    let mut places: Vec<_> = places.collect();
    places.sort_unstable_by_key(|&(pc, lanes, _)| (pc, lanes));
    places
}
