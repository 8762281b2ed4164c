//! f64 arithmetic (to nearest even), and questions about the class of a number.

use super::Scalar;
use slabfence_emu_ptx::{Modifier, Type};

/// The NaN that f64 arithmetic gives.
const NAN: u64 = 0x7fff_ffff_ffff_ffff;

fn f(bits: u64) -> f64 {
    f64::from_bits(bits)
}

fn canonical(value: f64) -> u64 {
    if value.is_nan() { NAN } else { value.to_bits() }
}

/// The f64 operation of this name.
pub(crate) fn f64_scalar(op: &str) -> Option<Scalar> {
    Some(match op {
        "add" => |x| canonical(f(x[0]) + f(x[1])),
        "sub" => |x| canonical(f(x[0]) - f(x[1])),
        "mul" => |x| canonical(f(x[0]) * f(x[1])),
        "fma" | "mad" => |x| canonical(f(x[0]).mul_add(f(x[1]), f(x[2]))),
        "div" => |x| canonical(f(x[0]) / f(x[1])),
        "rcp" => |x| canonical(1.0 / f(x[0])),
        "sqrt" => |x| canonical(f(x[0]).sqrt()),
        "neg" => |x| x[0] ^ 1 << 63,
        "abs" => |x| x[0] & !(1 << 63),
        "min" => |x| pick(x[0], x[1], f64::total_cmp(&f(x[0]), &f(x[1])).is_lt()),
        "max" => |x| pick(x[0], x[1], f64::total_cmp(&f(x[0]), &f(x[1])).is_gt()),
        _ => return None,
    })
}

fn pick(a: u64, b: u64, first: bool) -> u64 {
    match (f(a).is_nan(), f(b).is_nan()) {
        (true, true) => NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            if first {
                a
            } else {
                b
            }
        }
    }
}

/// Whether `a cmp b` holds for f64.
pub(crate) fn f64_compare(cmp: Modifier, a: u64, b: u64) -> bool {
    use Modifier::*;
    let (a, b) = (f(a), f(b));
    let unordered = a.is_nan() || b.is_nan();
    match cmp {
        Eq => a == b,
        Ne => !unordered && a != b,
        Lt => a < b,
        Le => a <= b,
        Gt => a > b,
        Ge => a >= b,
        Equ => unordered || a == b,
        Neu => a != b,
        Ltu => unordered || a < b,
        Leu => unordered || a <= b,
        Gtu => unordered || a > b,
        Geu => unordered || a >= b,
        Num => !unordered,
        _ => unordered,
    }
}

/// `testp`: whether a number is of a class.
pub(crate) fn is_of_class(class: Modifier, ty: Type, bits: u64) -> bool {
    // Every f32 is an f64, but its subnormal numbers are not subnormal there.
    let (value, category) = if ty == Type::F32 {
        let value = f32::from_bits(bits as u32);
        (f64::from(value), value.classify())
    } else {
        (f(bits), f(bits).classify())
    };
    match class {
        Modifier::Finite => value.is_finite(),
        Modifier::Infinite => value.is_infinite(),
        Modifier::Number => !value.is_nan(),
        Modifier::Notanumber => value.is_nan(),
        Modifier::Normal => category == std::num::FpCategory::Normal,
        _ => category == std::num::FpCategory::Subnormal,
    }
}

/// `copysign d, a, b`: the sign of `a` on the magnitude of `b`.
pub(crate) fn copysign(ty: Type) -> Scalar {
    if ty == Type::F32 {
        |x| x[0] & 0x8000_0000 | x[1] & 0x7fff_ffff
    } else {
        |x| x[0] & 1 << 63 | x[1] & !(1 << 63)
    }
}
