//! Counting, moving and picking bits.

use super::Int;
use crate::value::Scalar;
use slabfence_emu_ptx::Type;

/// The operation of this name (opcode and the modifiers that choose it), a value at a time.
pub(crate) fn scalar(op: &str, ty: Type) -> Option<Scalar> {
    match op {
        "popc" => Some(|x| x[0].count_ones().into()),
        "clz" => by_int!(ty, clz),
        "brev" => by_int!(ty, brev),
        "bfind" => by_int!(ty, bfind),
        "bfind.shiftamt" => by_int!(ty, bfind_shift),
        "bfe" => by_int!(ty, bfe),
        "bfi" => by_int!(ty, bfi),
        "shf.l.clamp" => Some(|x| funnel_left(x[0], x[1], x[2].min(32))),
        "shf.l.wrap" => Some(|x| funnel_left(x[0], x[1], x[2] & 31)),
        "shf.r.clamp" => Some(|x| funnel_right(x[0], x[1], x[2].min(32))),
        "shf.r.wrap" => Some(|x| funnel_right(x[0], x[1], x[2] & 31)),
        "lop3" => Some(lop3),
        "prmt" => Some(prmt),
        "prmt.f4e" => Some(|x| prmt_mode(x, |from, i| from + i)),
        "prmt.b4e" => Some(|x| prmt_mode(x, |from, i| 8 + from - i)),
        "prmt.rc8" => Some(|x| prmt_mode(x, |from, _| from)),
        "prmt.ecl" => Some(|x| prmt_mode(x, |from, i| from.max(i))),
        "prmt.ecr" => Some(|x| prmt_mode(x, |from, i| from.min(i))),
        "prmt.rc16" => Some(|x| prmt_mode(x, |from, i| (from & 1) * 2 + (i & 1))),
        _ => None,
    }
}

fn clz<T: Int>(x: [u64; 4]) -> u64 {
    u64::from(x[0].leading_zeros() - (64 - T::BITS))
}

fn brev<T: Int>(x: [u64; 4]) -> u64 {
    x[0].reverse_bits() >> (64 - T::BITS)
}

/// The highest bit that is set (for negative numbers: clear); all ones when there is none.
fn bfind<T: Int>(x: [u64; 4]) -> u64 {
    let value = T::of(x[0]);
    let bits = if value.exact() < 0 {
        T::of(!x[0]).bits()
    } else {
        value.bits()
    };
    bits.checked_ilog2().map_or(0xffff_ffff, u64::from)
}

fn bfind_shift<T: Int>(x: [u64; 4]) -> u64 {
    match bfind::<T>(x) {
        0xffff_ffff => 0xffff_ffff,
        at => u64::from(T::BITS) - 1 - at,
    }
}

/// Position and length are bytes; a signed field is extended by its own highest bit, or the value's where it passes it.
fn bfe<T: Int>(x: [u64; 4]) -> u64 {
    let (at, len) = ((x[1] & 0xff) as u32, (x[2] & 0xff) as u32);
    if len == 0 {
        return 0;
    }
    let value = T::of(x[0]);
    // Arithmetic for signed types, so that bits above the value repeat its sign.
    let field = value.exact() >> at.min(T::BITS);
    let width = len.min(T::BITS);
    let low = field & ((1i128 << width) - 1);
    if !T::SIGNED {
        return T::wrapped(low).bits();
    }
    let top = (at + len - 1).min(T::BITS - 1);
    let negative = value.bits() >> top & 1 == 1;
    T::wrapped(if negative {
        low | (-1i128 << width)
    } else {
        low
    })
    .bits()
}

/// Operands: the field, the value it goes into, position, length.
fn bfi<T: Int>(x: [u64; 4]) -> u64 {
    let (at, len) = ((x[2] & 0xff) as u32, (x[3] & 0xff) as u32);
    if at >= T::BITS || len == 0 {
        return x[1];
    }
    let mask = if len >= 64 { u64::MAX } else { (1 << len) - 1 } << at;
    T::of((x[1] & !mask) | (x[0] << at & mask)).bits()
}

fn funnel_left(low: u64, high: u64, count: u64) -> u64 {
    ((high << 32 | low) << count >> 32) & 0xffff_ffff
}

fn funnel_right(low: u64, high: u64, count: u64) -> u64 {
    ((high << 32 | low) >> count) & 0xffff_ffff
}

/// The fourth operand is the truth table: bit `abc` (a highest) of it is the result.
fn lop3(x: [u64; 4]) -> u64 {
    let [a, b, c, table] = x;
    let mut out = 0;
    for row in 0..8u64 {
        if table >> row & 1 == 1 {
            let pick = |value: u64, bit: u64| if row >> bit & 1 == 1 { value } else { !value };
            out |= pick(a, 2) & pick(b, 1) & pick(c, 0);
        }
    }
    out & 0xffff_ffff
}

fn byte_of(x: [u64; 4], at: u64) -> u64 {
    (x[1] << 32 | x[0]) >> (8 * (at & 7)) & 0xff
}

/// Four selectors of four bits: three pick the byte, the fourth asks for copies of its sign.
fn prmt(x: [u64; 4]) -> u64 {
    (0..4).fold(0, |out, i| {
        let selector = x[2] >> (4 * i) & 0xf;
        let byte = byte_of(x, selector);
        let byte = if selector & 8 == 0 {
            byte
        } else {
            0xff * (byte >> 7)
        };
        out | byte << (8 * i)
    })
}

fn prmt_mode(x: [u64; 4], source: fn(u64, u64) -> u64) -> u64 {
    (0..4).fold(0, |out, i| out | byte_of(x, source(x[2] & 3, i)) << (8 * i))
}
