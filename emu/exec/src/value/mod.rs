//! What instructions compute, one value or one row (a value per lane) at a time. No state, no memory.

pub(crate) mod convert;
pub(crate) mod f32s;
pub(crate) mod halves;
pub(crate) mod ints;
pub(crate) mod other_floats;
pub(crate) mod rounding;

/// Lanes of a warp.
pub(crate) const LANES: usize = 32;
/// A 32-bit (or narrower, zero-extended) value of every lane.
pub(crate) type Narrow = [u32; LANES];
/// A 64-bit value of every lane.
pub(crate) type Wide = [u64; LANES];
/// A value-at-a-time function: up to four operands, zero-extended.
pub(crate) type Scalar = fn([u64; 4]) -> u64;

/// A function on rows from a function on values.
///
/// `row!(u32; |a: u32, b: u32| a.wrapping_add(b))` is a `fn(&[u32; 32], &[u32; 32]) -> [u32; 32]`.
macro_rules! row {
    ($out:ty; |$($name:ident: $in:ty),+| $value:expr) => {{
        fn function($($name: &[$in; $crate::value::LANES]),+) -> [$out; $crate::value::LANES] {
            let mut out = [0; $crate::value::LANES];
            for (lane, out) in out.iter_mut().enumerate() {
                $(let $name = $name[lane];)+
                *out = $value;
            }
            out
        }
        function
    }};
}

/// A function from rows to a mask of lanes, from a condition on values.
macro_rules! mask {
    (|$($name:ident: $in:ty),+| $value:expr) => {{
        fn function($($name: &[$in; $crate::value::LANES]),+) -> u32 {
            let mut flags = [0u32; $crate::value::LANES];
            for (lane, flag) in flags.iter_mut().enumerate() {
                $(let $name = $name[lane];)+
                *flag = u32::from($value) << lane;
            }
            flags.iter().fold(0, |mask, flag| mask | flag)
        }
        function
    }};
}

pub(crate) use {mask, row};
