//! Arithmetic, bits, comparison and predicate logic.

use super::{Decoded, Decoder, operation_name};
use crate::{
    Relation,
    op::{CarryKind, CarryOp, FloatOp, HalfOp, Op, Place, Question, Verdict, VerdictTarget},
    value::{f32s, halves, ints, other_floats, rounding::Rounding, row},
};
use slabfence_emu_ptx::{Instruction, Modifier, Opcode, Operand, Type};

/// Modifiers that make another operation of an opcode.
const CHOOSING: &[Modifier] = &[
    Modifier::Lo,
    Modifier::Hi,
    Modifier::Wide,
    Modifier::L,
    Modifier::R,
    Modifier::Clamp,
    Modifier::Wrap,
    Modifier::Shiftamt,
    Modifier::F4e,
    Modifier::B4e,
    Modifier::Rc8,
    Modifier::Ecl,
    Modifier::Ecr,
    Modifier::Rc16,
];

impl Decoder<'_> {
    pub(super) fn arithmetic(&mut self, instruction: &Instruction) -> Decoded<Op> {
        let ty = instruction.types[0];
        match ty {
            _ if instruction.opcode == Opcode::Copysign => {
                let sources = self.places(instruction, [ty; 4])?;
                let target = self.target(instruction, ty)?;
                Ok(Op::Scalar(Box::new((
                    other_floats::copysign(ty),
                    target,
                    sources,
                ))))
            }
            Type::F32 => self.float(instruction),
            Type::F64 => {
                let Some(function) = other_floats::f64_scalar(instruction.opcode.name()) else {
                    return self.unknown(instruction);
                };
                let sources = self.places(instruction, [ty; 4])?;
                Ok(Op::Scalar(Box::new((
                    function,
                    self.target(instruction, ty)?,
                    sources,
                ))))
            }
            ty if ty.is_float() => self.half(instruction, ty),
            ty => self.integer(instruction, ty),
        }
    }

    fn unknown<T>(&self, instruction: &Instruction) -> Decoded<T> {
        self.refuse(format!("`{}` is not supported", instruction.mnemonic()))
    }

    /// The sources behind the destination, each of its own type.
    fn places(&mut self, instruction: &Instruction, types: [Type; 4]) -> Decoded<[Place; 4]> {
        let mut places = [Place::Nowhere; 4];
        for (at, place) in places
            .iter_mut()
            .enumerate()
            .take(instruction.operands.len() - 1)
        {
            *place = self.source(instruction, at + 1, types[at])?;
        }
        Ok(places)
    }

    fn integer(&mut self, instruction: &Instruction, ty: Type) -> Decoded<Op> {
        let carries = matches!(
            instruction.opcode,
            Opcode::Addc | Opcode::Subc | Opcode::Madc
        );
        if carries || instruction.has(Modifier::Cc) {
            return self.carry(instruction, ty);
        }
        let (target, sources) =
            integer_types(instruction.opcode, instruction.has(Modifier::Wide), ty);
        let mut name = operation_name(instruction, CHOOSING);
        if instruction.has(Modifier::Sat) {
            name.push_str(".sat");
        }
        let places = self.places(instruction, sources)?;
        let target = self.target(instruction, target)?;
        if let Some(op) = fast_integer(&name, ty, target, places) {
            return Ok(op);
        }
        match ints::scalar(&name, ty) {
            Some(function) => Ok(Op::Scalar(Box::new((function, target, places)))),
            None => self.unknown(instruction),
        }
    }

    fn carry(&mut self, instruction: &Instruction, ty: Type) -> Decoded<Op> {
        let kind = match instruction.opcode {
            Opcode::Add | Opcode::Addc => CarryKind::Add,
            Opcode::Sub | Opcode::Subc => CarryKind::Sub,
            _ if instruction.has(Modifier::Lo) => CarryKind::MadLo,
            _ => CarryKind::MadHi {
                signed: ty.is_signed(),
            },
        };
        let [a, b, c, _] = self.places(instruction, [ty; 4])?;
        Ok(Op::Carry(Box::new(CarryOp {
            kind,
            reads: matches!(
                instruction.opcode,
                Opcode::Addc | Opcode::Subc | Opcode::Madc
            ),
            writes: instruction.has(Modifier::Cc),
            target: self.target(instruction, ty)?,
            sources: [a, b, c],
        })))
    }

    fn float(&mut self, instruction: &Instruction) -> Decoded<Op> {
        let target = self.narrow_target(instruction, Type::F32)?;
        let mut sources = [target; 3];
        let count = instruction.operands.len() - 1;
        for (at, source) in sources.iter_mut().enumerate().take(count) {
            *source = self.narrow(instruction, at + 1, Type::F32)?;
        }
        let [a, b, _] = sources;
        let rounding = Rounding::among(&instruction.modifiers).unwrap_or(Rounding::Nearest);
        let (flush, saturate) = (
            instruction.has(Modifier::Ftz),
            instruction.has(Modifier::Sat),
        );
        let name = operation_name(instruction, &[Modifier::Nan, Modifier::XorSignAbs]);
        if rounding == Rounding::Nearest && !flush && !saturate {
            if matches!(instruction.opcode, Opcode::Fma | Opcode::Mad) {
                return Ok(Op::Narrow3(f32s::fast_fma(), target, sources));
            }
            if let Some(function) = f32s::fast2(&name).filter(|_| count == 2) {
                return Ok(Op::Narrow2(function, target, [a, b]));
            }
            if let Some(function) = f32s::fast1(&name).filter(|_| count == 1) {
                return Ok(Op::Narrow1(function, target, a));
            }
        }
        match f32s::scalar(&name) {
            Some(function) => Ok(Op::Float(Box::new(FloatOp {
                function,
                rounding,
                flush,
                saturate,
                target,
                sources,
            }))),
            None => self.unknown(instruction),
        }
    }

    fn half(&mut self, instruction: &Instruction, ty: Type) -> Decoded<Op> {
        let target = self.narrow_target(instruction, ty)?;
        let mut sources = [target; 3];
        for (at, source) in sources
            .iter_mut()
            .enumerate()
            .take(instruction.operands.len() - 1)
        {
            *source = self.narrow(instruction, at + 1, ty)?;
        }
        let name = operation_name(instruction, &[Modifier::Nan, Modifier::Relu]);
        match halves::scalar(&name) {
            Some(function) => Ok(Op::Half(Box::new(HalfOp {
                function,
                ty,
                target,
                sources,
            }))),
            None => self.unknown(instruction),
        }
    }

    pub(super) fn comparison(&mut self, instruction: &Instruction) -> Decoded<Op> {
        let Some(&ty) = instruction.types.last() else {
            return self.unknown(instruction);
        };
        let (mut combine, mut cmp) = (None, None);
        for &modifier in &instruction.modifiers {
            match modifier {
                Modifier::And | Modifier::Or | Modifier::Xor => combine = Some(logic_of(modifier)),
                Modifier::Ftz => {}
                _ => cmp = Some(modifier),
            }
        }
        let Some(cmp) = cmp else {
            return self.unknown(instruction);
        };
        let combine = match combine {
            Some(function) => Some((function, self.flag(instruction, 3)?)),
            None => None,
        };
        let verdict = Verdict {
            relation: Relation::of(cmp).filter(|_| !ty.is_float()),
            combine,
            target: self.verdict(instruction)?,
        };
        let a = self.source(instruction, 1, ty)?;
        if instruction.opcode == Opcode::Testp {
            return Ok(Op::Compare(Box::new((
                Question::Class(cmp, ty),
                [a; 2],
                verdict,
            ))));
        }
        let b = self.source(instruction, 2, ty)?;
        let narrow = |function: Option<_>, sides, verdict| {
            function.map(|function| Op::CompareNarrow(function, sides, verdict))
        };
        let verdict = Box::new(verdict);
        let op = match (ty, a, b) {
            (Type::F64, ..) => {
                let question = Question::F64(cmp);
                Some(Op::Compare(Box::new((question, [a, b], *verdict))))
            }
            (Type::F32, Place::Narrow(a, _), Place::Narrow(b, _)) => {
                let function = f32s::compare(cmp, instruction.has(Modifier::Ftz));
                narrow(function, [a, b], verdict)
            }
            (Type::S16, Place::Narrow(a, _), Place::Narrow(b, _)) => {
                narrow(ints::compare_short(cmp), [a, b], verdict)
            }
            // Narrow values are zero-extended: only signed 16-bit ones need more.
            (ty, Place::Narrow(a, _), Place::Narrow(b, _)) => {
                narrow(ints::compare_narrow(cmp, ty.is_signed()), [a, b], verdict)
            }
            (ty, Place::Wide(a), Place::Wide(b)) => ints::compare_wide(cmp, ty.is_signed())
                .map(|function| Op::CompareWide(function, [a, b], verdict)),
            _ => None,
        };
        match op {
            Some(op) => Ok(op),
            None => self.unknown(instruction),
        }
    }

    /// Where a comparison's result goes.
    fn verdict(&mut self, instruction: &Instruction) -> Decoded<VerdictTarget> {
        if instruction.opcode == Opcode::Set {
            let ty = instruction.types[0];
            let slot = self.narrow_target(instruction, ty)?;
            return Ok(VerdictTarget::Value(
                slot,
                if ty == Type::F32 {
                    1f32.to_bits()
                } else {
                    u32::MAX
                },
            ));
        }
        match self.operand(instruction, 0)? {
            Operand::Pair(yes, no) => Ok(VerdictTarget::Flags(
                self.flag_target(yes)?,
                self.flag_target(no)?,
            )),
            operand => Ok(VerdictTarget::Flags(self.flag_target(operand)?, None)),
        }
    }

    pub(super) fn logic(&mut self, instruction: &Instruction) -> Decoded<Op> {
        let target = self.operand(instruction, 0)?;
        let target = match target {
            Operand::Register(id) => self.registers.flag(*id, self.line)?,
            _ => return self.refuse("a predicate register is needed"),
        };
        let a = self.flag(instruction, 1)?;
        Ok(match instruction.opcode {
            Opcode::Not => Op::Logic(|a, _| !a, target, [a, a]),
            Opcode::And => Op::Logic(|a, b| a & b, target, [a, self.flag(instruction, 2)?]),
            Opcode::Or => Op::Logic(|a, b| a | b, target, [a, self.flag(instruction, 2)?]),
            _ => Op::Logic(|a, b| a ^ b, target, [a, self.flag(instruction, 2)?]),
        })
    }
}

fn logic_of(modifier: Modifier) -> fn(u32, u32) -> u32 {
    match modifier {
        Modifier::And => |a, b| a & b,
        Modifier::Or => |a, b| a | b,
        _ => |a, b| a ^ b,
    }
}

/// The types of destination and sources of an integer operation.
fn integer_types(opcode: Opcode, wide: bool, ty: Type) -> (Type, [Type; 4]) {
    let u32s = Type::U32;
    match opcode {
        Opcode::Popc | Opcode::Clz | Opcode::Bfind => (u32s, [ty; 4]),
        Opcode::Shl | Opcode::Shr => (ty, [ty, u32s, u32s, u32s]),
        Opcode::Bfe => (ty, [ty, u32s, u32s, u32s]),
        Opcode::Bfi => (ty, [ty, ty, u32s, u32s]),
        _ if wide => {
            let double = if ty.bytes() == 2 {
                Type::B32
            } else {
                Type::B64
            };
            (double, [ty, ty, double, double])
        }
        _ => (ty, [ty; 4]),
    }
}

/// The row form of an operation, where there is one.
fn fast_integer(name: &str, ty: Type, target: Place, sources: [Place; 4]) -> Option<Op> {
    use Place::{Narrow, Wide};
    match (target, sources) {
        (Narrow(d, _), [Narrow(a, _), Narrow(b, _), Place::Nowhere, _]) => {
            ints::narrow2(name, ty).map(|function| Op::Narrow2(function, d, [a, b]))
        }
        (Wide(d), [Wide(a), Wide(b), Place::Nowhere, _]) => {
            ints::wide2(name, ty).map(|function| Op::Wide2(function, d, [a, b]))
        }
        (Wide(d), [Wide(a), Narrow(b, _), Place::Nowhere, _]) => {
            ints::shift(name, ty).map(|function| Op::WideNarrow(function, d, a, b))
        }
        (Narrow(d, _), [Narrow(a, _), Narrow(b, _), Narrow(c, _), Place::Nowhere])
            if ty.bytes() == 4 =>
        {
            match name {
                "mad.lo" => {
                    let function =
                        row!(u32; |a: u32, b: u32, c: u32| a.wrapping_mul(b).wrapping_add(c));
                    Some(Op::Narrow3(function, d, [a, b, c]))
                }
                _ => None,
            }
        }
        (Wide(d), [Wide(a), Wide(b), Wide(c), _]) if name == "mad.lo" => {
            let function = row!(u64; |a: u64, b: u64, c: u64| a.wrapping_mul(b).wrapping_add(c));
            Some(Op::Wide3(function, d, [a, b, c]))
        }
        (Wide(d), [Narrow(a, _), Narrow(b, _), Place::Nowhere, _]) if name == "mul.wide" => {
            let function = if ty.is_signed() {
                row!(u64; |a: u32, b: u32| (i64::from(a as i32) * i64::from(b as i32)) as u64)
            } else {
                row!(u64; |a: u32, b: u32| u64::from(a) * u64::from(b))
            };
            Some(Op::Widen2(function, d, [a, b]))
        }
        (Wide(d), [Narrow(a, _), Narrow(b, _), Wide(c), _]) if name == "mad.wide" => {
            let function = if ty.is_signed() {
                row!(u64; |a: u32, b: u32, c: u64| ((i64::from(a as i32) * i64::from(b as i32)) as u64).wrapping_add(c))
            } else {
                row!(u64; |a: u32, b: u32, c: u64| (u64::from(a) * u64::from(b)).wrapping_add(c))
            };
            Some(Op::Widen3(function, d, [a, b, c]))
        }
        (Narrow(d, _), [Narrow(a, _), Place::Nowhere, ..]) if ty.bytes() == 4 => match name {
            "not" => Some(Op::Narrow1(row!(u32; |a: u32| !a), d, a)),
            "neg" => Some(Op::Narrow1(row!(u32; |a: u32| a.wrapping_neg()), d, a)),
            _ => None,
        },
        (Wide(d), [Wide(a), Place::Nowhere, ..]) => match name {
            "not" => Some(Op::Wide1(row!(u64; |a: u64| !a), d, a)),
            "neg" => Some(Op::Wide1(row!(u64; |a: u64| a.wrapping_neg()), d, a)),
            _ => None,
        },
        _ => None,
    }
}
