//! Logic, shifts, and picking of bits.

use crate::support::table::check;

const M1: u64 = 0xffff_ffff;

#[test]
fn logic_is_bitwise() {
    check("and.b32", "rrr", &[(&[0b1100, 0b1010], 0b1000)]);
    check("or.b32", "rrr", &[(&[0b1100, 0b1010], 0b1110)]);
    check("xor.b32", "rrr", &[(&[0b1100, 0b1010], 0b0110)]);
    check("not.b32", "rr", &[(&[0], M1)]);
    check("and.b64", "ddd", &[(&[u64::MAX, 5 << 40], 5 << 40)]);
    check("or.b64", "ddd", &[(&[1 << 63, 1], 1 << 63 | 1)]);
    check("xor.b64", "ddd", &[(&[u64::MAX, 1], u64::MAX - 1)]);
    check("not.b64", "dd", &[(&[1], u64::MAX - 1)]);
    check("and.b16", "hhh", &[(&[0xff0, 0xff], 0xf0)]);
    check("not.b16", "hh", &[(&[1], 0xfffe)]);
    check("xor.b16", "hhh", &[(&[0xffff, 1], 0xfffe)]);
    check("cnot.b32", "rr", &[(&[0], 1), (&[7], 0)]);
    check(
        "lop3.b32 $0, $1, $2, $3, 0x96",
        "rrrr",
        &[(&[0b1100, 0b1010, 0b1111], 0b1001)],
    );
    check(
        "lop3.b32 $0, $1, $2, $3, 0xE4",
        "rrrr",
        &[(&[0xaaaa, 0x5555, 0x00ff], 0x55aa)],
    );
}

#[test]
fn shifts_clamp_their_count() {
    check(
        "shl.b32",
        "rrr",
        &[
            (&[1, 31], 1 << 31),
            (&[1, 32], 0),
            (&[1, M1], 0),
            (&[3, 1], 6),
        ],
    );
    check("shr.u32", "rrr", &[(&[1 << 31, 31], 1), (&[M1, 32], 0)]);
    check(
        "shr.s32",
        "rrr",
        &[(&[1 << 31, 31], M1), (&[1 << 31, 100], M1), (&[64, 3], 8)],
    );
    check("shr.b32", "rrr", &[(&[1 << 31, 31], 1)]);
    check(
        "shl.b64",
        "ddr",
        &[(&[1, 63], 1 << 63), (&[1, 64], 0), (&[1, 40], 1 << 40)],
    );
    check(
        "shr.u64",
        "ddr",
        &[(&[1 << 63, 63], 1), (&[u64::MAX, 64], 0)],
    );
    check(
        "shr.s64",
        "ddr",
        &[(&[1 << 63, 63], u64::MAX), (&[1 << 63, 200], u64::MAX)],
    );
    check("shl.b16", "hhr", &[(&[0x8001, 1], 2), (&[1, 16], 0)]);
    check(
        "shr.s16",
        "hhr",
        &[(&[0x8000, 15], 0xffff), (&[0x8000, 99], 0xffff)],
    );
    check("shr.u16", "hhr", &[(&[0x8000, 15], 1), (&[0x8000, 16], 0)]);
}

#[test]
fn funnel_shifts_join_two_words() {
    let (low, high) = (0x89ab_cdef, 0x0123_4567);
    check(
        "shf.l.wrap.b32",
        "rrrr",
        &[
            (&[low, high, 8], 0x2345_6789),
            (&[low, high, 40], 0x2345_6789),
        ],
    );
    check(
        "shf.l.clamp.b32",
        "rrrr",
        &[
            (&[low, high, 32], low),
            (&[low, high, 99], low),
            (&[low, high, 0], high),
        ],
    );
    check(
        "shf.r.wrap.b32",
        "rrrr",
        &[(&[low, high, 8], 0x6789_abcd), (&[low, high, 32], low)],
    );
    check(
        "shf.r.clamp.b32",
        "rrrr",
        &[(&[low, high, 32], high), (&[low, high, 99], high)],
    );
}

#[test]
fn bits_are_counted_and_found() {
    check("popc.b32", "rr", &[(&[0xff0f], 12), (&[0], 0)]);
    check("popc.b64", "rd", &[(&[u64::MAX], 64)]);
    check("clz.b32", "rr", &[(&[0], 32), (&[1], 31), (&[1 << 31], 0)]);
    check("clz.b64", "rd", &[(&[0], 64), (&[1], 63)]);
    check("brev.b32", "rr", &[(&[1], 1 << 31), (&[0xf0], 0x0f00_0000)]);
    check("brev.b64", "dd", &[(&[1], 1 << 63)]);
    check("bfind.u32", "rr", &[(&[0], M1), (&[0x10], 4), (&[M1], 31)]);
    check("bfind.s32", "rr", &[(&[M1], M1), (&[0xffff_ffef], 4)]);
    check("bfind.shiftamt.u32", "rr", &[(&[0x10], 27), (&[0], M1)]);
    check("bfind.u64", "rd", &[(&[1 << 40], 40), (&[0], M1)]);
    check(
        "bfind.s64",
        "rd",
        &[(&[!(1u64 << 40)], 40), (&[u64::MAX], M1)],
    );
    check("bfind.shiftamt.s64", "rd", &[(&[1 << 40], 23)]);
}

#[test]
fn fields_are_taken_out_and_put_in() {
    check(
        "bfe.u32",
        "rrrr",
        &[
            (&[0x1234_5678, 8, 8], 0x56),
            (&[M1, 28, 8], 0xf),
            (&[M1, 3, 0], 0),
            (&[M1, 40, 8], 0),
        ],
    );
    check(
        "bfe.s32",
        "rrrr",
        &[
            (&[0x0000_8000, 8, 8], 0xffff_ff80),
            (&[0x0000_7f00, 8, 8], 0x7f),
            (&[0x8000_0000, 28, 8], 0xffff_fff8),
            (&[0x8000_0000, 40, 4], M1),
            (&[0x4000_0000, 40, 4], 0),
        ],
    );
    check(
        "bfe.u64",
        "ddrr",
        &[
            (&[0xabcd << 40, 40, 16], 0xabcd),
            (&[u64::MAX, 0, 64], u64::MAX),
            (&[1 << 63, 60, 10], 8),
        ],
    );
    check(
        "bfe.s64",
        "ddrr",
        &[
            (&[1 << 47, 40, 8], (-128i64) as u64),
            (&[1 << 63, 60, 10], (-8i64) as u64),
        ],
    );
    check(
        "bfi.b32",
        "rrrrr",
        &[
            (&[0xab, 0x1111_1111, 8, 8], 0x1111_ab11),
            (&[M1, 0, 28, 8], 0xf000_0000),
            (&[M1, 7, 32, 4], 7),
        ],
    );
    check(
        "bfi.b64",
        "dddrr",
        &[
            (&[0xff, 0, 60, 8], 0xf << 60),
            (&[u64::MAX, 0, 0, 64], u64::MAX),
            (&[3, 8, 1, 0], 8),
        ],
    );
}

#[test]
fn bytes_are_permuted() {
    let (a, b) = (0x3322_1100, 0x7766_5544);
    check(
        "prmt.b32",
        "rrrr",
        &[
            (&[a, b, 0x3210], a),
            (&[a, b, 0x7654], b),
            (&[a, b, 0x0145], 0x0011_4455),
            (&[0x0000_8000, b, 0x9999], M1),
            (&[0x0000_7f00, b, 0x9999], 0),
        ],
    );
    check("prmt.b32.f4e", "rrrr", &[(&[a, b, 1], 0x4433_2211)]);
    check("prmt.b32.b4e", "rrrr", &[(&[a, b, 1], 0x6677_0011)]);
    check("prmt.b32.rc8", "rrrr", &[(&[a, b, 2], 0x2222_2222)]);
    check("prmt.b32.ecl", "rrrr", &[(&[a, b, 2], 0x3322_2222)]);
    check("prmt.b32.ecr", "rrrr", &[(&[a, b, 1], 0x1111_1100)]);
    check("prmt.b32.rc16", "rrrr", &[(&[a, b, 1], 0x3322_3322)]);
}
