//! Loads, stores and atomics.

use super::{Decoded, Decoder, conversion::space};
use crate::{
    AccessKind, Operation, Order, Scope, Space,
    op::{Atomic, MemoryOp, Op, Place, Where},
};
use slabfence_emu_ptx::{Base, Instruction, Modifier, Opcode, Operand, Symbol, Type};

impl Decoder<'_> {
    pub(super) fn memory(&mut self, instruction: &Instruction) -> Decoded<Op> {
        let ty = instruction.types[0];
        let (kind, address_at) = match instruction.opcode {
            Opcode::Ld => (AccessKind::Load, 1),
            Opcode::St => (AccessKind::Store, 0),
            Opcode::Atom => (AccessKind::ReadModifyWrite, 1),
            _ => (AccessKind::ReadModifyWrite, 0),
        };
        let place = instruction
            .modifiers
            .iter()
            .find_map(|&modifier| space(modifier))
            .map_or(Where::Generic, Where::In);
        let (base, offset) = self.base(instruction, address_at, place)?;
        let place = self.place_of_symbol(instruction, address_at, place);
        let atomic = match kind {
            AccessKind::ReadModifyWrite => Some(self.atomic(instruction, address_at)?),
            _ => None,
        };
        let registers = match kind {
            AccessKind::Store => self.elements(instruction, 1, ty)?,
            AccessKind::Load => self.elements(instruction, 0, ty)?,
            AccessKind::ReadModifyWrite if instruction.opcode == Opcode::Atom => {
                vec![self.target(instruction, ty)?]
            }
            AccessKind::ReadModifyWrite => Vec::new(),
        };
        let (order, scope) = order(instruction, kind);
        Ok(Op::Memory(Box::new(MemoryOp {
            kind,
            place,
            order,
            scope,
            nc: instruction.has(Modifier::Nc),
            size: ty.bytes(),
            elements: vector(instruction),
            signed: ty.is_signed(),
            base,
            offset,
            registers,
            atomic,
        })))
    }

    /// The register that an address starts from, and what is added to it.
    fn base(
        &mut self,
        instruction: &Instruction,
        at: usize,
        place: Where,
    ) -> Decoded<(Place, i64)> {
        let Operand::Address(base, offset) = self.operand(instruction, at)? else {
            return self.refuse("an address is needed");
        };
        match base {
            Base::Absolute => Ok((Place::Nowhere, *offset)),
            Base::Symbol(symbol @ Symbol::Global(_)) => {
                // The row already has the offset in it.
                Ok((
                    self.registers
                        .symbol(*symbol, *offset, Type::U64, self.line)?,
                    0,
                ))
            }
            Base::Symbol(symbol) => {
                let start = self.registers.offset(*symbol).unwrap_or(0);
                Ok((Place::Nowhere, offset.wrapping_add_unsigned(start)))
            }
            Base::Register(id) => {
                let operand = Operand::Register(*id);
                let narrow = matches!(
                    place,
                    Where::In(Space::Shared | Space::Local | Space::Param | Space::Const)
                );
                let ty = if narrow { Type::U32 } else { Type::U64 };
                Ok((
                    self.registers.source(&operand, ty, narrow, self.line)?,
                    *offset,
                ))
            }
        }
    }

    /// An address of a variable in an instruction without a space means the variable's space.
    fn place_of_symbol(&self, instruction: &Instruction, at: usize, place: Where) -> Where {
        match (place, instruction.operands.get(at)) {
            (Where::Generic, Some(Operand::Address(Base::Symbol(symbol), _))) => {
                Where::In(match symbol {
                    Symbol::Global(_) => Space::Global,
                    Symbol::Shared(_) | Symbol::DynamicShared => Space::Shared,
                    Symbol::Local(_) => Space::Local,
                    Symbol::Param(_) => Space::Param,
                })
            }
            _ => place,
        }
    }

    /// The registers of a load or store: one per element, two for 16 bytes.
    fn elements(&mut self, instruction: &Instruction, at: usize, ty: Type) -> Decoded<Vec<Place>> {
        let operand = self.operand(instruction, at)?;
        let parts = match operand {
            Operand::Vector(parts) => parts.as_slice(),
            single => std::slice::from_ref(single),
        };
        let wanted = vector(instruction);
        if parts.len() != wanted as usize || ty.bytes() * wanted > 32 {
            return self.refuse(format!(
                "`{}`: {} elements do not fit",
                instruction.mnemonic(),
                parts.len()
            ));
        }
        if ty == Type::B128 {
            return Ok(self.registers.halves(operand, self.line)?.to_vec());
        }
        let load = instruction.opcode == Opcode::Ld;
        let place = |part| match load {
            true => self.registers.target(part, ty, true, self.line),
            false => self.registers.source(part, ty, true, self.line),
        };
        parts.iter().map(place).collect()
    }

    fn atomic(&mut self, instruction: &Instruction, address_at: usize) -> Decoded<Atomic> {
        let ty = instruction.types[0];
        let Some(operation) = instruction
            .modifiers
            .iter()
            .find_map(|&modifier| operation(modifier, ty))
        else {
            return self.refuse(format!("`{}`: no operation", instruction.mnemonic()));
        };
        let first = self.source(instruction, address_at + 1, ty)?;
        let (expected, operand) = match operation {
            Operation::Cas => (first, self.source(instruction, address_at + 2, ty)?),
            _ => (Place::Nowhere, first),
        };
        Ok(Atomic {
            operation,
            operand,
            expected,
            returns: instruction.opcode == Opcode::Atom,
        })
    }
}

fn vector(instruction: &Instruction) -> u32 {
    [(Modifier::V2, 2), (Modifier::V4, 4), (Modifier::V8, 8)]
        .into_iter()
        .find_map(|(modifier, elements)| instruction.has(modifier).then_some(elements))
        .unwrap_or(1)
}

fn operation(modifier: Modifier, ty: Type) -> Option<Operation> {
    let signed = ty.is_signed();
    Some(match modifier {
        Modifier::Add if ty == Type::F32 => Operation::AddF32,
        Modifier::Add => Operation::Add,
        Modifier::And => Operation::And,
        Modifier::Or => Operation::Or,
        Modifier::Xor => Operation::Xor,
        Modifier::Min => {
            if signed {
                Operation::MinS
            } else {
                Operation::MinU
            }
        }
        Modifier::Max => {
            if signed {
                Operation::MaxS
            } else {
                Operation::MaxU
            }
        }
        Modifier::Inc => Operation::Inc,
        Modifier::Dec => Operation::Dec,
        Modifier::Exch => Operation::Exch,
        Modifier::Cas => Operation::Cas,
        _ => return None,
    })
}

/// Order and scope. Atomics are relaxed at `.gpu` unless they say more; volatile means the system.
fn order(instruction: &Instruction, kind: AccessKind) -> (Order, Option<Scope>) {
    let scope = scope(instruction);
    let order = instruction
        .modifiers
        .iter()
        .find_map(|modifier| match modifier {
            Modifier::Volatile => Some(Order::Volatile),
            Modifier::Relaxed => Some(Order::Relaxed),
            Modifier::Acq => Some(Order::Acquire),
            Modifier::Release => Some(Order::Release),
            Modifier::AcqRel => Some(Order::AcqRel),
            _ => None,
        });
    match order {
        Some(Order::Volatile) => (Order::Volatile, Some(Scope::Sys)),
        Some(order) => (order, scope.or(Some(Scope::Gpu))),
        None if kind == AccessKind::ReadModifyWrite => (Order::Relaxed, scope.or(Some(Scope::Gpu))),
        None => (Order::Weak, None),
    }
}

pub(super) fn scope(instruction: &Instruction) -> Option<Scope> {
    instruction
        .modifiers
        .iter()
        .find_map(|modifier| match modifier {
            Modifier::Cta | Modifier::Cluster => Some(Scope::Cta),
            Modifier::Gpu | Modifier::Gl => Some(Scope::Gpu),
            Modifier::Sys => Some(Scope::Sys),
            _ => None,
        })
}
