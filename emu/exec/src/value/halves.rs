//! f16 and bf16: conversion and arithmetic.

use super::{
    Narrow, f32s,
    rounding::{self, Rounding},
    row,
};
use slabfence_emu_ptx::Type;

/// The NaN that conversions to and arithmetic in f16 and bf16 give.
pub(crate) const NAN: u16 = 0x7fff;

/// f16 to f32, exact.
#[inline(always)]
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    let (sign, rest) = (u32::from(bits & 0x8000) << 16, u32::from(bits & 0x7fff));
    // Shifted into place, the number is 2^112 too small; the multiplication also normalises subnormal numbers.
    let scaled = f32::from_bits(rest << 13) * f32::from_bits(0x7780_0000);
    let magnitude = if rest >= 0x7c00 {
        0x7f80_0000 | rest << 13
    } else {
        scaled.to_bits()
    };
    f32::from_bits(sign | magnitude)
}

/// bf16 to f32, exact.
#[inline(always)]
pub(crate) fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// f32 to bf16, to nearest even.
#[inline(always)]
pub(crate) fn bf16_nearest(bits: u32) -> u32 {
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        u32::from(NAN)
    } else {
        rounded
    }
}

/// f32 to f16, to nearest even.
#[inline(always)]
pub(crate) fn f16_nearest(bits: u32) -> u32 {
    let (sign, rest) = (bits >> 16 & 0x8000, bits & 0x7fff_ffff);
    // Below 2^-14, adding 1/2 leaves exactly the bits of the subnormal number, rounded, at the bottom.
    let subnormal = (f32::from_bits(rest) + 0.5)
        .to_bits()
        .wrapping_sub(0x3f00_0000);
    let normal = rest
        .wrapping_sub(112 << 23)
        .wrapping_add(0xfff + (rest >> 13 & 1))
        >> 13;
    let finite = if rest < 113 << 23 { subnormal } else { normal };
    let large = if rest > 0x7f80_0000 {
        u32::from(NAN)
    } else {
        0x7c00 | sign
    };
    if rest >= 0x4780_0000 {
        large
    } else {
        finite | sign
    }
}

/// An f64 (exact, or rounded to odd) to f16 or bf16.
pub(crate) fn from_f64(value: f64, ty: Type, rounding: Rounding) -> u16 {
    if value.is_nan() {
        return NAN;
    }
    let (digits, bias) = if matches!(ty, Type::F16 | Type::F16x2) {
        (10, 15)
    } else {
        (7, 127)
    };
    let infinity = (0x7fffu16 >> digits) << digits;
    let sign = u16::from(value.is_sign_negative()) << 15;
    let magnitude = value.abs();
    if magnitude == 0.0 || magnitude.is_infinite() {
        return sign | if magnitude == 0.0 { 0 } else { infinity };
    }
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(1 - bias);
    // In units of the last place; below 2^(digits + 1), and exact. (Two factors: one alone could overflow.)
    let scaled = magnitude * 2f64.powi(-exponent) * 2f64.powi(digits);
    let down = scaled.floor();
    let rest = scaled - down;
    let up = match rounding {
        Rounding::Nearest => rest > 0.5 || (rest == 0.5 && down as u64 & 1 == 1),
        Rounding::Zero => false,
        Rounding::Down => sign != 0 && rest > 0.0,
        Rounding::Up => sign == 0 && rest > 0.0,
    };
    let units = down as i64 + i64::from(up);
    // The hidden digit of a normal number adds one to the exponent field, and so does a carry.
    let bits = (i64::from(exponent - (1 - bias)) << digits) + units;
    if bits < i64::from(infinity) {
        return sign | bits as u16;
    }
    let to_infinity = match rounding {
        Rounding::Nearest => true,
        Rounding::Zero => false,
        Rounding::Down => sign != 0,
        Rounding::Up => sign == 0,
    };
    sign | if to_infinity { infinity } else { infinity - 1 }
}

/// Value of an f16 or bf16.
pub(crate) fn to_f64(bits: u16, ty: Type) -> f64 {
    if matches!(ty, Type::F16 | Type::F16x2) {
        f16_to_f32(bits).into()
    } else {
        bf16_to_f32(bits).into()
    }
}

/// `cvt.rn.<ty>.f32` on rows.
pub(crate) fn narrow_nearest(ty: Type) -> fn(&Narrow) -> Narrow {
    if ty == Type::F16 {
        row!(u32; |a: u32| f16_nearest(a))
    } else {
        row!(u32; |a: u32| bf16_nearest(a))
    }
}

/// `cvt.rn.<ty>x2.f32` on rows: the first operand goes up.
pub(crate) fn pack_nearest(ty: Type) -> fn(&Narrow, &Narrow) -> Narrow {
    if ty == Type::F16x2 {
        row!(u32; |a: u32, b: u32| f16_nearest(a) << 16 | f16_nearest(b))
    } else {
        row!(u32; |a: u32, b: u32| bf16_nearest(a) << 16 | bf16_nearest(b))
    }
}

/// `cvt.f32.<ty>` on rows.
pub(crate) fn widen(ty: Type) -> fn(&Narrow) -> Narrow {
    if ty == Type::F16 {
        row!(u32; |a: u32| f32s::canonical(f16_to_f32(a as u16)))
    } else {
        row!(u32; |a: u32| f32s::canonical(bf16_to_f32(a as u16)))
    }
}

/// An operation on one element.
pub(crate) type Operation = fn([u16; 3], Type) -> u16;

/// The operation of this name.
pub(crate) fn scalar(op: &str) -> Option<Operation> {
    Some(match op {
        "add" => |x, ty| round(rounding::sum_to_odd(to_f64(x[0], ty), to_f64(x[1], ty)), ty),
        "sub" => |x, ty| {
            round(
                rounding::sum_to_odd(to_f64(x[0], ty), -to_f64(x[1], ty)),
                ty,
            )
        },
        "mul" => |x, ty| round(to_f64(x[0], ty) * to_f64(x[1], ty), ty),
        "fma" => fma,
        "fma.relu" => |x, ty| relu(fma(x, ty)),
        "neg" => |x, _| x[0] ^ 0x8000,
        "abs" => |x, _| x[0] & 0x7fff,
        "min" => |x, ty| through_f32(x, ty, f32s::min),
        "max" => |x, ty| through_f32(x, ty, f32s::max),
        "min.NaN" => |x, ty| {
            if any_nan(x, ty) {
                NAN
            } else {
                through_f32(x, ty, f32s::min)
            }
        },
        "max.NaN" => |x, ty| {
            if any_nan(x, ty) {
                NAN
            } else {
                through_f32(x, ty, f32s::max)
            }
        },
        _ => return None,
    })
}

/// Negative numbers become +0, NaN stays.
pub(crate) fn relu(bits: u16) -> u16 {
    if bits != NAN && bits & 0x8000 != 0 {
        0
    } else {
        bits
    }
}

fn round(value: f64, ty: Type) -> u16 {
    from_f64(value, ty, Rounding::Nearest)
}

fn fma(x: [u16; 3], ty: Type) -> u16 {
    let [a, b, c] = x.map(|bits| to_f64(bits, ty));
    round(rounding::sum_to_odd(a * b, c), ty)
}

fn any_nan(x: [u16; 3], ty: Type) -> bool {
    x[..2].iter().any(|&bits| to_f64(bits, ty).is_nan())
}

/// Every f16 and bf16 is an f32: NaNs and the order of zeros are as there.
fn through_f32(x: [u16; 3], ty: Type, operation: fn(u32, u32) -> u32) -> u16 {
    let [a, b, _] = x.map(|bits| (to_f64(bits, ty) as f32).to_bits());
    round(f32::from_bits(operation(a, b)).into(), ty)
}
