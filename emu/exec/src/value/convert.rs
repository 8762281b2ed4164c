//! `cvt`: any number to any other type.

use super::{
    f32s, halves,
    ints::Int,
    rounding::{self, Rounding},
};
use slabfence_emu_ptx::Type;

/// A conversion, value at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversion {
    pub(crate) to: Type,
    pub(crate) from: Type,
    /// The rounding that the instruction gives, if it does.
    pub(crate) rounding: Option<Rounding>,
    /// Whether a rounding to an integer is meant (`.rni` and so on).
    pub(crate) integral: bool,
    pub(crate) saturate: bool,
    pub(crate) flush: bool,
    pub(crate) relu: bool,
}

impl Conversion {
    /// The converted value, in the bits of `to`, zero-extended.
    pub(crate) fn apply(&self, bits: u64) -> u64 {
        match (self.from.is_float(), self.to.is_float()) {
            (false, false) => self.integer(exact(self.from, bits)),
            (false, true) if self.to == Type::F64 => {
                let rounding = self.rounding.unwrap_or(Rounding::Nearest);
                rounding::integer_to_f64(exact(self.from, bits), rounding).to_bits()
            }
            (false, true) => self.float(rounding::integer_to_odd(exact(self.from, bits))),
            (true, false) => self.float_to_integer(bits),
            (true, true) => self.float(self.source(bits)),
        }
    }

    /// The source as a number, subnormal f32 flushed if asked.
    fn source(&self, bits: u64) -> f64 {
        match self.from {
            Type::F16 | Type::Bf16 => halves::to_f64(bits as u16, self.from),
            Type::F32 if self.flush => f32::from_bits(f32s::flush(bits as u32)).into(),
            Type::F32 => f32::from_bits(bits as u32).into(),
            _ => f64::from_bits(bits),
        }
    }

    fn integer(&self, value: i128) -> u64 {
        macro_rules! to {
            ($ty:ty) => {
                if self.saturate {
                    <$ty>::clamped(value).bits()
                } else {
                    <$ty>::wrapped(value).bits()
                }
            };
        }
        match self.to {
            Type::U8 => to!(u8),
            Type::S8 => to!(i8),
            Type::U16 => to!(u16),
            Type::S16 => to!(i16),
            Type::U32 => to!(u32),
            Type::S32 => to!(i32),
            Type::U64 => to!(u64),
            _ => to!(i64),
        }
    }

    /// Out of range goes to the nearest end; NaN to 0, or to 2^63 where 64 bits are involved.
    fn float_to_integer(&self, bits: u64) -> u64 {
        let value = self.source(bits);
        if value.is_nan() {
            let wide = self.from == Type::F64 || self.to.bytes() == 8;
            return if wide {
                1 << (8 * self.to.bytes() - 1)
            } else {
                0
            };
        }
        let integral = rounding::to_integral(value, self.rounding.unwrap_or(Rounding::Zero));
        Self {
            saturate: true,
            ..*self
        }
        .integer(integral as i128)
    }

    fn float(&self, value: f64) -> u64 {
        let rounding = self.rounding.unwrap_or(Rounding::Nearest);
        let value = if self.integral {
            rounding::to_integral(value, rounding)
        } else {
            value
        };
        let value = match value {
            x if !self.saturate => x,
            x if x >= 1.0 => 1.0,
            x if x > 0.0 => x,
            _ => 0.0,
        };
        match self.to {
            Type::F32 => {
                let bits = f32s::canonical(rounding::to_f32(value, rounding));
                u64::from(if self.flush { f32s::flush(bits) } else { bits })
            }
            Type::F64 if value.is_nan() => 0x7fff_ffff_ffff_ffff,
            Type::F64 => value.to_bits(),
            _ => {
                let bits = halves::from_f64(value, self.to, rounding);
                u64::from(if self.relu { halves::relu(bits) } else { bits })
            }
        }
    }
}

/// An integer's value.
fn exact(ty: Type, bits: u64) -> i128 {
    match ty {
        Type::U8 => u8::of(bits).exact(),
        Type::S8 => i8::of(bits).exact(),
        Type::U16 => u16::of(bits).exact(),
        Type::S16 => i16::of(bits).exact(),
        Type::U32 => u32::of(bits).exact(),
        Type::S32 => i32::of(bits).exact(),
        Type::U64 => u64::of(bits).exact(),
        _ => i64::of(bits).exact(),
    }
}
