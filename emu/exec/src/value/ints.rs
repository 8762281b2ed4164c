//! Integer arithmetic.

use super::{Narrow, Scalar, Wide, mask, row};
use slabfence_emu_ptx::{Modifier, Type};

/// A function of two 32-bit rows.
pub(crate) type Narrow2 = fn(&Narrow, &Narrow) -> Narrow;
/// A function of two 64-bit rows.
pub(crate) type Wide2 = fn(&Wide, &Wide) -> Wide;

/// An integer type of PTX as a Rust type. Values travel zero-extended in a `u64`.
pub(crate) trait Int: Copy + Ord {
    const BITS: u32;
    const SIGNED: bool;
    /// Truncates.
    fn of(bits: u64) -> Self;
    fn bits(self) -> u64;
    fn exact(self) -> i128;
    /// Saturates.
    fn clamped(value: i128) -> Self;
    fn wrapped(value: i128) -> Self;
}

macro_rules! int {
    ($($ty:ty as $unsigned:ty),*) => {$(
        impl Int for $ty {
            const BITS: u32 = <$ty>::BITS;
            const SIGNED: bool = <$ty>::MIN != 0;
            fn of(bits: u64) -> Self { bits as $ty }
            fn bits(self) -> u64 { u64::from(self as $unsigned) }
            fn exact(self) -> i128 { i128::from(self) }
            fn clamped(value: i128) -> Self { value.clamp(<$ty>::MIN.into(), <$ty>::MAX.into()) as $ty }
            fn wrapped(value: i128) -> Self { value as $ty }
        }
    )*};
}
int!(
    u8 as u8, i8 as u8, u16 as u16, i16 as u16, u32 as u32, i32 as u32, u64 as u64, i64 as u64
);

/// Picks the instance of a generic function for an integer type; bit types count as unsigned.
macro_rules! by_int {
    ($ty:expr, $function:ident) => {
        match $ty {
            Type::U8 | Type::B8 => Some($function::<u8> as Scalar),
            Type::S8 => Some($function::<i8>),
            Type::U16 | Type::B16 => Some($function::<u16>),
            Type::S16 => Some($function::<i16>),
            Type::U32 | Type::B32 => Some($function::<u32>),
            Type::S32 => Some($function::<i32>),
            Type::U64 | Type::B64 => Some($function::<u64>),
            Type::S64 => Some($function::<i64>),
            _ => None,
        }
    };
}

/// Row functions for the operations that kernels are made of.
pub(crate) fn narrow2(op: &str, ty: Type) -> Option<Narrow2> {
    if ty.bytes() != 4 || ty.is_float() {
        return None;
    }
    Some(match (op, ty.is_signed()) {
        ("add", _) => row!(u32; |a: u32, b: u32| a.wrapping_add(b)),
        ("sub", _) => row!(u32; |a: u32, b: u32| a.wrapping_sub(b)),
        ("mul.lo", _) => row!(u32; |a: u32, b: u32| a.wrapping_mul(b)),
        ("and", _) => row!(u32; |a: u32, b: u32| a & b),
        ("or", _) => row!(u32; |a: u32, b: u32| a | b),
        ("xor", _) => row!(u32; |a: u32, b: u32| a ^ b),
        ("shl", _) => row!(u32; |a: u32, n: u32| if n < 32 { a << n } else { 0 }),
        ("shr", false) => row!(u32; |a: u32, n: u32| if n < 32 { a >> n } else { 0 }),
        ("shr", true) => row!(u32; |a: u32, n: u32| ((a as i32) >> n.min(31)) as u32),
        ("min", false) => row!(u32; |a: u32, b: u32| a.min(b)),
        ("min", true) => row!(u32; |a: u32, b: u32| (a as i32).min(b as i32) as u32),
        ("max", false) => row!(u32; |a: u32, b: u32| a.max(b)),
        ("max", true) => row!(u32; |a: u32, b: u32| (a as i32).max(b as i32) as u32),
        _ => return None,
    })
}

/// The same for 64 bits. (Shifts take their count as a 32-bit row: see [`shift`].)
pub(crate) fn wide2(op: &str, ty: Type) -> Option<Wide2> {
    if ty.bytes() != 8 || ty.is_float() {
        return None;
    }
    Some(match (op, ty.is_signed()) {
        ("add", _) => row!(u64; |a: u64, b: u64| a.wrapping_add(b)),
        ("sub", _) => row!(u64; |a: u64, b: u64| a.wrapping_sub(b)),
        ("mul.lo", _) => row!(u64; |a: u64, b: u64| a.wrapping_mul(b)),
        ("and", _) => row!(u64; |a: u64, b: u64| a & b),
        ("or", _) => row!(u64; |a: u64, b: u64| a | b),
        ("xor", _) => row!(u64; |a: u64, b: u64| a ^ b),
        ("min", false) => row!(u64; |a: u64, b: u64| a.min(b)),
        ("min", true) => row!(u64; |a: u64, b: u64| (a as i64).min(b as i64) as u64),
        ("max", false) => row!(u64; |a: u64, b: u64| a.max(b)),
        ("max", true) => row!(u64; |a: u64, b: u64| (a as i64).max(b as i64) as u64),
        _ => return None,
    })
}

/// 64-bit shifts; counts of 64 and more give 0, or the sign.
pub(crate) fn shift(op: &str, ty: Type) -> Option<fn(&Wide, &Narrow) -> Wide> {
    Some(match (op, ty.is_signed()) {
        _ if ty.bytes() != 8 => return None,
        ("shl", _) => row!(u64; |a: u64, n: u32| if n < 64 { a << n } else { 0 }),
        ("shr", false) => row!(u64; |a: u64, n: u32| if n < 64 { a >> n } else { 0 }),
        ("shr", true) => row!(u64; |a: u64, n: u32| ((a as i64) >> n.min(63)) as u64),
        _ => return None,
    })
}

/// Any other operation, a value at a time.
pub(crate) fn scalar(op: &str, ty: Type) -> Option<Scalar> {
    match op {
        "add" => by_int!(ty, add),
        "add.sat" => by_int!(ty, add_sat),
        "sub" => by_int!(ty, sub),
        "sub.sat" => by_int!(ty, sub_sat),
        "mul.lo" => by_int!(ty, mul_lo),
        "mul.hi" => by_int!(ty, mul_hi),
        "mul.wide" => by_int!(ty, mul_wide),
        "mad.lo" => by_int!(ty, mad_lo),
        "mad.hi" => by_int!(ty, mad_hi),
        "mad.wide" => by_int!(ty, mad_wide),
        "div" => by_int!(ty, div),
        "rem" => by_int!(ty, rem),
        "abs" => by_int!(ty, abs),
        "neg" => by_int!(ty, neg),
        "min" => by_int!(ty, min),
        "max" => by_int!(ty, max),
        "sad" => by_int!(ty, sad),
        "and" => Some(|x| x[0] & x[1]),
        "or" => Some(|x| x[0] | x[1]),
        "xor" => Some(|x| x[0] ^ x[1]),
        "not" => by_int!(ty, not),
        "cnot" => Some(|x| u64::from(x[0] == 0)),
        "shl" => by_int!(ty, shl),
        "shr" => by_int!(ty, shr),
        _ => super::ints::bits::scalar(op, ty),
    }
}

pub(crate) mod bits;

fn add<T: Int>(x: [u64; 4]) -> u64 {
    T::of(x[0].wrapping_add(x[1])).bits()
}

fn add_sat<T: Int>(x: [u64; 4]) -> u64 {
    T::clamped(T::of(x[0]).exact() + T::of(x[1]).exact()).bits()
}

fn sub<T: Int>(x: [u64; 4]) -> u64 {
    T::of(x[0].wrapping_sub(x[1])).bits()
}

fn sub_sat<T: Int>(x: [u64; 4]) -> u64 {
    T::clamped(T::of(x[0]).exact() - T::of(x[1]).exact()).bits()
}

/// The whole product. It fits: signed ones in 128 bits by magnitude, unsigned ones are read back modulo 2^128.
fn product<T: Int>(a: u64, b: u64) -> i128 {
    T::of(a).exact().wrapping_mul(T::of(b).exact())
}

fn mul_lo<T: Int>(x: [u64; 4]) -> u64 {
    T::of(x[0].wrapping_mul(x[1])).bits()
}

fn mul_hi<T: Int>(x: [u64; 4]) -> u64 {
    // The shift is arithmetic, and `of` keeps only the bits below: right for either sign.
    T::of((product::<T>(x[0], x[1]) >> T::BITS) as u64).bits()
}

/// The result is twice as wide as the operands (which have at most 32 bits).
fn mul_wide<T: Int>(x: [u64; 4]) -> u64 {
    twice::<T>(product::<T>(x[0], x[1]) as u64)
}

fn twice<T: Int>(value: u64) -> u64 {
    if T::BITS == 16 {
        value & 0xffff_ffff
    } else {
        value
    }
}

fn mad_lo<T: Int>(x: [u64; 4]) -> u64 {
    T::of(x[0].wrapping_mul(x[1]).wrapping_add(x[2])).bits()
}

fn mad_hi<T: Int>(x: [u64; 4]) -> u64 {
    T::of(mul_hi::<T>(x).wrapping_add(x[2])).bits()
}

fn mad_wide<T: Int>(x: [u64; 4]) -> u64 {
    twice::<T>(mul_wide::<T>(x).wrapping_add(x[2]))
}

/// Division by zero is unspecified in PTX; the hardware gives all ones, and so do we.
fn div<T: Int>(x: [u64; 4]) -> u64 {
    let (a, b) = (T::of(x[0]).exact(), T::of(x[1]).exact());
    T::wrapped(a.checked_div(b).unwrap_or(-1)).bits()
}

/// The remainder by zero is unspecified in PTX; the hardware gives the dividend, and so do we.
fn rem<T: Int>(x: [u64; 4]) -> u64 {
    let (a, b) = (T::of(x[0]).exact(), T::of(x[1]).exact());
    T::wrapped(a.checked_rem(b).unwrap_or(a)).bits()
}

fn abs<T: Int>(x: [u64; 4]) -> u64 {
    T::wrapped(T::of(x[0]).exact().abs()).bits()
}

fn neg<T: Int>(x: [u64; 4]) -> u64 {
    T::wrapped(-T::of(x[0]).exact()).bits()
}

fn min<T: Int>(x: [u64; 4]) -> u64 {
    T::of(x[0]).min(T::of(x[1])).bits()
}

fn max<T: Int>(x: [u64; 4]) -> u64 {
    T::of(x[0]).max(T::of(x[1])).bits()
}

fn sad<T: Int>(x: [u64; 4]) -> u64 {
    let distance = (T::of(x[0]).exact() - T::of(x[1]).exact()).abs();
    T::wrapped(distance + T::of(x[2]).exact()).bits()
}

fn not<T: Int>(x: [u64; 4]) -> u64 {
    T::of(!x[0]).bits()
}

fn shl<T: Int>(x: [u64; 4]) -> u64 {
    T::of(if x[1] < 64 { x[0] << x[1] } else { 0 }).bits()
}

fn shr<T: Int>(x: [u64; 4]) -> u64 {
    T::wrapped(T::of(x[0]).exact() >> x[1].min(64)).bits()
}

/// Comparison of 32-bit rows. The names of unsigned order (`lo`, `hs`) are those of `lt`, `ge`.
pub(crate) fn compare_narrow(cmp: Modifier, signed: bool) -> Option<fn(&Narrow, &Narrow) -> u32> {
    use Modifier::*;
    Some(match (cmp, signed) {
        (Eq, _) => mask!(|a: u32, b: u32| a == b),
        (Ne, _) => mask!(|a: u32, b: u32| a != b),
        (Lt | Lo, false) => mask!(|a: u32, b: u32| a < b),
        (Le | Ls, false) => mask!(|a: u32, b: u32| a <= b),
        (Gt | Hi, false) => mask!(|a: u32, b: u32| a > b),
        (Ge | Hs, false) => mask!(|a: u32, b: u32| a >= b),
        (Lt, true) => mask!(|a: u32, b: u32| (a as i32) < b as i32),
        (Le, true) => mask!(|a: u32, b: u32| a as i32 <= b as i32),
        (Gt, true) => mask!(|a: u32, b: u32| a as i32 > b as i32),
        (Ge, true) => mask!(|a: u32, b: u32| a as i32 >= b as i32),
        _ => return None,
    })
}

/// Comparison of rows of signed 16-bit values, whose upper halves say nothing.
pub(crate) fn compare_short(cmp: Modifier) -> Option<fn(&Narrow, &Narrow) -> u32> {
    use Modifier::*;
    Some(match cmp {
        Eq => mask!(|a: u32, b: u32| a as i16 == b as i16),
        Ne => mask!(|a: u32, b: u32| a as i16 != b as i16),
        Lt => mask!(|a: u32, b: u32| (a as i16) < b as i16),
        Le => mask!(|a: u32, b: u32| a as i16 <= b as i16),
        Gt => mask!(|a: u32, b: u32| a as i16 > b as i16),
        Ge => mask!(|a: u32, b: u32| a as i16 >= b as i16),
        _ => return None,
    })
}

/// Comparison of 64-bit rows.
pub(crate) fn compare_wide(cmp: Modifier, signed: bool) -> Option<fn(&Wide, &Wide) -> u32> {
    use Modifier::*;
    Some(match (cmp, signed) {
        (Eq, _) => mask!(|a: u64, b: u64| a == b),
        (Ne, _) => mask!(|a: u64, b: u64| a != b),
        (Lt | Lo, false) => mask!(|a: u64, b: u64| a < b),
        (Le | Ls, false) => mask!(|a: u64, b: u64| a <= b),
        (Gt | Hi, false) => mask!(|a: u64, b: u64| a > b),
        (Ge | Hs, false) => mask!(|a: u64, b: u64| a >= b),
        (Lt, true) => mask!(|a: u64, b: u64| (a as i64) < b as i64),
        (Le, true) => mask!(|a: u64, b: u64| a as i64 <= b as i64),
        (Gt, true) => mask!(|a: u64, b: u64| a as i64 > b as i64),
        (Ge, true) => mask!(|a: u64, b: u64| a as i64 >= b as i64),
        _ => return None,
    })
}
