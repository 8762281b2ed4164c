//! The LSE-weighted sum of `docs/arithmetic.md` on the host: once operation by operation as the text has it, which every
//! result must equal bit for bit, and once in 64-bit floats, which it must be near.

use std::f64::consts::{LN_2, LOG2_E};

use half::{bf16, f16};
use slabfence::collective::LseBase;
use slabfence::layout::DType;

/// Half a unit in the last place of 1.0 as f32: the largest relative error of one rounded operation.
const HALF_ULP: f64 = 1.0 / (1u32 << 24) as f64;

/// An element's value.
///
/// # Panics
///
/// For element types that weights do not apply to.
pub fn widen(dtype: DType, bits: u32) -> f32 {
    match dtype {
        DType::F32 => f32::from_bits(bits),
        DType::F16 => f16::from_bits(bits as u16).to_f32(),
        DType::Bf16 => bf16::from_bits(bits as u16).to_f32(),
        other => panic!("{other:?} has no weights"),
    }
}

/// The one rounding at the end: to nearest even, NaN canonical.
///
/// # Panics
///
/// As [`widen`].
pub fn narrow(dtype: DType, x: f32) -> u32 {
    match dtype {
        DType::F32 if x.is_nan() => 0x7fff_ffff,
        DType::F16 | DType::Bf16 if x.is_nan() => 0x7fff,
        DType::F32 => x.to_bits(),
        DType::F16 => f16::from_f32(x).to_bits().into(),
        DType::Bf16 => bf16::from_f32(x).to_bits().into(),
        other => panic!("{other:?} has no weights"),
    }
}

/// `exp2_nonpositive`: the Taylor polynomial of 2^f by powers of ln 2, its coefficients rounded to f32.
pub fn exp2_nonpositive(x: f32) -> f32 {
    if x.is_nan() || x < -125.0 {
        return 0.0;
    }
    // The sum's last place is 1, so it rounds x to the nearest integer, ties to even.
    let magic = 1.5 * (1u32 << 23) as f32;
    let n = (x + magic) - magic;
    let f = x - n;
    let coefficient = |k: i32| {
        let factorial: f64 = (1..=k).map(f64::from).product();
        (LN_2.powi(k) / factorial) as f32
    };
    let polynomial = (0..7)
        .rev()
        .fold(coefficient(7), |y, k| f32::mul_add(y, f, coefficient(k)));
    // A product with a power of two is exact.
    polynomial * (n as f64).exp2() as f32
}

/// The normalised weights `n_r` of the sources with these LSE, in rank order.
pub fn weights(base: LseBase, lse: &[f32]) -> Vec<f32> {
    let factor = match base {
        LseBase::E => LOG2_E as f32,
        LseBase::Two => 1.0,
    };
    let finite = lse.iter().copied().filter(|l| l.is_finite());
    let Some(largest) = finite.reduce(f32::max) else {
        return vec![0.0; lse.len()];
    };
    let weight = |&l: &f32| {
        if l.is_finite() {
            exp2_nonpositive((l - largest) * factor)
        } else {
            0.0
        }
    };
    let weights: Vec<f32> = lse.iter().map(weight).collect();
    let sum = weights.iter().fold(0.0f32, |sum, w| sum + w);
    let inverse = 1.0 / sum;
    weights.iter().map(|w| w * inverse).collect()
}

/// The combination of one element, from the normalised weights and each source's bits of it.
pub fn combine(dtype: DType, weights: &[f32], parts: &[u32]) -> u32 {
    let sum = weights
        .iter()
        .zip(parts)
        .filter(|(weight, _)| **weight != 0.0)
        .fold(0.0f32, |sum, (&weight, &bits)| {
            f32::mul_add(weight, widen(dtype, bits), sum)
        });
    narrow(dtype, sum)
}

/// The combination of one element in f64, and how far from it a right result may be: per source a relative error of
/// the exponent's argument (three roundings: difference, factor, product), of 2^x (two halves of an ulp), of the sum of
/// weights, its inverse, the product with it and W fused sums; and one rounding to the element type.
pub fn reference(dtype: DType, base: LseBase, lse: &[f32], parts: &[u32]) -> (f64, f64) {
    let factor = match base {
        LseBase::E => LOG2_E,
        LseBase::Two => 1.0,
    };
    let finite = lse.iter().copied().filter(|l| l.is_finite());
    let Some(largest) = finite.reduce(f32::max).map(f64::from) else {
        return (0.0, 0.0);
    };
    let world = lse.len() as f64;
    let (mut sum, mut value, mut error) = (0.0, 0.0, 0.0);
    for (&l, &bits) in lse.iter().zip(parts) {
        if l.is_finite() {
            let x = (f64::from(l) - largest) * factor;
            let weight = x.exp2();
            let part = weight * f64::from(widen(dtype, bits));
            sum += weight;
            value += part;
            // 2^-125 is the weight that may have become zero.
            let lost = 2f64.powi(-125) * f64::from(widen(dtype, bits)).abs();
            error += part.abs() * HALF_ULP * (3.0 * LN_2 * x.abs() + 2.0 * world + 4.0) + lost;
        }
    }
    let (value, error) = (value / sum, error / sum);
    // Half an ulp of the element type, and of its smallest number.
    let (digits, smallest) = match dtype {
        DType::F16 => (11, 2f64.powi(-24)),
        DType::Bf16 => (8, 2f64.powi(-133)),
        _ => (24, 2f64.powi(-149)),
    };
    let rounding = (value.abs() + error) * 2f64.powi(-digits) + smallest / 2.0;
    (value, error + rounding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_are_exact_and_the_rest_is_within_nine_tenths_of_an_ulp() {
        for n in 0..=125u8 {
            let x = -f32::from(n);
            assert_eq!(f64::from(exp2_nonpositive(x)), f64::from(x).exp2());
        }
        assert_eq!(exp2_nonpositive(-125.1), 0.0);
        assert_eq!(exp2_nonpositive(f32::NAN), 0.0);
        for step in 0..100_000u32 {
            let x = -(step as f32) * 1.237e-3;
            let exact = f64::from(x).exp2();
            let ulp = 2f64.powi(exact.log2().floor() as i32 - 23);
            let off = (f64::from(exp2_nonpositive(x)) - exact).abs() / ulp;
            assert!(off < 0.9, "2^{x} is off by {off} ulp");
        }
    }

    #[test]
    fn empty_shards_have_no_weight_and_equal_ones_share() {
        let lse = [f32::NAN, 3.0, f32::NEG_INFINITY, 3.0, f32::INFINITY];
        assert_eq!(weights(LseBase::E, &lse), [0.0, 0.5, 0.0, 0.5, 0.0]);
        assert_eq!(weights(LseBase::Two, &[f32::NAN; 3]), [0.0; 3]);
        assert_eq!(weights(LseBase::Two, &[0.0, -1.0]), [2.0 / 3.0, 1.0 / 3.0]);
    }

    #[test]
    fn the_rounding_is_to_nearest_even_and_no_number_has_one_form() {
        assert_eq!(narrow(DType::Bf16, f32::from_bits(0x3f80_8000)), 0x3f80);
        assert_eq!(narrow(DType::Bf16, f32::from_bits(0x3f81_8000)), 0x3f82);
        assert_eq!(narrow(DType::F16, 65520.0), 0x7c00);
        assert_eq!(narrow(DType::F16, -f32::NAN), 0x7fff);
        assert_eq!(narrow(DType::F32, -f32::NAN), 0x7fff_ffff);
    }
}
