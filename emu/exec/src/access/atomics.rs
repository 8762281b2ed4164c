//! Read-modify-writes, lane after lane.

use super::{Covered, Memories, Notes, Part, peek, poke};
use crate::{
    GlobalMemory, Operation,
    memory::{Word, modified},
    op::{Atomic, MemoryOp},
    registers::lanes_of,
    value::{LANES, Wide, f32s},
};

impl<M: GlobalMemory> Memories<'_, M> {
    /// In device memory.
    pub(super) fn modify_covered(
        &mut self,
        op: &MemoryOp,
        atomic: &Atomic,
        part: &Part<'_>,
        covered: &Covered<'_>,
        notes: &mut Notes,
    ) {
        let mut old = [0; LANES];
        for lane in lanes_of(covered.lanes()) {
            let operand = self.registers.get(atomic.operand, lane);
            let expected = self.registers.get(atomic.expected, lane);
            old[lane] = match op.size {
                2 => covered
                    .modify::<u16>(lane, atomic.operation, operand, expected)
                    .wide(),
                4 => covered
                    .modify::<u32>(lane, atomic.operation, operand, expected)
                    .wide(),
                _ => covered
                    .modify::<u64>(lane, atomic.operation, operand, expected)
                    .wide(),
            };
        }
        self.finish(op, atomic, part, covered.lanes(), &old, notes);
    }

    /// In memory that the block owns.
    pub(super) fn modify_own(
        &mut self,
        op: &MemoryOp,
        atomic: &Atomic,
        part: &Part<'_>,
        notes: &mut Notes,
    ) {
        let mut old = [0; LANES];
        for lane in lanes_of(part.lanes) {
            let operand = self.registers.get(atomic.operand, lane);
            let expected = self.registers.get(atomic.expected, lane);
            let (bytes, stride) = self.own(part.space);
            let at = part.addresses[lane] as usize + lane * stride;
            old[lane] = match op.size {
                2 => modify::<u16>(bytes, at, atomic.operation, operand, expected),
                4 => modify::<u32>(bytes, at, atomic.operation, operand, expected),
                _ => modify::<u64>(bytes, at, atomic.operation, operand, expected),
            };
        }
        self.finish(op, atomic, part, part.lanes, &old, notes);
    }

    fn finish(
        &mut self,
        op: &MemoryOp,
        atomic: &Atomic,
        part: &Part<'_>,
        lanes: u32,
        old: &Wide,
        notes: &mut Notes,
    ) {
        let mut operands = [0; LANES];
        for lane in lanes_of(lanes) {
            operands[lane] = self.registers.get(atomic.operand, lane);
        }
        notes.stored(lanes, 0, || operands);
        if notes.recording {
            for lane in lanes_of(lanes) {
                let expected = self.registers.get(atomic.expected, lane);
                let kept = keeps(op, atomic.operation, old[lane], operands[lane], expected);
                notes.kept |= u32::from(kept) << lane;
            }
        }
        if atomic.returns {
            for lane in lanes_of(lanes) {
                if let Some(&place) = op.registers.first() {
                    self.registers.set(place, lane, old[lane]);
                }
            }
            notes.loaded(op, part, lanes, 0, || *old);
        }
    }
}

/// Whether an operation leaves a value as it was, other than by storing it again.
fn keeps(op: &MemoryOp, operation: Operation, old: u64, operand: u64, expected: u64) -> bool {
    let mask = u64::MAX >> (64 - 8 * op.size.min(8));
    match operation {
        Operation::Cas => old & mask != expected & mask,
        Operation::Exch => false,
        _ => modified(operation, old, operand, 8 * op.size) & mask == old & mask,
    }
}

fn modify<T: Word>(
    bytes: &mut [u8],
    at: usize,
    operation: Operation,
    operand: u64,
    expected: u64,
) -> u64 {
    let old = peek::<T>(bytes, at).wide();
    let new = match operation {
        Operation::Cas if old != expected => old,
        // Unlike in global memory, subnormal numbers are kept.
        Operation::AddF32 => {
            f32s::canonical(f32::from_bits(old as u32) + f32::from_bits(operand as u32)).into()
        }
        _ => modified(operation, old, operand, 8 * size_of::<T>() as u32),
    };
    poke(bytes, at, T::of(new));
    old
}
