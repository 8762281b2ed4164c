//! Where values come from, and where control can go.

use std::collections::BTreeSet;

use slabfence_emu_ptx::{
    Base, Entry, Instruction, Modifier, Opcode, Operand, RegisterId, Symbol, Type,
};

use crate::entry::Family;
use crate::field::Field;

/// An entry with the questions that edits ask about it. Positions are indices into its body.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) entry: Entry,
    family: Family,
    /// Writers of each register.
    writers: Vec<Vec<usize>>,
    /// Who can come before each position.
    before: Vec<Vec<usize>>,
}

impl Flow {
    pub(crate) fn new(entry: Entry, family: Family) -> Flow {
        let mut writers = vec![Vec::new(); entry.registers.len()];
        let mut before = vec![Vec::new(); entry.body.len() + 1];
        for (at, inst) in entry.body.iter().enumerate() {
            for register in inst.written() {
                writers[register.0 as usize].push(at);
            }
            let always = inst.guard.is_none();
            let ends = matches!(inst.opcode, Opcode::Bra | Opcode::Ret | Opcode::Exit);
            if !(ends && always) {
                before[at + 1].push(at);
            }
            if let (Opcode::Bra, [Operand::Label(to)]) = (inst.opcode, inst.operands.as_slice()) {
                before[*to as usize].push(at);
            }
        }
        Flow {
            entry,
            family,
            writers,
            before,
        }
    }

    pub(crate) fn at(&self, at: usize) -> &Instruction {
        &self.entry.body[at]
    }

    /// Positions of instructions with this opcode and all these modifiers.
    pub(crate) fn find(&self, opcode: Opcode, modifiers: &[Modifier]) -> Vec<usize> {
        let wanted =
            |inst: &Instruction| inst.opcode == opcode && modifiers.iter().all(|&m| inst.has(m));
        (0..self.entry.body.len())
            .filter(|&at| wanted(self.at(at)))
            .collect()
    }

    /// The same, of those whose address may come from a field.
    pub(crate) fn find_at(
        &self,
        opcode: Opcode,
        modifiers: &[Modifier],
        field: impl Fn(Field) -> bool,
    ) -> Vec<usize> {
        let mut found = self.find(opcode, modifiers);
        found.retain(|&at| self.reaches(at).into_iter().any(&field));
        found
    }

    pub(crate) fn writers(&self, register: RegisterId) -> &[usize] {
        &self.writers[register.0 as usize]
    }

    /// The one instruction that writes a register.
    pub(crate) fn writer(&self, register: RegisterId) -> Option<usize> {
        match self.writers(register) {
            &[at] => Some(at),
            _ => None,
        }
    }

    /// The constant in a register or operand.
    pub(crate) fn constant(&self, operand: &Operand) -> Option<u64> {
        match operand {
            Operand::Integer(value) => Some(*value),
            Operand::Register(register) => {
                let inst = self.at(self.writer(*register)?);
                match inst.operands.as_slice() {
                    [_, Operand::Integer(value)] if inst.opcode == Opcode::Mov => Some(*value),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The base register of a memory operand.
    pub(crate) fn base(&self, at: usize) -> Option<RegisterId> {
        self.at(at)
            .operands
            .iter()
            .find_map(|operand| match operand {
                Operand::Address(Base::Register(register), _) => Some(*register),
                _ => None,
            })
    }

    /// The fields that the address of a memory instruction may come from.
    pub(crate) fn reaches(&self, at: usize) -> BTreeSet<Field> {
        self.base(at)
            .map(|base| self.sources(base))
            .unwrap_or_default()
    }

    /// The fields that a value may come from. What is loaded from memory other than parameters ends the search.
    pub(crate) fn sources(&self, register: RegisterId) -> BTreeSet<Field> {
        let mut found = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut open = vec![register];
        while let Some(register) = open.pop() {
            if !seen.insert(register) || self.entry.registers[register.0 as usize].ty == Type::Pred
            {
                continue;
            }
            for &at in self.writers(register) {
                let inst = self.at(at);
                match inst.opcode {
                    Opcode::Ld if inst.has(Modifier::Param) => {
                        let offsets = self.parameter_offsets(at, register);
                        found.extend(
                            offsets
                                .into_iter()
                                .filter_map(|offset| Field::at(self.family, offset)),
                        );
                    }
                    Opcode::Ld | Opcode::Atom => {}
                    _ => open.extend(inst.read()),
                }
            }
        }
        found
    }

    /// Where in the parameter block a load of it may read, for one of its destinations.
    fn parameter_offsets(&self, at: usize, register: RegisterId) -> Vec<usize> {
        let inst = self.at(at);
        let element = match &inst.operands[0] {
            Operand::Vector(parts) => parts
                .iter()
                .position(|part| *part == Operand::Register(register)),
            _ => Some(0),
        };
        let bytes = inst.types.first().map_or(0, |ty| ty.bytes() as usize);
        let within = element.unwrap_or(0) * bytes;
        match inst.operands.get(1) {
            Some(Operand::Address(Base::Symbol(Symbol::Param(_)), offset)) => {
                vec![*offset as usize + within]
            }
            Some(Operand::Address(Base::Register(base), offset)) => {
                let bases = self.block_offsets(*base, &mut BTreeSet::new());
                bases
                    .into_iter()
                    .map(|base| (base + offset) as usize + within)
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// The constant distance from the start of the parameter block that a pointer into it may have. Variable parts count
    /// as nothing: they step over whole peers.
    fn block_offsets(
        &self,
        register: RegisterId,
        seen: &mut BTreeSet<RegisterId>,
    ) -> BTreeSet<i64> {
        if !seen.insert(register) {
            return BTreeSet::new();
        }
        let mut found = BTreeSet::new();
        for &at in self.writers(register) {
            let inst = self.at(at);
            match (inst.opcode, inst.operands.as_slice()) {
                (Opcode::Mov, [_, Operand::Symbol(Symbol::Param(_), addend)]) => {
                    found.insert(*addend);
                }
                (Opcode::Mov, [_, Operand::Register(from)]) => {
                    found.extend(self.block_offsets(*from, seen))
                }
                (Opcode::Add, [_, Operand::Register(from), Operand::Integer(more)]) => {
                    let bases = self.block_offsets(*from, seen);
                    found.extend(
                        bases
                            .into_iter()
                            .map(|base| base.wrapping_add(*more as i64)),
                    );
                }
                (Opcode::Add, [_, Operand::Register(one), Operand::Register(other)]) => {
                    found.extend(self.block_offsets(*one, seen));
                    found.extend(self.block_offsets(*other, seen));
                }
                _ => {}
            }
        }
        found
    }

    /// Where in the channel's `LocalBlock` a memory instruction goes.
    pub(crate) fn local_word(&self, at: usize) -> Option<usize> {
        let mut register = self.base(at)?;
        let mut offset = 0;
        loop {
            let inst = self.at(self.writer(register)?);
            match (inst.opcode, inst.operands.as_slice()) {
                (Opcode::Add, [_, Operand::Register(from), Operand::Integer(more)]) => {
                    offset += *more as usize;
                    register = *from;
                }
                (Opcode::Ld, _) => {
                    return (self.sources(register) == BTreeSet::from([Field::Local]))
                        .then_some(offset);
                }
                _ => return None,
            }
        }
    }

    /// Whether control can come back to a position.
    pub(crate) fn in_loop(&self, at: usize) -> bool {
        self.leads(at, at)
    }

    /// Whether control can go from each of two positions to the other.
    pub(crate) fn in_one_loop(&self, one: usize, other: usize) -> bool {
        self.leads(one, other) && self.leads(other, one)
    }

    /// Whether control can go from a position to another.
    fn leads(&self, from: usize, to: usize) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = self.before[to].clone();
        while let Some(position) = open.pop() {
            if position == from {
                return true;
            }
            if seen.insert(position) {
                open.extend(&self.before[position]);
            }
        }
        false
    }

    /// The guarded branch that stands before a position on the only way to it.
    pub(crate) fn branch_before(&self, mut at: usize) -> Option<usize> {
        loop {
            let &[before] = self.before[at].as_slice() else {
                return None;
            };
            let inst = self.at(before);
            if inst.opcode == Opcode::Bra && inst.guard.is_some() {
                return Some(before);
            }
            at = before;
        }
    }
}
