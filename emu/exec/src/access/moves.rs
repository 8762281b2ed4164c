//! Loads and stores.

use super::{Covered, Memories, Notes, Part, converted, peek, poke};
use crate::{
    AccessKind, GlobalMemory, Space,
    memory::Word,
    op::{MemoryOp, Place},
    registers::lanes_of,
    value::{LANES, Wide},
};

/// Runs a generic method for the word of so many bytes.
macro_rules! by_size {
    ($size:expr, $this:ident . $method:ident ($($argument:expr),*)) => {
        match $size {
            1 => $this.$method::<u8>($($argument),*),
            2 => $this.$method::<u16>($($argument),*),
            4 => $this.$method::<u32>($($argument),*),
            _ => $this.$method::<u64>($($argument),*),
        }
    };
}

impl<M: GlobalMemory> Memories<'_, M> {
    /// Loads or stores device memory.
    pub(super) fn move_covered(
        &mut self,
        op: &MemoryOp,
        part: &Part<'_>,
        covered: &Covered<'_>,
        notes: &mut Notes,
    ) {
        if op.size == 16 {
            return self.move_pairs(op, part, covered, notes);
        }
        by_size!(
            op.size,
            self.move_covered_elements(op, part, covered, notes)
        );
    }

    fn move_covered_elements<T: Word>(
        &mut self,
        op: &MemoryOp,
        part: &Part<'_>,
        covered: &Covered<'_>,
        notes: &mut Notes,
    ) {
        for (element, &place) in op.registers.iter().enumerate() {
            let offset = (element * size_of::<T>()) as u64;
            if op.kind == AccessKind::Store {
                let values = self.fetch::<T>(place);
                covered.store(offset, &values);
                notes.stored(covered.lanes(), element, || converted(&values, Word::wide));
            } else {
                let values = covered.load::<T>(offset);
                self.deliver(place, op.signed, covered.lanes(), &values);
                notes.loaded(op, part, covered.lanes(), element, || {
                    converted(&values, Word::wide)
                });
            }
        }
    }

    /// 16 bytes as one access.
    fn move_pairs(
        &mut self,
        op: &MemoryOp,
        part: &Part<'_>,
        covered: &Covered<'_>,
        notes: &mut Notes,
    ) {
        let places = [0, 1].map(|half| op.registers.get(half).copied().unwrap_or(Place::Nowhere));
        if op.kind == AccessKind::Store {
            let rows = places.map(|place| self.fetch::<u64>(place));
            covered.store_pairs(&rows);
            for (half, row) in rows.iter().enumerate() {
                notes.stored(covered.lanes(), half, || *row);
            }
        } else {
            for (half, row) in covered.load_pairs().iter().enumerate() {
                self.deliver(places[half], false, covered.lanes(), row);
                notes.loaded(op, part, covered.lanes(), half, || *row);
            }
        }
    }

    /// Loads or stores memory that the block owns. (Of 16 bytes, the halves: nobody can look in between.)
    pub(super) fn move_own(&mut self, op: &MemoryOp, part: &Part<'_>, notes: &mut Notes) {
        let size = op.size.min(8);
        by_size!(size, self.move_own_elements(op, part, notes));
    }

    fn move_own_elements<T: Word>(&mut self, op: &MemoryOp, part: &Part<'_>, notes: &mut Notes) {
        for (element, &place) in op.registers.iter().enumerate() {
            let offset = element * size_of::<T>();
            let at =
                |lane: usize, stride: usize| part.addresses[lane] as usize + offset + lane * stride;
            if op.kind == AccessKind::Store {
                let values = self.fetch::<T>(place);
                let (bytes, stride) = self.own(part.space);
                for lane in lanes_of(part.lanes) {
                    poke(bytes, at(lane, stride), values[lane]);
                }
                notes.stored(part.lanes, element, || converted(&values, Word::wide));
            } else {
                let mut values = [T::default(); LANES];
                let (bytes, stride) = match part.space {
                    Space::Param => (self.params, 0),
                    space => {
                        let (bytes, stride) = self.own(space);
                        (&*bytes, stride)
                    }
                };
                for lane in lanes_of(part.lanes) {
                    values[lane] = peek(bytes, at(lane, stride));
                }
                self.deliver(place, op.signed, part.lanes, &values);
                notes.loaded(op, part, part.lanes, element, || {
                    converted(&values, Word::wide)
                });
            }
        }
    }

    /// A register as values to store.
    fn fetch<T: Word>(&self, place: Place) -> [T; LANES] {
        match place {
            Place::Narrow(slot, _) => {
                converted(self.registers.n(slot), |value: u32| T::of(value.into()))
            }
            Place::Wide(slot) => converted(self.registers.w(slot), T::of),
            Place::Nowhere => [T::default(); LANES],
        }
    }

    /// Loaded values to a register, extended to its width.
    fn deliver<T: Word>(&mut self, place: Place, signed: bool, lanes: u32, values: &[T; LANES]) {
        let unused = 64 - 8 * size_of::<T>() as u32;
        let extend = |value: T| ((value.wide() << unused) as i64 >> unused) as u64;
        match place {
            Place::Narrow(slot, mask) => {
                let row: [u32; LANES] = if signed {
                    converted(values, |value| extend(value) as u32 & mask)
                } else {
                    converted(values, |value| value.wide() as u32 & mask)
                };
                self.registers.put_narrow(slot, lanes, &row);
            }
            Place::Wide(slot) => {
                let row: Wide = if signed {
                    converted(values, extend)
                } else {
                    converted(values, Word::wide)
                };
                self.registers.put_wide(slot, lanes, &row);
            }
            Place::Nowhere => {}
        }
    }
}
