//! Rounding, done once for all: results are formed in f64, inexact ones *rounded to odd*, and then rounded to the
//! target. As f64 has more than twice the target's digits, the second rounding is exact for what was really meant
//! (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd").

use slabfence_emu_ptx::Modifier;

/// How a result that lies between two values is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To nearest, ties to even.
    Nearest,
    /// Towards zero.
    Zero,
    /// Towards minus infinity.
    Down,
    /// Towards plus infinity.
    Up,
}

impl Rounding {
    /// The first rounding among modifiers (`.rn` or `.rni` and so on), if there is one.
    pub(crate) fn among(modifiers: &[Modifier]) -> Option<Self> {
        modifiers.iter().find_map(|modifier| match modifier {
            Modifier::Rn | Modifier::Rni => Some(Self::Nearest),
            Modifier::Rz | Modifier::Rzi => Some(Self::Zero),
            Modifier::Rm | Modifier::Rmi => Some(Self::Down),
            Modifier::Rp | Modifier::Rpi => Some(Self::Up),
            _ => None,
        })
    }
}

/// `a + b`, rounded to odd if it is not exact.
#[inline(always)]
pub(crate) fn sum_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    // The exact error of the sum (Knuth's TwoSum); NaN where the sum is not finite, and then neither comparison holds.
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    let bits = sum.to_bits();
    let inexact = (error > 0.0) | (error < 0.0);
    let outwards = (error > 0.0) == (sum > 0.0);
    let neighbour = if outwards {
        bits.wrapping_add(1)
    } else {
        bits.wrapping_sub(1)
    };
    f64::from_bits(if inexact & (bits & 1 == 0) {
        neighbour
    } else {
        bits
    })
}

/// `a * b + c` for f32 values, as an f64 rounded to odd. (The product of two f32 is exact in f64.)
#[inline(always)]
pub(crate) fn fused(a: f32, b: f32, c: f32) -> f64 {
    sum_to_odd(f64::from(a) * f64::from(b), f64::from(c))
}

/// An f64 (exact, or rounded to odd) to f32.
pub(crate) fn to_f32(value: f64, rounding: Rounding) -> f32 {
    let nearest = value as f32;
    let back = f64::from(nearest);
    let inwards = |x: f32| f32::from_bits(x.to_bits() - 1);
    match rounding {
        Rounding::Zero if back.abs() > value.abs() => inwards(nearest),
        Rounding::Down if back > value => nearest.next_down(),
        Rounding::Up if back < value => nearest.next_up(),
        _ => nearest,
    }
}

/// An f64 to an integral f64.
pub(crate) fn to_integral(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => value.round_ties_even(),
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    }
}

/// An exact integer to f64, rounded to odd if it has more than 53 digits.
pub(crate) fn integer_to_odd(value: i128) -> f64 {
    let magnitude = value.unsigned_abs();
    let excess = (128 - magnitude.leading_zeros()).saturating_sub(53);
    let kept = magnitude >> excess;
    let sticky = u128::from(kept << excess != magnitude);
    // At most 53 digits: the conversion is exact, and so is the scaling.
    let result = (kept | sticky) as f64 * 2f64.powi(excess as i32);
    if value < 0 { -result } else { result }
}

/// An exact integer to f64.
pub(crate) fn integer_to_f64(value: i128, rounding: Rounding) -> f64 {
    let nearest = value as f64;
    let back = nearest as i128;
    match rounding {
        Rounding::Zero if back.abs() > value.abs() => f64::from_bits(nearest.to_bits() - 1),
        Rounding::Down if back > value => nearest.next_down(),
        Rounding::Up if back < value => nearest.next_up(),
        _ => nearest,
    }
}
