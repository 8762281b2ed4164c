//! Which registers can share a row: nvcc's PTX names a new register for every value.
//!
//! A thread's registers are its own lane of the rows, so what counts is when *one* thread needs a value, however the
//! lanes diverge.

use std::iter;

use slabfence_emu_ptx::{Entry, Instruction, Opcode, Operand};

/// When every register of an entry is needed.
#[derive(Debug)]
pub(super) struct Liveness {
    /// Per register: the first and last instruction at which it is written, read or kept. `None`: never.
    pub(super) spans: Vec<Option<(u32, u32)>>,
    /// The most 32-bit registers that are needed at once.
    pub(super) most: u32,
}

/// A set of registers.
type Set = Vec<u64>;

impl Liveness {
    pub(super) fn of(entry: &Entry) -> Self {
        let needed = needed_before(entry);
        let mut liveness = Self {
            spans: vec![None; entry.registers.len()],
            most: 0,
        };
        for (at, instruction) in entry.body.iter().enumerate() {
            let mut words = 0;
            for register in members(&needed[at]) {
                liveness.extend(register, at);
                words += entry.registers[register].ty.bytes().div_ceil(4);
            }
            for id in instruction.written() {
                liveness.extend(id.0 as usize, at);
            }
            liveness.most = liveness.most.max(words);
        }
        liveness
    }

    fn extend(&mut self, register: usize, at: usize) {
        let at = at as u32;
        let (first, _) = self.spans[register].unwrap_or((at, at));
        self.spans[register] = Some((first, at));
    }

    /// Rows for the registers in `which`, and how many there are. Registers whose spans meet have different rows:
    /// what an instruction writes never lies where it reads.
    pub(super) fn rows(&self, which: impl Iterator<Item = usize>) -> (Vec<(usize, usize)>, usize) {
        let mut order: Vec<_> = which
            .filter_map(|register| Some((self.spans[register]?, register)))
            .collect();
        order.sort_unstable();
        let mut ends: Vec<u32> = Vec::new();
        let mut rows = Vec::with_capacity(order.len());
        for ((first, last), register) in order {
            let row = ends.iter().position(|&end| end < first).unwrap_or_else(|| {
                ends.push(0);
                ends.len() - 1
            });
            ends[row] = last;
            rows.push((register, row));
        }
        (rows, ends.len())
    }
}

/// Per instruction: the registers whose values are needed before it. Backwards until nothing changes.
fn needed_before(entry: &Entry) -> Vec<Set> {
    let words = entry.registers.len().div_ceil(64);
    let mut needed = vec![vec![0; words]; entry.body.len() + 1];
    let effects: Vec<_> = entry
        .body
        .iter()
        .map(|instruction| (instruction.read(), instruction.written()))
        .collect();
    let (mut changed, mut now) = (true, vec![0; words]);
    while changed {
        changed = false;
        for (at, instruction) in entry.body.iter().enumerate().rev() {
            now.fill(0);
            for next in successors(instruction, at) {
                for (now, next) in now.iter_mut().zip(&needed[next]) {
                    *now |= next;
                }
            }
            let (read, written) = &effects[at];
            if instruction.guard.is_none() {
                for id in written {
                    now[id.0 as usize / 64] &= !(1 << (id.0 % 64));
                }
            }
            for id in read {
                now[id.0 as usize / 64] |= 1 << (id.0 % 64);
            }
            if now != needed[at] {
                needed[at].copy_from_slice(&now);
                changed = true;
            }
        }
    }
    needed
}

/// Where a thread goes from an instruction.
fn successors(instruction: &Instruction, at: usize) -> impl Iterator<Item = usize> {
    let target = match (instruction.opcode, instruction.operands.first()) {
        (Opcode::Bra, Some(Operand::Label(target))) => Some(*target as usize),
        _ => None,
    };
    let leaves = matches!(
        instruction.opcode,
        Opcode::Bra | Opcode::Ret | Opcode::Exit | Opcode::Trap
    );
    let falls_through = !leaves || instruction.guard.is_some();
    target.into_iter().chain(falls_through.then_some(at + 1))
}

fn members(set: &Set) -> impl Iterator<Item = usize> + '_ {
    let rest = |bits: u64| (bits != 0).then_some(bits);
    set.iter().enumerate().flat_map(move |(word, &bits)| {
        // One bit after the other: of hundreds of registers a few are needed at once.
        let bits = iter::successors(rest(bits), move |bits| rest(bits & (bits - 1)));
        bits.map(move |bits| 64 * word + bits.trailing_zeros() as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn liveness(body: &str) -> (Liveness, usize) {
        let text = format!(
            ".version 9.0 .target sm_90 .address_size 64 .entry k() {{
             .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<9>; {body} }}"
        );
        let module = slabfence_emu_ptx::parse(&text).expect("the text is right");
        let entry = &module.entries[0];
        let liveness = Liveness::of(entry);
        let narrow = (0..entry.registers.len()).filter(|&at| entry.registers[at].ty.bytes() == 4);
        let (_, rows) = liveness.rows(narrow);
        (liveness, rows)
    }

    #[test]
    fn values_one_after_the_other_share_a_row() {
        // A value and its successor have different rows; the third takes the row of the first.
        let (liveness, rows) = liveness(
            "mov.u32 %r1, 1; add.u32 %r2, %r1, 1; add.u32 %r3, %r2, 1; add.u32 %r4, %r3, 1; mov.u64 %d1, 0;
             st.global.u32 [%d1], %r4;",
        );
        assert_eq!(rows, 2);
        assert_eq!(
            liveness.spans,
            [
                Some((0, 1)),
                Some((1, 2)),
                Some((2, 3)),
                Some((3, 5)),
                Some((4, 5))
            ]
        );
        // Before the store: one word and an address.
        assert_eq!(liveness.most, 3);
    }

    #[test]
    fn what_a_loop_brings_round_is_kept_to_its_end() {
        // `%r1` is read at the top of the next round: its row is taken up to the branch. `%r3` follows `%r2`.
        let (liveness, rows) = liveness(
            "mov.u32 %r1, 0; LOOP: add.u32 %r2, %r1, 1; setp.lt.u32 %p1, %r2, 9; mov.u32 %r3, 5;
             setp.lt.u32 %p2, %r3, 9; @%p1 bra LOOP;",
        );
        assert_eq!(liveness.spans[0], Some((0, 5)));
        assert_eq!(rows, 2);
    }

    #[test]
    fn a_guarded_write_does_not_end_the_old_value() {
        let (liveness, _) =
            liveness("mov.u32 %r1, 0; LOOP: @%p1 mov.u32 %r1, 1; mov.u64 %d1, 0; bra LOOP;");
        // Needed at the top of the loop whatever happened before: by the lanes that the guard leaves out.
        assert_eq!(liveness.spans[0], Some((0, 1)));
        let (liveness, _) = self::liveness(
            "mov.u32 %r1, 0; LOOP: @%p1 mov.u32 %r1, 1; st.global.u32 [0], %r1; mov.u64 %d1, 0; bra LOOP;",
        );
        assert_eq!(liveness.spans[0], Some((0, 4)));
    }
}
