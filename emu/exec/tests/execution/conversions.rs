//! Conversion between all kinds of numbers, and moves.

use crate::support::table::check;

fn f(value: f32) -> u64 {
    value.to_bits().into()
}

fn d(value: f64) -> u64 {
    value.to_bits()
}

const M1: u64 = 0xffff_ffff;

#[test]
fn integers_are_extended_truncated_and_saturated() {
    check("cvt.u64.u32", "dr", &[(&[M1], M1)]);
    check("cvt.s64.s32", "dr", &[(&[M1], u64::MAX), (&[5], 5)]);
    check("cvt.u32.u64", "rd", &[(&[0x1_2345_6789], 0x2345_6789)]);
    check("cvt.u16.u32", "hr", &[(&[0x1_2345], 0x2345)]);
    check("cvt.u16.u64", "hd", &[(&[0x1_2345], 0x2345)]);
    check(
        "cvt.s32.s8",
        "rh",
        &[(&[0x80], 0xffff_ff80), (&[0x17f], 0x7f)],
    );
    check("cvt.u32.u8", "rr", &[(&[0x1ff], 0xff)]);
    check("cvt.s8.s32", "hr", &[(&[0x80], 0xff80)]);
    check("cvt.u8.u32", "hr", &[(&[0x1_0180], 0x80)]);
    check("cvt.s16.s32", "hr", &[(&[0x1_8000], 0x8000)]);
    check("cvt.s32.s16", "rh", &[(&[0x8000], 0xffff_8000)]);
    check("cvt.s64.s16", "dh", &[(&[0x8000], 0xffff_ffff_ffff_8000)]);
    check("cvt.u32.s32", "rr", &[(&[M1], M1)]);
    check("cvt.s64.u32", "dr", &[(&[M1], M1)]);
    check("cvt.u64.s32", "dr", &[(&[M1], u64::MAX)]);
    check(
        "cvt.sat.s16.s32",
        "hr",
        &[(&[70_000], 0x7fff), (&[0x8000_0000], 0x8000)],
    );
    check("cvt.sat.u8.s32", "rr", &[(&[M1], 0), (&[300], 255)]);
    check("cvt.sat.s8.s32", "rr", &[(&[0xffff_0000], 0xffff_ff80)]);
    check(
        "cvt.sat.u32.s64",
        "rd",
        &[(&[u64::MAX], 0), (&[1 << 40], M1)],
    );
}

#[test]
fn integers_become_floats() {
    check(
        "cvt.rn.f32.s32",
        "rr",
        &[
            (&[M1], f(-1.0)),
            (&[16_777_217], f(16_777_216.0)),
            (&[16_777_219], f(16_777_220.0)),
        ],
    );
    check("cvt.rn.f32.u32", "rr", &[(&[M1], f(4_294_967_296.0))]);
    check("cvt.rz.f32.u32", "rr", &[(&[M1], 0x4f7f_ffff)]);
    check(
        "cvt.rp.f32.s32",
        "rr",
        &[
            (&[16_777_217], f(16_777_218.0)),
            (&[(-16_777_217i32) as u32 as u64], f(-16_777_216.0)),
        ],
    );
    check(
        "cvt.rm.f32.s32",
        "rr",
        &[(&[(-16_777_217i32) as u32 as u64], f(-16_777_218.0))],
    );
    // Twice rounded (to f64, then to f32) this would be even.
    check(
        "cvt.rn.f32.u64",
        "rd",
        &[
            (&[0x8000_0080_0000_0001], 0x5f00_0001),
            (&[u64::MAX], f(18_446_744_073_709_551_616.0)),
        ],
    );
    check(
        "cvt.rn.f32.s64",
        "rd",
        &[
            (&[u64::MAX], f(-1.0)),
            (&[1 << 63], f(-9_223_372_036_854_775_808.0)),
        ],
    );
    check("cvt.rn.f32.u16", "rh", &[(&[65535], f(65535.0))]);
    check("cvt.rn.f32.s8", "rh", &[(&[0xff], f(-1.0))]);
    check("cvt.rn.f64.s32", "dr", &[(&[M1], d(-1.0))]);
    check(
        "cvt.rn.f64.u64",
        "dd",
        &[(&[u64::MAX], d(18_446_744_073_709_551_616.0))],
    );
    check(
        "cvt.rz.f64.u64",
        "dd",
        &[(&[u64::MAX], d(18_446_744_073_709_549_568.0))],
    );
    check(
        "cvt.rn.f16.s32",
        "hr",
        &[(&[2049], 0x6800), (&[2051], 0x6802), (&[70_000], 0x7c00)],
    );
}

#[test]
fn floats_become_integers() {
    check(
        "cvt.rni.s32.f32",
        "rr",
        &[
            (&[f(2.5)], 2),
            (&[f(3.5)], 4),
            (&[f(-2.5)], (-2i32) as u32 as u64),
        ],
    );
    check(
        "cvt.rzi.s32.f32",
        "rr",
        &[
            (&[f(-2.9)], (-2i32) as u32 as u64),
            (&[f(3e9)], 0x7fff_ffff),
            (&[f(-3e9)], 0x8000_0000),
            (&[0x7fc0_0000], 0),
        ],
    );
    check(
        "cvt.rmi.s32.f32",
        "rr",
        &[(&[f(-2.1)], (-3i32) as u32 as u64)],
    );
    check("cvt.rpi.s32.f32", "rr", &[(&[f(2.1)], 3)]);
    check(
        "cvt.rzi.u32.f32",
        "rr",
        &[(&[f(-1.0)], 0), (&[f(5e9)], M1), (&[f(4e9)], 4_000_000_000)],
    );
    check(
        "cvt.rzi.u64.f32",
        "dr",
        &[
            (&[f(1e19)], 9_999_999_980_506_447_872),
            (&[0x7fc0_0000], 1 << 63),
            (&[f(-3.0)], 0),
        ],
    );
    check(
        "cvt.rzi.s64.f32",
        "dr",
        &[
            (&[f(-1e10)], (-10_000_000_000i64) as u64),
            (&[f(1e30)], i64::MAX as u64),
        ],
    );
    check(
        "cvt.rni.s32.f64",
        "rd",
        &[
            (&[d(0.5)], 0),
            (&[d(1.5)], 2),
            (&[d(f64::NAN)], 0x8000_0000),
        ],
    );
    check("cvt.rzi.u16.f32", "hr", &[(&[f(70_000.0)], 0xffff)]);
    check("cvt.rzi.s8.f32", "rr", &[(&[f(-200.0)], 0xffff_ff80)]);
    check(
        "cvt.rzi.s32.f16",
        "rh",
        &[(&[0xc100], (-2i32) as u32 as u64)],
    );
    check("cvt.rzi.ftz.s32.f32", "rr", &[(&[1], 0)]);
    check("cvt.rpi.s32.f32", "rr", &[(&[1], 1)]);
    check("cvt.rpi.ftz.s32.f32", "rr", &[(&[1], 0)]);
}

#[test]
fn f32_rounds_to_halves() {
    check(
        "cvt.rn.f16.f32",
        "hr",
        &[
            (&[f(1.0)], 0x3c00),
            (&[f(65504.0)], 0x7bff),
            (&[f(65519.996)], 0x7bff),
            (&[f(65520.0)], 0x7c00),
            (&[f(-1e9)], 0xfc00),
            (&[0x7fc0_0000], 0x7fff),
            (&[f(5.960_464_5e-8)], 1),
            (&[f(2.980_232_2e-8)], 0),
            (&[f(2.980_233e-8)], 1),
            (&[f(6.097_555e-5)], 0x03ff),
            (&[f(6.103_515_6e-5)], 0x0400),
            (&[f(1.000_488_3)], 0x3c00),
            (&[f(1.001_464_8)], 0x3c02),
            (&[0x8000_0000], 0x8000),
        ],
    );
    check(
        "cvt.rz.f16.f32",
        "hr",
        &[
            (&[f(65519.0)], 0x7bff),
            (&[f(1e9)], 0x7bff),
            (&[f(1.000_9)], 0x3c00),
        ],
    );
    check(
        "cvt.rn.bf16.f32",
        "hr",
        &[
            (&[f(1.0)], 0x3f80),
            (&[0x3f80_8000], 0x3f80),
            (&[0x3f81_8000], 0x3f82),
            (&[0x3f80_8001], 0x3f81),
            (&[0x7f7f_ffff], 0x7f80),
            (&[0xffc1_2345], 0x7fff),
            (&[0x0000_8001], 1),
        ],
    );
    check(
        "cvt.rz.bf16.f32",
        "hr",
        &[(&[0x3f80_ffff], 0x3f80), (&[0x7f7f_ffff], 0x7f7f)],
    );
    check(
        "cvt.rn.relu.bf16.f32",
        "hr",
        &[(&[f(-1.0)], 0), (&[f(2.0)], 0x4000)],
    );
    check(
        "cvt.rn.bf16x2.f32",
        "rrr",
        &[
            (&[f(1.0), f(2.0)], 0x3f80_4000),
            (&[0x7fc0_0000, 0x3f80_8001], 0x7fff_3f81),
        ],
    );
    check(
        "cvt.rn.f16x2.f32",
        "rrr",
        &[
            (&[f(1.0), f(-2.0)], 0x3c00_c000),
            (&[f(1e9), 1], 0x7c00_0000),
        ],
    );
    check(
        "cvt.rz.f16x2.f32",
        "rrr",
        &[(&[f(1e9), f(1.0)], 0x7bff_3c00)],
    );
    check(
        "cvt.rn.relu.f16x2.f32",
        "rrr",
        &[(&[f(-1.0), f(1.0)], 0x0000_3c00)],
    );
}

#[test]
fn halves_widen_exactly() {
    check(
        "cvt.f32.f16",
        "rh",
        &[
            (&[0x3c00], f(1.0)),
            (&[1], f(5.960_464_5e-8)),
            (&[0x03ff], f(6.097_555e-5)),
            (&[0x7c00], 0x7f80_0000),
            (&[0xfc00], 0xff80_0000),
            (&[0x7e00], 0x7fff_ffff),
            (&[0x8000], 0x8000_0000),
            (&[0x7bff], f(65504.0)),
        ],
    );
    check(
        "cvt.f32.bf16",
        "rh",
        &[
            (&[0x3f80], f(1.0)),
            (&[0x8000], 0x8000_0000),
            (&[0x7fc0], 0x7fff_ffff),
            (&[1], 0x1_0000),
        ],
    );
    check("cvt.f64.f16", "dh", &[(&[0xc000], d(-2.0))]);
    check("cvt.sat.f32.f16", "rh", &[(&[0x4000], f(1.0))]);
}

#[test]
fn every_half_survives_the_way_through_f32() {
    for (to, from, nan_above) in [
        ("cvt.f32.f16", "cvt.rn.f16.f32", 0x7c00),
        ("cvt.f32.bf16", "cvt.rn.bf16.f32", 0x7f80),
    ] {
        let values: Vec<[u64; 1]> = (0..0x1_0000u64).step_by(7).map(|bits| [bits]).collect();
        let cases: Vec<(&[u64], u64)> = values
            .iter()
            .map(|bits| {
                (
                    &bits[..],
                    if bits[0] & 0x7fff > nan_above {
                        0x7fff
                    } else {
                        bits[0]
                    },
                )
            })
            .collect();
        check(&format!("{to} %r7, $1; {from} $0, %r7"), "hh", &cases);
    }
}

#[test]
fn floats_of_other_widths() {
    check(
        "cvt.rn.f32.f64",
        "rd",
        &[
            (&[d(1.0 + 2f64.powi(-24))], f(1.0)),
            (&[d(1e300)], 0x7f80_0000),
            (&[d(f64::NAN)], 0x7fff_ffff),
        ],
    );
    check(
        "cvt.rp.f32.f64",
        "rd",
        &[(&[d(1.0 + 2f64.powi(-40))], 0x3f80_0001)],
    );
    check("cvt.rz.f32.f64", "rd", &[(&[d(1e300)], 0x7f7f_ffff)]);
    check("cvt.f64.f32", "dr", &[(&[f(0.1)], d(f64::from(0.1f32)))]);
    check(
        "cvt.rni.f32.f32",
        "rr",
        &[(&[f(2.5)], f(2.0)), (&[f(-0.4)], 0x8000_0000)],
    );
    check("cvt.rzi.f32.f32", "rr", &[(&[f(-2.9)], f(-2.0))]);
    check(
        "cvt.sat.f32.f32",
        "rr",
        &[(&[f(2.9)], f(1.0)), (&[f(-2.9)], 0), (&[0x7fc0_0000], 0)],
    );
    check("cvt.rmi.f32.f32", "rr", &[(&[f(-2.1)], f(-3.0))]);
    check("cvt.rpi.f32.f32", "rr", &[(&[f(2.1)], f(3.0))]);
}

#[test]
fn moves_split_and_join() {
    check(
        "mov.b32 $0, {$1, $2}",
        "rhh",
        &[(&[0x1111, 0x2222], 0x2222_1111)],
    );
    check(
        "mov.b64 $0, {$1, $2}",
        "drr",
        &[(&[0x1111, 0x2222], 0x2222_0000_1111)],
    );
    check("mov.b32 {$0, %h7}, $1", "hr", &[(&[0xaaaa_bbbb], 0xbbbb)]);
    check("mov.b32 {%h7, $0}, $1", "hr", &[(&[0xaaaa_bbbb], 0xaaaa)]);
    check(
        "mov.b64 {_, $0}, $1",
        "rd",
        &[(&[0xaaaa_bbbb_cccc_dddd], 0xaaaa_bbbb)],
    );
    check(
        "mov.b64 $0, {$1, $2, $3, $4}",
        "dhhhh",
        &[(&[1, 2, 3, 4], 0x0004_0003_0002_0001)],
    );
    check(
        "{ .reg .b128 t; mov.b128 t, {$1, $2}; mov.b128 {%d7, $0}, t; }",
        "ddd",
        &[(&[5, 6], 6)],
    );
    check(
        "{ .reg .b128 t; mov.b128 t, {$1, $2}; mov.b128 {$0, %d7}, t; }",
        "ddd",
        &[(&[5, 6], 5)],
    );
    check(
        "{ .reg .b128 t, u; mov.b128 t, {$1, $2}; mov.b128 u, t; mov.b128 {$0, %d7}, u; }",
        "ddd",
        &[(&[5, 6], 5)],
    );
    check("mov.u16 $0, -2", "h", &[(&[], 0xfffe)]);
    check("mov.f32 $0, 0f3F800000", "r", &[(&[], f(1.0))]);
    check("mov.u64 $0, 0xffffffffffffffff", "d", &[(&[], u64::MAX)]);
}

#[test]
fn selection_follows_predicate_or_sign() {
    check("selp.b32", "rrrp", &[(&[1, 2, 1], 1), (&[1, 2, 0], 2)]);
    check(
        "selp.b64",
        "dddp",
        &[(&[1 << 40, 2, 1], 1 << 40), (&[1, 2 << 40, 0], 2 << 40)],
    );
    check("selp.b16", "hhhp", &[(&[1, 2, 0], 2)]);
    check("selp.b32 $0, $1, $2, !$3", "rrrp", &[(&[1, 2, 1], 2)]);
    check("slct.u32.s32", "rrrr", &[(&[1, 2, 0], 1), (&[1, 2, M1], 2)]);
    check("slct.b64.s32", "dddr", &[(&[1, 2, 5], 1)]);
    check(
        "slct.f32.f32",
        "rrrr",
        &[
            (&[1, 2, 0x8000_0000], 1),
            (&[1, 2, f(-1.0)], 2),
            (&[1, 2, 0x7fc0_0000], 2),
            (&[1, 2, 0x8000_0001], 2),
        ],
    );
    check("slct.ftz.b32.f32", "rrrr", &[(&[1, 2, 0x8000_0001], 1)]);
}
