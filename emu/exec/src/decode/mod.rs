//! From a checked module to decoded instructions.

mod arithmetic;
mod control;
mod conversion;
mod liveness;
mod memory;
mod registers;

use crate::{
    CompileError,
    op::{Flag, Inst, Op, Place, Slot},
};
use registers::Registers;
pub(crate) use registers::{CARRY, Image};
use slabfence_emu_ptx::{Entry, Instruction, Modifier, Opcode, Operand, Type};

/// A decoded body and the register file it runs on.
#[derive(Debug)]
pub(crate) struct Code {
    /// The instructions; one more than the entry has, an `Exit` at the end.
    pub(crate) insts: Vec<Inst>,
    pub(crate) image: Image,
    pub(crate) static_shared: u32,
    /// Where dynamic shared memory starts.
    pub(crate) dynamic_shared_at: u32,
    pub(crate) local: u32,
    /// The most 32-bit registers that a thread needs at once.
    pub(crate) most_live: u32,
}

/// Decodes the body of an entry.
pub(crate) fn decode(entry: &Entry) -> Result<Code, CompileError> {
    let mut decoder = Decoder {
        registers: Registers::new(entry)?,
        line: entry.line,
    };
    let mut insts = Vec::with_capacity(entry.body.len() + 1);
    for instruction in &entry.body {
        decoder.line = instruction.line;
        let guard = instruction.guard.map(|guard| decoder.guard(guard));
        let op = decoder.instruction(instruction)?;
        insts.push(Inst {
            guard: guard.transpose()?,
            op,
        });
    }
    insts.push(Inst {
        guard: None,
        op: Op::Exit,
    });
    let most_live = decoder.registers.most_live;
    let layout = decoder.registers.layout;
    Ok(Code {
        insts,
        image: decoder.registers.image,
        static_shared: layout.shared_bytes,
        dynamic_shared_at: layout.dynamic_shared_at,
        local: layout.local_bytes,
        most_live,
    })
}

/// The state of decoding a body.
struct Decoder<'a> {
    registers: Registers<'a>,
    line: u32,
}

type Decoded<T> = Result<T, CompileError>;

impl Decoder<'_> {
    fn refuse<T>(&self, message: impl Into<String>) -> Decoded<T> {
        Err(CompileError {
            line: self.line,
            message: message.into(),
        })
    }

    fn instruction(&mut self, instruction: &Instruction) -> Decoded<Op> {
        use Opcode::*;
        match instruction.opcode {
            Ld | St | Atom | Red => self.memory(instruction),
            Fence | Membar | Bar | Barrier | Bra | Ret | Exit | Trap | Nanosleep
            | Griddepcontrol => self.control(instruction),
            Shfl | Vote | Match | Redux | Elect | Activemask => self.lanes(instruction),
            Mov | Cvt | Cvta | Isspacep | Selp | Slct => self.conversion(instruction),
            Setp | Set | Testp => self.comparison(instruction),
            And | Or | Xor | Not if instruction.types[0] == Type::Pred => self.logic(instruction),
            _ => self.arithmetic(instruction),
        }
    }

    fn guard(&mut self, guard: slabfence_emu_ptx::Guard) -> Decoded<Flag> {
        let slot = self.registers.flag(guard.register, self.line)?;
        Ok(Flag {
            slot,
            negated: guard.negated,
        })
    }

    /// Operand `at` as a predicate to read.
    fn flag(&mut self, instruction: &Instruction, at: usize) -> Decoded<Flag> {
        match self.operand(instruction, at)? {
            Operand::Register(id) => Ok(Flag {
                slot: self.registers.flag(*id, self.line)?,
                negated: false,
            }),
            Operand::Not(id) => Ok(Flag {
                slot: self.registers.flag(*id, self.line)?,
                negated: true,
            }),
            // A constant: the predicate that is never written, or its complement.
            Operand::Integer(value) => Ok(Flag {
                slot: self.registers.image.no_flag(),
                negated: *value != 0,
            }),
            _ => self.refuse("a predicate is needed"),
        }
    }

    /// Operand `at` as a predicate to write; `None` for `_`.
    fn flag_target(&mut self, operand: &Operand) -> Decoded<Option<Slot>> {
        match operand {
            Operand::Register(id) => self.registers.flag(*id, self.line).map(Some),
            Operand::Sink => Ok(None),
            _ => self.refuse("a predicate register is needed"),
        }
    }

    fn operand<'i>(&self, instruction: &'i Instruction, at: usize) -> Decoded<&'i Operand> {
        match instruction.operands.get(at) {
            Some(operand) => Ok(operand),
            None => self.refuse(format!(
                "`{}`: operand {} is missing",
                instruction.mnemonic(),
                at + 1
            )),
        }
    }

    /// Operand `at` as a value of exactly this type's width.
    fn source(&mut self, instruction: &Instruction, at: usize, ty: Type) -> Decoded<Place> {
        let operand = self.operand(instruction, at)?;
        self.registers.source(operand, ty, false, self.line)
    }

    /// The same where the register may be wider than the type.
    fn wider_source(&mut self, instruction: &Instruction, at: usize, ty: Type) -> Decoded<Place> {
        let operand = self.operand(instruction, at)?;
        self.registers.source(operand, ty, true, self.line)
    }

    /// Operand `at` as a 32-bit value.
    fn narrow(&mut self, instruction: &Instruction, at: usize, ty: Type) -> Decoded<Slot> {
        match self.source(instruction, at, ty)? {
            Place::Narrow(slot, _) => Ok(slot),
            _ => self.refuse("a 32-bit operand is needed"),
        }
    }

    /// Operand `at` as a 64-bit value.
    fn wide(&mut self, instruction: &Instruction, at: usize, ty: Type) -> Decoded<Slot> {
        match self.source(instruction, at, ty)? {
            Place::Wide(slot) => Ok(slot),
            _ => self.refuse("a 64-bit operand is needed"),
        }
    }

    /// The destination, of exactly this type's width.
    fn target(&mut self, instruction: &Instruction, ty: Type) -> Decoded<Place> {
        let operand = self.operand(instruction, 0)?;
        self.registers.target(operand, ty, false, self.line)
    }

    fn narrow_target(&mut self, instruction: &Instruction, ty: Type) -> Decoded<Slot> {
        match self.target(instruction, ty)? {
            Place::Narrow(slot, _) => Ok(slot),
            Place::Nowhere => Ok(self.registers.image.scratch_narrow()),
            Place::Wide(_) => self.refuse("a 32-bit destination is needed"),
        }
    }

    fn wide_target(&mut self, instruction: &Instruction, ty: Type) -> Decoded<Slot> {
        match self.target(instruction, ty)? {
            Place::Wide(slot) => Ok(slot),
            Place::Nowhere => Ok(self.registers.image.scratch_wide()),
            Place::Narrow(..) => self.refuse("a 64-bit destination is needed"),
        }
    }
}

/// The words among an instruction's modifiers that choose its operation, in this order, behind its opcode.
fn operation_name(instruction: &Instruction, choosing: &[Modifier]) -> String {
    let mut name = instruction.opcode.name().to_owned();
    for &modifier in choosing {
        if instruction.has(modifier) {
            name.push('.');
            name.push_str(modifier.name());
        }
    }
    name
}
