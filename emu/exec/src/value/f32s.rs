//! f32 arithmetic.

use super::{
    Narrow, mask,
    rounding::{self, Rounding},
    row,
};
use slabfence_emu_ptx::Modifier;

/// The NaN that PTX arithmetic gives.
pub(crate) const NAN: u32 = 0x7fff_ffff;

/// The bits of a result, with the canonical NaN.
#[inline(always)]
pub(crate) fn canonical(value: f32) -> u32 {
    if value.is_nan() { NAN } else { value.to_bits() }
}

/// Replaces subnormal numbers by zero of their sign.
#[inline(always)]
pub(crate) fn flush(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0 {
        bits & 0x8000_0000
    } else {
        bits
    }
}

/// Clamps to [0, 1]; NaN becomes +0.
#[inline(always)]
pub(crate) fn saturate(bits: u32) -> u32 {
    let value = f32::from_bits(bits);
    // Comparisons rather than `clamp`: -0 becomes +0 as well.
    if value >= 1.0 {
        1f32.to_bits()
    } else if value > 0.0 {
        bits
    } else {
        0
    }
}

/// The operations with row functions for nearest rounding.
pub(crate) fn fast2(op: &str) -> Option<fn(&Narrow, &Narrow) -> Narrow> {
    Some(match op {
        "add" => row!(u32; |a: u32, b: u32| canonical(f32::from_bits(a) + f32::from_bits(b))),
        "sub" => row!(u32; |a: u32, b: u32| canonical(f32::from_bits(a) - f32::from_bits(b))),
        "mul" => row!(u32; |a: u32, b: u32| canonical(f32::from_bits(a) * f32::from_bits(b))),
        "div" => row!(u32; |a: u32, b: u32| canonical(f32::from_bits(a) / f32::from_bits(b))),
        "min" => row!(u32; |a: u32, b: u32| min(a, b)),
        "max" => row!(u32; |a: u32, b: u32| max(a, b)),
        _ => return None,
    })
}

/// `fma.rn` on rows.
pub(crate) fn fast_fma() -> fn(&Narrow, &Narrow, &Narrow) -> Narrow {
    row!(u32; |a: u32, b: u32, c: u32| {
        canonical(rounding::fused(f32::from_bits(a), f32::from_bits(b), f32::from_bits(c)) as f32)
    })
}

/// One-operand operations on rows.
pub(crate) fn fast1(op: &str) -> Option<fn(&Narrow) -> Narrow> {
    Some(match op {
        "neg" => row!(u32; |a: u32| a ^ 0x8000_0000),
        "abs" => row!(u32; |a: u32| a & 0x7fff_ffff),
        "sqrt" => row!(u32; |a: u32| canonical(f32::from_bits(a).sqrt())),
        "rcp" => row!(u32; |a: u32| canonical(1.0 / f32::from_bits(a))),
        _ => return None,
    })
}

/// An operation on bits, before flushing and saturation; only sums and products heed the rounding.
pub(crate) type Operation = fn([u32; 3], Rounding) -> u32;

/// The operation of this name.
pub(crate) fn scalar(op: &str) -> Option<Operation> {
    Some(match op {
        "add" => |x, rounding| sum(x[0], x[1], rounding),
        "sub" => |x, rounding| sum(x[0], x[1] ^ 0x8000_0000, rounding),
        "mul" => |x, rounding| {
            let product = f64::from(f32::from_bits(x[0])) * f64::from(f32::from_bits(x[1]));
            canonical(rounding::to_f32(product, rounding))
        },
        "fma" | "mad" => fma,
        "div" => |x, _| canonical(f32::from_bits(x[0]) / f32::from_bits(x[1])),
        "rcp" => |x, _| canonical(1.0 / f32::from_bits(x[0])),
        "sqrt" => |x, _| canonical(f32::from_bits(x[0]).sqrt()),
        "rsqrt" => |x, _| through_f64(x, |x| 1.0 / x.sqrt()),
        "ex2" => |x, _| through_f64(x, f64::exp2),
        "lg2" => |x, _| through_f64(x, f64::log2),
        "sin" => |x, _| through_f64(x, f64::sin),
        "cos" => |x, _| through_f64(x, f64::cos),
        "tanh" => |x, _| through_f64(x, f64::tanh),
        "neg" => |x, _| x[0] ^ 0x8000_0000,
        "abs" => |x, _| x[0] & 0x7fff_ffff,
        "min" => |x, _| min(x[0], x[1]),
        "max" => |x, _| max(x[0], x[1]),
        "min.NaN" => |x, _| if any_nan(x) { NAN } else { min(x[0], x[1]) },
        "max.NaN" => |x, _| if any_nan(x) { NAN } else { max(x[0], x[1]) },
        "min.xorsign_abs" => |x, _| signed_by_both(x, min),
        "max.xorsign_abs" => |x, _| signed_by_both(x, max),
        "min.NaN.xorsign_abs" => |x, _| {
            if any_nan(x) {
                NAN
            } else {
                signed_by_both(x, min)
            }
        },
        "max.NaN.xorsign_abs" => |x, _| {
            if any_nan(x) {
                NAN
            } else {
                signed_by_both(x, max)
            }
        },
        _ => return None,
    })
}

/// An exact zero sum of numbers that are not both +0 is -0 when rounding down.
fn zero_sum(a: f64, b: f64, rounding: Rounding) -> Option<u32> {
    let positive = a.is_sign_positive() && b.is_sign_positive();
    (a + b == 0.0 && rounding == Rounding::Down && !positive).then_some(0x8000_0000)
}

fn sum(a: u32, b: u32, rounding: Rounding) -> u32 {
    let (a, b) = (f64::from(f32::from_bits(a)), f64::from(f32::from_bits(b)));
    zero_sum(a, b, rounding)
        .unwrap_or_else(|| canonical(rounding::to_f32(rounding::sum_to_odd(a, b), rounding)))
}

fn fma(x: [u32; 3], rounding: Rounding) -> u32 {
    let [a, b, c] = x.map(|bits| f64::from(f32::from_bits(bits)));
    zero_sum(a * b, c, rounding)
        .unwrap_or_else(|| canonical(rounding::to_f32(rounding::sum_to_odd(a * b, c), rounding)))
}

/// The approximate functions, as near as f64 gives them.
fn through_f64(x: [u32; 3], function: fn(f64) -> f64) -> u32 {
    canonical(function(f32::from_bits(x[0]).into()) as f32)
}

fn any_nan(x: [u32; 3]) -> bool {
    x[..2].iter().any(|&bits| f32::from_bits(bits).is_nan())
}

/// The operation on magnitudes, with the product of the signs.
fn signed_by_both(x: [u32; 3], operation: fn(u32, u32) -> u32) -> u32 {
    let magnitude = operation(x[0] & 0x7fff_ffff, x[1] & 0x7fff_ffff);
    if magnitude == NAN {
        NAN
    } else {
        magnitude | (x[0] ^ x[1]) & 0x8000_0000
    }
}

/// Bits in an order in which -0 comes before +0.
#[inline(always)]
fn ordered(bits: u32) -> i32 {
    let value = bits as i32;
    value ^ ((value >> 31) as u32 >> 1) as i32
}

/// The smaller one; a NaN gives way to the other, two NaNs give the canonical one.
#[inline(always)]
pub(crate) fn min(a: u32, b: u32) -> u32 {
    pick(a, b, ordered(a) < ordered(b))
}

/// The larger one, alike.
#[inline(always)]
pub(crate) fn max(a: u32, b: u32) -> u32 {
    pick(a, b, ordered(a) > ordered(b))
}

#[inline(always)]
fn pick(a: u32, b: u32, first: bool) -> u32 {
    let (nan_a, nan_b) = (a & 0x7fff_ffff > 0x7f80_0000, b & 0x7fff_ffff > 0x7f80_0000);
    let picked = if nan_b | (first & !nan_a) { a } else { b };
    if nan_a & nan_b { NAN } else { picked }
}

/// Comparison of rows.
pub(crate) fn compare(cmp: Modifier, ftz: bool) -> Option<fn(&Narrow, &Narrow) -> u32> {
    macro_rules! floats {
        (|$a:ident, $b:ident| $value:expr) => {
            if ftz {
                mask!(|a: u32, b: u32| {
                    let ($a, $b) = (f32::from_bits(flush(a)), f32::from_bits(flush(b)));
                    $value
                })
            } else {
                mask!(|a: u32, b: u32| {
                    let ($a, $b) = (f32::from_bits(a), f32::from_bits(b));
                    $value
                })
            }
        };
    }
    use Modifier::*;
    Some(match cmp {
        Eq => floats!(|a, b| a == b),
        Ne => floats!(|a, b| (a < b) | (a > b)),
        Lt => floats!(|a, b| a < b),
        Le => floats!(|a, b| a <= b),
        Gt => floats!(|a, b| a > b),
        Ge => floats!(|a, b| a >= b),
        Equ => floats!(|a, b| !((a < b) | (a > b))),
        Neu => floats!(|a, b| a != b),
        Ltu => floats!(|a, b| (a < b) | a.is_nan() | b.is_nan()),
        Leu => floats!(|a, b| (a <= b) | a.is_nan() | b.is_nan()),
        Gtu => floats!(|a, b| (a > b) | a.is_nan() | b.is_nan()),
        Geu => floats!(|a, b| (a >= b) | a.is_nan() | b.is_nan()),
        Num => floats!(|a, b| !(a.is_nan() | b.is_nan())),
        IsNan => floats!(|a, b| a.is_nan() | b.is_nan()),
        _ => return None,
    })
}
