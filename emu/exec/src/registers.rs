//! A warp's registers.

use crate::{
    decode::Image,
    op::{Flag, Place, Slot},
    value::{LANES, Narrow, Wide},
};

/// The numbers of the lanes in a mask, lowest first.
#[inline]
pub fn lanes_of(mut lanes: u32) -> impl Iterator<Item = usize> + Clone {
    std::iter::from_fn(move || {
        let lane = lanes.trailing_zeros();
        lanes &= lanes.checked_sub(1)?;
        Some(lane as usize)
    })
}

/// The register file of a warp. Indices come from decoding, which made the rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Registers {
    pub(crate) narrow: Vec<Narrow>,
    pub(crate) wide: Vec<Wide>,
    /// Predicates: a bit per lane.
    pub(crate) flags: Vec<u32>,
}

impl Registers {
    /// Constants in their rows, everything else zero.
    pub(crate) fn new(image: &Image) -> Self {
        Self {
            narrow: rows(&image.narrow),
            wide: rows(&image.wide),
            flags: vec![0; image.flags],
        }
    }

    /// The lanes in which a predicate (or its complement) is true.
    #[inline]
    pub(crate) fn flag(&self, flag: Flag) -> u32 {
        let lanes = self.flags[usize::from(flag.slot)];
        if flag.negated { !lanes } else { lanes }
    }

    #[inline]
    pub(crate) fn n(&self, slot: Slot) -> &Narrow {
        &self.narrow[usize::from(slot)]
    }

    #[inline]
    pub(crate) fn w(&self, slot: Slot) -> &Wide {
        &self.wide[usize::from(slot)]
    }

    #[inline]
    pub(crate) fn put_narrow(&mut self, slot: Slot, lanes: u32, row: &Narrow) {
        blend(&mut self.narrow[usize::from(slot)], lanes, row);
    }

    #[inline]
    pub(crate) fn put_wide(&mut self, slot: Slot, lanes: u32, row: &Wide) {
        blend(&mut self.wide[usize::from(slot)], lanes, row);
    }

    #[inline]
    pub(crate) fn put_flag(&mut self, slot: Slot, lanes: u32, value: u32) {
        let flag = &mut self.flags[usize::from(slot)];
        *flag = *flag & !lanes | value & lanes;
    }

    /// A value of one lane, zero-extended.
    #[inline]
    pub(crate) fn get(&self, place: Place, lane: usize) -> u64 {
        match place {
            Place::Narrow(slot, _) => self.n(slot)[lane].into(),
            Place::Wide(slot) => self.w(slot)[lane],
            Place::Nowhere => 0,
        }
    }

    /// Sets a value of one lane, truncated to its register.
    #[inline]
    pub(crate) fn set(&mut self, place: Place, lane: usize, value: u64) {
        match place {
            Place::Narrow(slot, mask) => self.narrow[usize::from(slot)][lane] = value as u32 & mask,
            Place::Wide(slot) => self.wide[usize::from(slot)][lane] = value,
            Place::Nowhere => {}
        }
    }
}

/// Rows of values that are the same in all lanes. Most are zero, and memory comes like that.
fn rows<T: Copy + Default + PartialEq>(values: &[T]) -> Vec<[T; LANES]> {
    let zero = T::default();
    let mut rows = vec![[zero; LANES]; values.len()];
    for (row, &value) in rows.iter_mut().zip(values) {
        if value != zero {
            *row = [value; LANES];
        }
    }
    rows
}

/// The bit of each lane: not every machine shifts by a number of its own in each part of a vector.
const BITS: [u32; LANES] = {
    let mut bits = [1; LANES];
    let mut lane = 0;
    while lane < LANES {
        bits[lane] <<= lane;
        lane += 1;
    }
    bits
};

/// Takes the lanes in `lanes` from `row`.
#[inline]
pub(crate) fn blend<T: Copy>(target: &mut [T; LANES], lanes: u32, row: &[T; LANES]) {
    if lanes == u32::MAX {
        *target = *row;
        return;
    }
    // Whoever leads a warp runs alone.
    if lanes.is_power_of_two() {
        let lane = lanes.trailing_zeros() as usize % LANES;
        target[lane] = row[lane];
        return;
    }
    for ((target, &value), bit) in target.iter_mut().zip(row).zip(BITS) {
        // A choice of values rather than a conditional store: this becomes vector code.
        *target = if lanes & bit != 0 { value } else { *target };
    }
}
