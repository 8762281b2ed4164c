//! Operations on registers alone.

use crate::{
    op::{CarryKind, CarryOp, FloatOp, HalfOp, Op, Place, Question, Verdict, VerdictTarget},
    registers::{Registers, blend, lanes_of},
    value::{f32s, other_floats},
};
use slabfence_emu_ptx::Type;

impl Registers {
    /// Executes an operation that touches nothing but registers. False if it is none of those.
    #[inline]
    pub(crate) fn compute(&mut self, op: &Op, lanes: u32) -> bool {
        match *op {
            Op::Narrow1(function, d, a) => {
                let row = function(self.n(a));
                self.put_narrow(d, lanes, &row);
            }
            Op::Narrow2(function, d, [a, b]) => {
                let row = function(self.n(a), self.n(b));
                self.put_narrow(d, lanes, &row);
            }
            Op::Narrow3(function, d, [a, b, c]) => {
                let row = function(self.n(a), self.n(b), self.n(c));
                self.put_narrow(d, lanes, &row);
            }
            Op::Wide1(function, d, a) => {
                let row = function(self.w(a));
                self.put_wide(d, lanes, &row);
            }
            Op::Wide2(function, d, [a, b]) => {
                let row = function(self.w(a), self.w(b));
                self.put_wide(d, lanes, &row);
            }
            Op::Wide3(function, d, [a, b, c]) => {
                let row = function(self.w(a), self.w(b), self.w(c));
                self.put_wide(d, lanes, &row);
            }
            Op::WideNarrow(function, d, a, b) => {
                let row = function(self.w(a), self.n(b));
                self.put_wide(d, lanes, &row);
            }
            Op::Widen1(function, d, a) => {
                let row = function(self.n(a));
                self.put_wide(d, lanes, &row);
            }
            Op::Widen2(function, d, [a, b]) => {
                let row = function(self.n(a), self.n(b));
                self.put_wide(d, lanes, &row);
            }
            Op::Widen3(function, d, [a, b, c]) => {
                let row = function(self.n(a), self.n(b), self.w(c));
                self.put_wide(d, lanes, &row);
            }
            Op::Shorten(function, d, a) => {
                let row = function(self.w(a));
                self.put_narrow(d, lanes, &row);
            }
            Op::MoveNarrow(d, a) => {
                let row = *self.n(a);
                self.put_narrow(d, lanes, &row);
            }
            Op::MoveWide(d, a) => {
                let row = *self.w(a);
                self.put_wide(d, lanes, &row);
            }
            Op::SelectNarrow(d, [a, b], flag) => {
                let mut row = *self.n(b);
                blend(&mut row, self.flag(flag), self.n(a));
                self.put_narrow(d, lanes, &row);
            }
            Op::SelectWide(d, [a, b], flag) => {
                let mut row = *self.w(b);
                blend(&mut row, self.flag(flag), self.w(a));
                self.put_wide(d, lanes, &row);
            }
            Op::CompareNarrow(function, [a, b], ref verdict) => {
                let holds = function(self.n(a), self.n(b));
                self.decide(verdict, lanes, holds);
            }
            Op::CompareWide(function, [a, b], ref verdict) => {
                let holds = function(self.w(a), self.w(b));
                self.decide(verdict, lanes, holds);
            }
            Op::Logic(function, d, [a, b]) => {
                let value = function(self.flag(a), self.flag(b));
                self.put_flag(d, lanes, value);
            }
            Op::Nothing => {}
            _ => return self.compute_by_lane(op, lanes),
        }
        true
    }

    /// The operations without row functions.
    fn compute_by_lane(&mut self, op: &Op, lanes: u32) -> bool {
        match op {
            Op::Scalar(scalar) => {
                let (function, target, sources) = **scalar;
                for lane in lanes_of(lanes) {
                    let value = function(sources.map(|source| self.get(source, lane)));
                    self.set(target, lane, value);
                }
            }
            Op::Convert(convert) => {
                let (conversion, target, source) = **convert;
                for lane in lanes_of(lanes) {
                    let value = conversion.apply(self.get(source, lane));
                    self.set(target, lane, extended(value, conversion.to));
                }
            }
            Op::Pack(pack) => {
                let (conversion, target, [upper, lower]) = **pack;
                let half = if conversion.to == Type::F16x2 {
                    Type::F16
                } else {
                    Type::Bf16
                };
                let conversion = crate::value::convert::Conversion {
                    to: half,
                    ..conversion
                };
                for lane in lanes_of(lanes) {
                    let part = |slot| conversion.apply(self.n(slot)[lane].into()) as u32;
                    let value = part(upper) << 16 | part(lower);
                    self.narrow[usize::from(target)][lane] = value;
                }
            }
            Op::Compare(compare) => {
                let (question, [a, b], verdict) = &**compare;
                let holds = lanes_of(lanes).fold(0, |holds, lane| {
                    holds
                        | u32::from(question.answer(self.get(*a, lane), self.get(*b, lane))) << lane
                });
                self.decide(verdict, lanes, holds);
            }
            Op::SelectBySign(select) => {
                let (first, target, [a, b, c]) = **select;
                for lane in lanes_of(lanes) {
                    let value = self.get(if first(self.get(c, lane)) { a } else { b }, lane);
                    self.set(target, lane, value);
                }
            }
            Op::Join(join) => {
                let (targets, sources, bits) = &**join;
                self.join(targets, sources, bits >> 8, bits & 0xff, lanes);
            }
            Op::Float(float) => self.float(float, lanes),
            Op::Half(half) => self.half(half, lanes),
            Op::Carry(carry) => self.carry(carry, lanes),
            Op::IsSpace(space, target, source) => {
                let holds = lanes_of(lanes).fold(0, |holds, lane| {
                    let found = crate::window::resolve(self.w(*source)[lane]).0;
                    holds | u32::from(found == *space) << lane
                });
                self.put_flag(*target, lanes, holds);
            }
            _ => return false,
        }
        true
    }

    fn decide(&mut self, verdict: &Verdict, lanes: u32, holds: u32) {
        let (yes, no) = match verdict.combine {
            Some((function, flag)) => {
                let with = self.flag(flag);
                (function(holds, with), function(!holds, with))
            }
            None => (holds, !holds),
        };
        match verdict.target {
            VerdictTarget::Flags(first, second) => {
                if let Some(slot) = first {
                    self.put_flag(slot, lanes, yes);
                }
                if let Some(slot) = second {
                    self.put_flag(slot, lanes, no);
                }
            }
            VerdictTarget::Value(slot, value) => {
                for lane in lanes_of(lanes) {
                    self.narrow[usize::from(slot)][lane] =
                        if yes >> lane & 1 != 0 { value } else { 0 };
                }
            }
        }
    }

    /// Cuts the sources, taken as one number with the first lowest, into the targets.
    fn join(
        &mut self,
        targets: &[Place],
        sources: &[Place],
        target_bits: u32,
        source_bits: u32,
        lanes: u32,
    ) {
        for lane in lanes_of(lanes) {
            let whole = sources
                .iter()
                .enumerate()
                .fold(0u128, |whole, (at, &source)| {
                    whole | u128::from(self.get(source, lane)) << (at as u32 * source_bits)
                });
            for (at, &target) in targets.iter().enumerate() {
                let part =
                    (whole >> (at as u32 * target_bits)) as u64 & (u64::MAX >> (64 - target_bits));
                self.set(target, lane, part);
            }
        }
    }

    fn float(&mut self, op: &FloatOp, lanes: u32) {
        let flush = |bits| if op.flush { f32s::flush(bits) } else { bits };
        for lane in lanes_of(lanes) {
            let operands = op.sources.map(|source| flush(self.n(source)[lane]));
            let mut bits = flush((op.function)(operands, op.rounding));
            if op.saturate {
                bits = f32s::saturate(bits);
            }
            self.narrow[usize::from(op.target)][lane] = bits;
        }
    }

    fn half(&mut self, op: &HalfOp, lanes: u32) {
        let packed = op.ty.bytes() == 4;
        for lane in lanes_of(lanes) {
            let operands = op.sources.map(|source| self.n(source)[lane]);
            let low = (op.function)(operands.map(|bits| bits as u16), op.ty);
            let high = if packed {
                (op.function)(operands.map(|bits| (bits >> 16) as u16), op.ty)
            } else {
                0
            };
            self.narrow[usize::from(op.target)][lane] = u32::from(high) << 16 | u32::from(low);
        }
    }

    fn carry(&mut self, op: &CarryOp, lanes: u32) {
        let bits = if matches!(op.target, Place::Wide(_)) {
            64
        } else {
            32
        };
        let flag = usize::from(crate::decode::CARRY);
        for lane in lanes_of(lanes) {
            let [a, b, c] = op.sources.map(|source| self.get(source, lane));
            let carry = u128::from(op.reads && self.flags[flag] >> lane & 1 != 0);
            let (a, b) = (u128::from(a), u128::from(b));
            let mask = u128::from(u64::MAX >> (64 - bits));
            let total = match op.kind {
                CarryKind::Add => a + b + carry,
                // A borrow shows above the value's bits, as a carry does.
                CarryKind::Sub => a.wrapping_sub(b).wrapping_sub(carry),
                CarryKind::MadLo => ((a * b) & mask) + u128::from(c) + carry,
                CarryKind::MadHi { signed } => {
                    (high(a, b, bits, signed) & mask) + u128::from(c) + carry
                }
            };
            self.set(op.target, lane, total as u64);
            if op.writes {
                let out = (total >> bits & 1) as u32;
                self.put_flag(crate::decode::CARRY, 1 << lane, out << lane);
            }
        }
    }
}

/// The high half of a product.
fn high(a: u128, b: u128, bits: u32, signed: bool) -> u128 {
    if !signed {
        return (a * b) >> bits;
    }
    let extend = |value: u128| (value << (128 - bits)) as i128 >> (128 - bits);
    (extend(a).wrapping_mul(extend(b)) >> bits) as u128
}

/// A converted value as a wider register holds it: integers extended by their sign.
fn extended(value: u64, ty: Type) -> u64 {
    match ty {
        Type::S8 => value as i8 as u64,
        Type::S16 => value as i16 as u64,
        Type::S32 => value as i32 as u64,
        _ => value,
    }
}

impl Question {
    fn answer(self, a: u64, b: u64) -> bool {
        match self {
            Self::F64(cmp) => other_floats::f64_compare(cmp, a, b),
            Self::Class(class, ty) => other_floats::is_of_class(class, ty, a),
        }
    }
}
