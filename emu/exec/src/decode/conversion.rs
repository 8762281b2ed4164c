//! Moves, selections, conversions of numbers and of addresses.

use super::{Decoded, Decoder};
use crate::{
    Space,
    op::{Op, Place, Slot},
    value::{convert::Conversion, halves, rounding::Rounding, row},
    window,
};
use slabfence_emu_ptx::{Instruction, Modifier, Opcode, Operand, SpecialRegister, Type};

impl Decoder<'_> {
    pub(super) fn conversion(&mut self, instruction: &Instruction) -> Decoded<Op> {
        match instruction.opcode {
            Opcode::Mov => self.mov(instruction),
            Opcode::Cvt => self.cvt(instruction),
            Opcode::Selp => self.selp(instruction),
            Opcode::Slct => self.slct(instruction),
            _ => self.address(instruction),
        }
    }

    fn mov(&mut self, instruction: &Instruction) -> Decoded<Op> {
        let ty = instruction.types[0];
        let (target, source) = (self.operand(instruction, 0)?, self.operand(instruction, 1)?);
        if ty == Type::Pred {
            let Some(target) = self.flag_target(target)? else {
                return Ok(Op::Nothing);
            };
            let source = self.flag(instruction, 1)?;
            return Ok(Op::Logic(|a, _| a, target, [source, source]));
        }
        use SpecialRegister::{Clock, Clock64, ClockHi, Globaltimer, GlobaltimerHi, GlobaltimerLo};
        if let Operand::Special(
            clock @ (Clock | ClockHi | Clock64 | Globaltimer | GlobaltimerLo | GlobaltimerHi),
        ) = source
        {
            let width = if matches!(clock, Clock64 | Globaltimer) {
                8
            } else {
                4
            };
            if ty.bytes() != width {
                return self.refuse(format!("`{}` does not fit .{}", clock.name(), ty.name()));
            }
            return Ok(Op::Clock(*clock, self.target(instruction, ty)?));
        }
        if ty == Type::B128
            || matches!(target, Operand::Vector(_))
            || matches!(source, Operand::Vector(_))
        {
            return self.parts(ty, target, source);
        }
        let source = self.source(instruction, 1, ty)?;
        Ok(match (self.target(instruction, ty)?, source) {
            (Place::Narrow(d, _), Place::Narrow(a, _)) => Op::MoveNarrow(d, a),
            (Place::Wide(d), Place::Wide(a)) => Op::MoveWide(d, a),
            _ => Op::Nothing,
        })
    }

    /// `mov` that splits a register or joins one.
    fn parts(&mut self, ty: Type, target: &Operand, source: &Operand) -> Decoded<Op> {
        let of = |count: usize| match ty.bytes() as usize / count {
            2 => Some(Type::B16),
            4 => Some(Type::B32),
            8 => Some(Type::B64),
            1 => Some(Type::B8),
            _ => None,
        };
        // Parts of the smaller size on both sides; a whole is given as its rows.
        let mut sides = [Vec::new(), Vec::new()];
        let mut bits = [0; 2];
        for (side, operand) in [target, source].into_iter().enumerate() {
            let parts = match operand {
                Operand::Vector(parts) => parts.as_slice(),
                whole => std::slice::from_ref(whole),
            };
            let Some(part_ty) = of(parts.len()).or((ty == Type::B128).then_some(Type::B128)) else {
                return self.refuse(format!(".{} has no {} equal parts", ty.name(), parts.len()));
            };
            for part in parts {
                if part_ty == Type::B128 {
                    sides[side].extend(self.registers.halves(part, self.line)?);
                } else if side == 0 {
                    sides[side].push(self.registers.target(part, part_ty, false, self.line)?);
                } else {
                    sides[side].push(self.registers.source(part, part_ty, false, self.line)?);
                }
            }
            bits[side] = 8 * part_ty.bytes().min(8);
        }
        let [targets, sources] = sides;
        Ok(Op::Join(Box::new((
            targets,
            sources,
            bits[0] << 8 | bits[1],
        ))))
    }

    fn selp(&mut self, instruction: &Instruction) -> Decoded<Op> {
        let ty = instruction.types[0];
        let (a, b) = (
            self.source(instruction, 1, ty)?,
            self.source(instruction, 2, ty)?,
        );
        let flag = self.flag(instruction, 3)?;
        Ok(match (self.target(instruction, ty)?, a, b) {
            (Place::Narrow(d, _), Place::Narrow(a, _), Place::Narrow(b, _)) => {
                Op::SelectNarrow(d, [a, b], flag)
            }
            (Place::Wide(d), Place::Wide(a), Place::Wide(b)) => Op::SelectWide(d, [a, b], flag),
            _ => Op::Nothing,
        })
    }

    fn slct(&mut self, instruction: &Instruction) -> Decoded<Op> {
        let (ty, by) = (instruction.types[0], instruction.types[1]);
        let (a, b) = (
            self.source(instruction, 1, ty)?,
            self.source(instruction, 2, ty)?,
        );
        let c = self.source(instruction, 3, by)?;
        let first: fn(u64) -> bool = match (by, instruction.has(Modifier::Ftz)) {
            (Type::F32, false) => |bits| f32::from_bits(bits as u32) >= 0.0,
            // Flushed, negative subnormal numbers count as zero.
            (Type::F32, true) => {
                |bits| f32::from_bits(crate::value::f32s::flush(bits as u32)) >= 0.0
            }
            _ => |bits| bits as i32 >= 0,
        };
        Ok(Op::SelectBySign(Box::new((
            first,
            self.target(instruction, ty)?,
            [a, b, c],
        ))))
    }

    fn cvt(&mut self, instruction: &Instruction) -> Decoded<Op> {
        let (to, from) = (instruction.types[0], instruction.types[1]);
        let rounding = Rounding::among(&instruction.modifiers);
        let integral = [Modifier::Rni, Modifier::Rzi, Modifier::Rmi, Modifier::Rpi];
        let conversion = Conversion {
            to,
            from,
            rounding,
            integral: integral.iter().any(|&modifier| instruction.has(modifier)),
            saturate: instruction.has(Modifier::Sat),
            flush: instruction.has(Modifier::Ftz),
            relu: instruction.has(Modifier::Relu),
        };
        let plain = !conversion.saturate && !conversion.flush && !conversion.relu;
        let nearest = rounding == Some(Rounding::Nearest);
        if matches!(to, Type::F16x2 | Type::Bf16x2) {
            let target = self.narrow_target(instruction, to)?;
            let sources = [
                self.narrow(instruction, 1, from)?,
                self.narrow(instruction, 2, from)?,
            ];
            if plain && nearest {
                return Ok(Op::Narrow2(halves::pack_nearest(to), target, sources));
            }
            return Ok(Op::Pack(Box::new((conversion, target, sources))));
        }
        let source = self.wider_source(instruction, 1, from)?;
        let operand = self.operand(instruction, 0)?;
        let target = self.registers.target(operand, to, true, self.line)?;
        let exact = to.bytes() >= 4 && matches!(target, Place::Wide(_)) == (to.bytes() == 8);
        if plain
            && exact
            && let Some(op) = fast_conversion(&conversion, target, source)
        {
            return Ok(op);
        }
        if let (
            true,
            true,
            Type::F32,
            Type::F16 | Type::Bf16,
            Place::Narrow(d, 0xffff),
            Place::Narrow(a, _),
        ) = (plain, nearest, from, to, target, source)
        {
            return Ok(Op::Narrow1(halves::narrow_nearest(to), d, a));
        }
        Ok(Op::Convert(Box::new((conversion, target, source))))
    }

    /// `cvta` and `isspacep`.
    fn address(&mut self, instruction: &Instruction) -> Decoded<Op> {
        let Some(space) = instruction
            .modifiers
            .iter()
            .find_map(|&modifier| space(modifier))
        else {
            return self.refuse("a state space is missing");
        };
        if instruction.opcode == Opcode::Isspacep {
            let Some(target) = self.flag_target(self.operand(instruction, 0)?)? else {
                return Ok(Op::Nothing);
            };
            return Ok(Op::IsSpace(
                space,
                target,
                self.wide(instruction, 1, Type::U64)?,
            ));
        }
        let (target, source) = (
            self.wide_target(instruction, Type::U64)?,
            self.wide(instruction, 1, Type::U64)?,
        );
        let Some(base) = window::base(space) else {
            return Ok(Op::MoveWide(target, source));
        };
        let by = if instruction.has(Modifier::To) {
            base.wrapping_neg()
        } else {
            base
        };
        let by = self.constant_wide(by)?;
        Ok(Op::Wide2(
            row!(u64; |a: u64, b: u64| a.wrapping_add(b)),
            target,
            [source, by],
        ))
    }

    fn constant_wide(&mut self, value: u64) -> Decoded<Slot> {
        match self.registers.constant(value, 8, self.line)? {
            Place::Wide(slot) => Ok(slot),
            _ => self.refuse("a 64-bit operand is needed"),
        }
    }
}

/// The space that a modifier names.
pub(super) fn space(modifier: Modifier) -> Option<Space> {
    match modifier {
        Modifier::Global => Some(Space::Global),
        Modifier::Const => Some(Space::Const),
        Modifier::Shared | Modifier::SharedCta => Some(Space::Shared),
        Modifier::Local => Some(Space::Local),
        Modifier::Param | Modifier::ParamEntry => Some(Space::Param),
        _ => None,
    }
}

/// Conversions with row functions, between whole registers.
fn fast_conversion(conversion: &Conversion, target: Place, source: Place) -> Option<Op> {
    use Place::{Narrow, Wide};
    let (from, to) = (conversion.from, conversion.to);
    match (target, source) {
        (Wide(d), Narrow(a, _)) if !to.is_float() && from.bytes() == 4 && !from.is_float() => {
            let function = if from.is_signed() {
                row!(u64; |a: u32| i64::from(a as i32) as u64)
            } else {
                row!(u64; |a: u32| u64::from(a))
            };
            Some(Op::Widen1(function, d, a))
        }
        (Narrow(d, _), Wide(a)) if !to.is_float() && from.bytes() == 8 && !from.is_float() => {
            Some(Op::Shorten(row!(u32; |a: u64| a as u32), d, a))
        }
        (Narrow(d, _), Narrow(a, _)) => match (to, from, conversion.rounding) {
            (Type::F32, Type::F16 | Type::Bf16, None) => {
                Some(Op::Narrow1(halves::widen(from), d, a))
            }
            (Type::F32, Type::S32, Some(Rounding::Nearest)) => Some(Op::Narrow1(
                row!(u32; |a: u32| (a as i32 as f32).to_bits()),
                d,
                a,
            )),
            (Type::F32, Type::U32, Some(Rounding::Nearest)) => {
                Some(Op::Narrow1(row!(u32; |a: u32| (a as f32).to_bits()), d, a))
            }
            _ => None,
        },
        _ => None,
    }
}
