//! Which registers can share a row: nvcc's PTX names a new register for every value.
//!
//! A thread's registers are its own lane of the rows, so what counts is when *one* thread needs a value, however the
//! lanes diverge.

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
    let mut changed = true;
    while changed {
        changed = false;
        for (at, instruction) in entry.body.iter().enumerate().rev() {
            let mut now = vec![0; words];
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
                needed[at] = now;
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
    set.iter().enumerate().flat_map(|(word, &bits)| {
        (0..64)
            .filter(move |bit| bits >> bit & 1 != 0)
            .map(move |bit| 64 * word + bit)
    })
}
