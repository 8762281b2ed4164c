//! Integer arithmetic, with carries, in every width.

use crate::support::table::check;

const M1: u64 = 0xffff_ffff;
const MIN32: u64 = 0x8000_0000;
const MIN64: u64 = 1 << 63;

#[test]
fn sums_and_differences_wrap() {
    check(
        "add.s32",
        "rrr",
        &[(&[2, 3], 5), (&[M1, 1], 0), (&[0x7fff_ffff, 1], MIN32)],
    );
    check("add.u16", "hhh", &[(&[0xffff, 1], 0), (&[7, 8], 15)]);
    check(
        "add.s64",
        "ddd",
        &[(&[u64::MAX, 1], 0), (&[1 << 40, 1 << 41], 3 << 40)],
    );
    check("sub.u32", "rrr", &[(&[2, 3], M1), (&[0, MIN32], MIN32)]);
    check(
        "sub.s64",
        "ddd",
        &[(&[0, 1], u64::MAX), (&[MIN64, 1], MIN64 - 1)],
    );
    check("sub.s16", "hhh", &[(&[0, 1], 0xffff)]);
}

#[test]
fn saturating_sums_stop_at_the_ends() {
    check(
        "add.sat.s32",
        "rrr",
        &[
            (&[0x7fff_ffff, 1], 0x7fff_ffff),
            (&[MIN32, M1], MIN32),
            (&[5, M1], 4),
        ],
    );
    check(
        "sub.sat.s32",
        "rrr",
        &[(&[MIN32, 1], MIN32), (&[0x7fff_ffff, M1], 0x7fff_ffff)],
    );
}

#[test]
fn products_have_a_low_and_a_high_half() {
    check(
        "mul.lo.s32",
        "rrr",
        &[(&[0x1_0001, 0x1_0001], 0x2_0001), (&[M1, M1], 1)],
    );
    check(
        "mul.hi.u32",
        "rrr",
        &[(&[M1, M1], 0xffff_fffe), (&[0x1_0000, 0x1_0000], 1)],
    );
    check(
        "mul.hi.s32",
        "rrr",
        &[
            (&[M1, M1], 0),
            (&[M1, 1], M1),
            (&[MIN32, MIN32], 0x4000_0000),
        ],
    );
    check(
        "mul.hi.u64",
        "ddd",
        &[
            (&[u64::MAX, u64::MAX], u64::MAX - 1),
            (&[1 << 32, 1 << 32], 1),
        ],
    );
    check(
        "mul.hi.s64",
        "ddd",
        &[
            (&[u64::MAX, 1], u64::MAX),
            (&[MIN64, MIN64], 1 << 62),
            (&[u64::MAX, u64::MAX], 0),
        ],
    );
    check(
        "mul.lo.u64",
        "ddd",
        &[(&[u64::MAX, 3], u64::MAX - 2), (&[1 << 33, 1 << 31], 0)],
    );
    check("mul.lo.u16", "hhh", &[(&[0x101, 0x101], 0x201)]);
}

#[test]
fn wide_products_are_whole() {
    check(
        "mul.wide.u32",
        "drr",
        &[
            (&[M1, M1], 0xffff_fffe_0000_0001),
            (&[M1, 2], 0x1_ffff_fffe),
        ],
    );
    check(
        "mul.wide.s32",
        "drr",
        &[(&[M1, 2], (-2i64) as u64), (&[MIN32, MIN32], 1 << 62)],
    );
    check("mul.wide.u16", "rhh", &[(&[0xffff, 0xffff], 0xfffe_0001)]);
    check("mul.wide.s16", "rhh", &[(&[0xffff, 2], 0xffff_fffe)]);
    check(
        "mul.wide.u32 $0, $1, -858993459",
        "dr",
        &[(&[5], 0x4_0000_0001)],
    );
}

#[test]
fn products_with_sums() {
    check("mad.lo.s32", "rrrr", &[(&[3, 4, 5], 17), (&[M1, 7, 7], 0)]);
    check("mad.hi.u32", "rrrr", &[(&[M1, M1, 3], 1)]);
    check("mad.hi.s32", "rrrr", &[(&[M1, 1, 3], 2)]);
    check(
        "mad.wide.u32",
        "drrd",
        &[(&[M1, M1, u64::MAX], 0xffff_fffe_0000_0000)],
    );
    check("mad.wide.s32", "drrd", &[(&[M1, 5, 7], 2)]);
    check("mad.wide.s16", "rhhr", &[(&[0xffff, 5, 7], 2)]);
    check(
        "mad.lo.s64",
        "dddd",
        &[
            (&[1 << 40, 1 << 10, 9], (1 << 50) + 9),
            (&[u64::MAX, 1, 1], 0),
        ],
    );
    check("mad.hi.u64", "dddd", &[(&[1 << 63, 4, 40], 42)]);
    check("mad.lo.u16", "hhhh", &[(&[0x100, 0x100, 3], 3)]);
}

#[test]
fn quotients_and_remainders() {
    check(
        "div.u32",
        "rrr",
        &[(&[7, 2], 3), (&[M1, 2], 0x7fff_ffff), (&[7, 0], M1)],
    );
    check(
        "div.s32",
        "rrr",
        &[
            (&[(-7i32) as u32 as u64, 2], (-3i32) as u32 as u64),
            (&[MIN32, M1], MIN32),
        ],
    );
    check(
        "rem.s32",
        "rrr",
        &[
            (&[(-7i32) as u32 as u64, 2], M1),
            (&[7, 0], 7),
            (&[MIN32, M1], 0),
        ],
    );
    check("rem.u32", "rrr", &[(&[M1, 10], 5)]);
    check(
        "div.u64",
        "ddd",
        &[(&[u64::MAX, 3], u64::MAX / 3), (&[9, 0], u64::MAX)],
    );
    check(
        "div.s64",
        "ddd",
        &[
            (&[(-9i64) as u64, 4], (-2i64) as u64),
            (&[MIN64, u64::MAX], MIN64),
        ],
    );
    check("rem.u64", "ddd", &[(&[u64::MAX, 1 << 32], M1)]);
    check("rem.s64", "ddd", &[(&[(-9i64) as u64, 4], u64::MAX)]);
    check("div.u16", "hhh", &[(&[0xffff, 0x10], 0xfff)]);
    check("div.s16", "hhh", &[(&[0xfff9, 2], 0xfffd)]);
}

#[test]
fn signs_and_order() {
    check("neg.s32", "rr", &[(&[1], M1), (&[MIN32], MIN32)]);
    check("neg.s64", "dd", &[(&[1], u64::MAX)]);
    check("neg.s16", "hh", &[(&[1], 0xffff)]);
    check("abs.s32", "rr", &[(&[M1], 1), (&[MIN32], MIN32), (&[5], 5)]);
    check("abs.s64", "dd", &[(&[u64::MAX], 1), (&[MIN64], MIN64)]);
    check("min.s32", "rrr", &[(&[M1, 1], M1)]);
    check("min.u32", "rrr", &[(&[M1, 1], 1)]);
    check("max.s32", "rrr", &[(&[M1, 1], 1)]);
    check("max.u32", "rrr", &[(&[M1, 1], M1)]);
    check("min.s64", "ddd", &[(&[u64::MAX, 1], u64::MAX)]);
    check("min.u64", "ddd", &[(&[u64::MAX, 1], 1)]);
    check("max.s64", "ddd", &[(&[u64::MAX, 1], 1)]);
    check("max.u64", "ddd", &[(&[u64::MAX, 1], u64::MAX)]);
    check("min.s16", "hhh", &[(&[0xffff, 1], 0xffff)]);
    check("max.u16", "hhh", &[(&[0xffff, 1], 0xffff)]);
    check("sad.s32", "rrrr", &[(&[M1, 2, 10], 13)]);
    check("sad.u32", "rrrr", &[(&[M1, 2, 10], 7)]);
}

#[test]
fn carries_cross_words() {
    // 128-bit sums in two words each: low and high of the result are checked in turn.
    let sum = |low_first: bool| {
        let (low, high) = if low_first {
            ("$0", "%d7")
        } else {
            ("%d7", "$0")
        };
        format!("add.cc.u64 {low}, $1, $2; addc.u64 {high}, $3, $4")
    };
    check(&sum(true), "ddddd", &[(&[u64::MAX, 2, 10, 20], 1)]);
    check(
        &sum(false),
        "ddddd",
        &[(&[u64::MAX, 2, 10, 20], 31), (&[1, 2, 10, 20], 30)],
    );
    check(
        "sub.cc.u32 %t5, $1, $2; subc.u32 $0, $3, $4",
        "rrrrr",
        &[(&[0, 1, 5, 2], 2), (&[1, 1, 5, 2], 3)],
    );
    check(
        "add.cc.u32 %t5, $1, $2; addc.cc.u32 %t6, $3, $4; addc.u32 $0, 0, 0",
        "rrrrr",
        &[(&[M1, 1, M1, 0], 1), (&[M1, 0, M1, 0], 0)],
    );
    // A 64-bit product by 32-bit halves: lo·lo, then cross terms with carry into the high word.
    check(
        "mul.lo.u32 %t5, $1, $3; mul.hi.u32 %t6, $1, $3; mad.lo.cc.u32 %t6, $1, $4, %t6; mad.lo.u32 $0, $2, $3, %t6",
        "rrrrr",
        &[(&[M1, 0, M1, 0], 0xffff_fffe)],
    );
    check(
        "mad.lo.cc.u32 %t5, $1, $2, $3; madc.hi.u32 $0, $1, $2, 0",
        "rrrr",
        &[(&[M1, M1, M1], 0xffff_ffff)],
    );
    check(
        "mad.lo.cc.s64 %d7, $1, $2, $3; madc.hi.s64 $0, $1, $2, 0",
        "dddd",
        &[(&[u64::MAX, 1, 1], 0), (&[u64::MAX, 1, 0], u64::MAX)],
    );
}
