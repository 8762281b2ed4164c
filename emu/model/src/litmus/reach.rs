//! What a thread can still come to, from each of its instructions: who has to wait for whom.

use std::collections::BTreeSet;

use super::program::{Instruction, Operand, Thread};

/// Meeting points that are ahead of an instruction, itself included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ahead {
    barriers: BTreeSet<i64>,
    /// A barrier whose id is in a register.
    any_barrier: bool,
    pub(super) kernel: bool,
    signals: BTreeSet<usize>,
}

impl Ahead {
    pub(super) fn barrier(&self, id: i64) -> bool {
        self.any_barrier || self.barriers.contains(&id)
    }

    pub(super) fn signal(&self, edge: usize) -> bool {
        self.signals.contains(&edge)
    }

    fn add(&mut self, instruction: &Instruction) {
        match *instruction {
            Instruction::Barrier {
                id: Operand::Number(id),
                ..
            } => {
                self.barriers.insert(id);
            }
            Instruction::Barrier { .. } => self.any_barrier = true,
            Instruction::Kernel => self.kernel = true,
            Instruction::Signal { edge } => {
                self.signals.insert(edge);
            }
            _ => {}
        }
    }

    fn join(&mut self, other: &Self) {
        self.barriers.extend(&other.barriers);
        self.any_barrier |= other.any_barrier;
        self.kernel |= other.kernel;
        self.signals.extend(&other.signals);
    }
}

/// For every instruction of a thread, and for its end.
pub(super) fn ahead(thread: &Thread) -> Vec<Ahead> {
    let code = &thread.code;
    let mut result = vec![Ahead::default(); code.len() + 1];
    loop {
        let before = result.clone();
        for (pc, (instruction, _)) in code.iter().enumerate().rev() {
            let targets = match *instruction {
                Instruction::Jump { target } => vec![target],
                Instruction::Branch { target, .. } => vec![pc + 1, target],
                _ => vec![pc + 1],
            };
            let mut here = Ahead::default();
            here.add(instruction);
            for target in targets {
                here.join(&result[target]);
            }
            result[pc] = here;
        }
        if result == before {
            return result;
        }
    }
}
