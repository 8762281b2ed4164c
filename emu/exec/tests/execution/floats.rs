//! f32 (and f64, f16, bf16) arithmetic, to the bit.

use crate::support::table::check;

fn f(value: f32) -> u64 {
    value.to_bits().into()
}

fn d(value: f64) -> u64 {
    value.to_bits()
}

const NAN: u64 = 0x7fff_ffff;
/// A NaN that arithmetic does not produce.
const OTHER_NAN: u64 = 0xffc1_2345;
const INF: u64 = 0x7f80_0000;
const NEG_INF: u64 = 0xff80_0000;
const NEG_ZERO: u64 = 0x8000_0000;
/// The smallest subnormal number.
const TINY: u64 = 1;
const MIN_NORMAL: u64 = 0x0080_0000;
const MAX: u64 = 0x7f7f_ffff;

#[test]
fn nearest_sums_and_products_are_ieee() {
    check(
        "add.rn.f32",
        "rrr",
        &[
            (&[f(1.0), f(2.0)], f(3.0)),
            (&[f(16_777_216.0), f(1.0)], f(16_777_216.0)),
            (&[f(16_777_216.0), f(3.0)], f(16_777_220.0)),
            (&[INF, NEG_INF], NAN),
            (&[OTHER_NAN, f(1.0)], NAN),
            (&[MAX, MAX], INF),
            (&[TINY, TINY], 2),
            (&[f(1.0), f(-1.0)], 0),
            (&[NEG_ZERO, NEG_ZERO], NEG_ZERO),
        ],
    );
    check(
        "sub.f32",
        "rrr",
        &[
            (&[f(1.0), f(1.0)], 0),
            (&[INF, INF], NAN),
            (&[MIN_NORMAL, TINY], 0x007f_ffff),
        ],
    );
    check(
        "mul.rn.f32",
        "rrr",
        &[
            (&[f(3.0), f(-2.0)], f(-6.0)),
            (&[0, INF], NAN),
            (&[MIN_NORMAL, f(0.5)], 0x0040_0000),
            (&[f(1.000_000_1), f(1.000_000_1)], 0x3f80_0002),
        ],
    );
}

#[test]
fn fused_products_round_once() {
    let one_up = 0x3f80_0001u64;
    check(
        "fma.rn.f32",
        "rrrr",
        &[
            // (1 + 2^-23)^2 - (1 + 2^-22) = 2^-46: lost if the product were rounded.
            (&[one_up, one_up, 0xbf80_0002], f(2f32.powi(-46))),
            (&[f(2.0), f(3.0), f(4.0)], f(10.0)),
            // A product that lies just above the middle of two floats, which a double rounding in f64 would miss.
            (
                &[0x3f80_0001, 0x3f7f_ffff, 0x3380_0000],
                f(f32::from_bits(0x3f80_0001)
                    .mul_add(f32::from_bits(0x3f7f_ffff), f32::from_bits(0x3380_0000))),
            ),
            (&[INF, 0, f(1.0)], NAN),
            (&[OTHER_NAN, f(1.0), f(1.0)], NAN),
            (&[f(1.0), f(-1.0), f(1.0)], 0),
            (&[MAX, f(2.0), NEG_INF], NEG_INF),
            (&[TINY, f(0.5), 0], 0),
            (&[TINY, f(0.75), 0], TINY),
            (&[TINY, f(0.5), TINY], 2),
        ],
    );
}

#[test]
fn fused_products_agree_with_the_standard_library() {
    // Exponents close together, so that all digits of product and addend interact; deterministic.
    let mut state = 0x1234_5678_9abc_def0u64;
    let mut next = |spread: u32| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let exponent = 127 - spread / 2 + (state >> 40) as u32 % spread;
        (state as u32 & 0x807f_ffff) | exponent << 23
    };
    let cases: Vec<([u64; 3], u64)> = (0..4096)
        .map(|_| {
            let [a, b, c] = [next(8), next(8), next(60)];
            let [x, y, z] = [a, b, c].map(f32::from_bits);
            (
                [a.into(), b.into(), c.into()],
                x.mul_add(y, z).to_bits().into(),
            )
        })
        .collect();
    let cases: Vec<(&[u64], u64)> = cases
        .iter()
        .map(|(operands, result)| (&operands[..], *result))
        .collect();
    check("fma.rn.f32", "rrrr", &cases);
}

#[test]
fn directed_rounding_goes_its_way() {
    let third = f(1.0 / 3.0);
    check(
        "add.rz.f32",
        "rrr",
        &[
            (&[f(1.0), 0x3380_0001], f(1.0)),
            (&[f(-1.0), 0xb380_0001], f(-1.0)),
            (&[MAX, MAX], MAX),
        ],
    );
    check(
        "add.rp.f32",
        "rrr",
        &[
            (&[f(1.0), TINY], 0x3f80_0001),
            (&[f(-1.0), TINY], 0xbf7f_ffff),
        ],
    );
    check(
        "add.rm.f32",
        "rrr",
        &[
            (&[f(1.0), TINY], f(1.0)),
            (&[f(1.0), f(-1.0)], NEG_ZERO),
            (&[0, 0], 0),
        ],
    );
    check("mul.rp.f32", "rrr", &[(&[third, third], 0x3de3_8e3a)]);
    check("mul.rz.f32", "rrr", &[(&[third, third], 0x3de3_8e39)]);
    check(
        "fma.rm.f32",
        "rrrr",
        &[(&[f(1.0), f(1.0), 0x8000_0001], 0x3f7f_ffff)],
    );
    check(
        "fma.rp.f32",
        "rrrr",
        &[(&[f(1.0), f(1.0), TINY], 0x3f80_0001)],
    );
}

#[test]
fn quotients_roots_and_reciprocals_are_rounded_to_nearest() {
    check(
        "div.rn.f32",
        "rrr",
        &[
            (&[f(1.0), f(3.0)], 0x3eaa_aaab),
            (&[f(1.0), 0], INF),
            (&[f(-1.0), 0], NEG_INF),
            (&[0, 0], NAN),
            (&[TINY, f(2.0)], 0),
        ],
    );
    check(
        "rcp.rn.f32",
        "rr",
        &[
            (&[f(3.0)], 0x3eaa_aaab),
            (&[NEG_ZERO], NEG_INF),
            (&[INF], 0),
        ],
    );
    check(
        "sqrt.rn.f32",
        "rr",
        &[
            (&[f(2.0)], 0x3fb5_04f3),
            (&[f(-1.0)], NAN),
            (&[NEG_ZERO], NEG_ZERO),
            (&[2], 0x1a80_0000),
        ],
    );
}

#[test]
fn subnormal_numbers_flush_where_told() {
    check(
        "add.ftz.f32",
        "rrr",
        &[
            (&[TINY, f(1.0)], f(1.0)),
            (&[0x8000_0001, NEG_ZERO], NEG_ZERO),
            (&[TINY, TINY], 0),
        ],
    );
    check(
        "mul.rn.ftz.f32",
        "rrr",
        &[
            (&[MIN_NORMAL, f(0.5)], 0),
            (&[MIN_NORMAL, f(-0.5)], NEG_ZERO),
        ],
    );
    check(
        "fma.rn.ftz.f32",
        "rrrr",
        &[(&[TINY, f(1.0), f(2.0)], f(2.0))],
    );
    check("abs.ftz.f32", "rr", &[(&[0x8000_0001], 0)]);
    check("max.ftz.f32", "rrr", &[(&[TINY, 0x8000_0001], 0)]);
    check("setp.eq.ftz.f32", "prr", &[(&[TINY, 0], 1)]);
    check("setp.eq.f32", "prr", &[(&[TINY, 0], 0)]);
}

#[test]
fn saturation_ends_at_zero_and_one() {
    check(
        "add.sat.f32",
        "rrr",
        &[
            (&[f(0.75), f(0.75)], f(1.0)),
            (&[f(-2.0), f(1.0)], 0),
            (&[OTHER_NAN, f(1.0)], 0),
            (&[f(0.25), f(0.5)], f(0.75)),
        ],
    );
    check(
        "fma.rn.sat.f32",
        "rrrr",
        &[(&[f(2.0), f(2.0), f(0.0)], f(1.0))],
    );
}

#[test]
fn minimum_and_maximum_prefer_numbers() {
    check(
        "min.f32",
        "rrr",
        &[
            (&[f(1.0), f(2.0)], f(1.0)),
            (&[OTHER_NAN, f(2.0)], f(2.0)),
            (&[f(2.0), OTHER_NAN], f(2.0)),
            (&[OTHER_NAN, OTHER_NAN], NAN),
            (&[0, NEG_ZERO], NEG_ZERO),
            (&[NEG_INF, f(0.0)], NEG_INF),
        ],
    );
    check(
        "max.f32",
        "rrr",
        &[
            (&[f(-1.0), f(-2.0)], f(-1.0)),
            (&[OTHER_NAN, f(2.0)], f(2.0)),
            (&[NEG_ZERO, 0], 0),
            (&[INF, MAX], INF),
        ],
    );
    check(
        "min.NaN.f32",
        "rrr",
        &[(&[OTHER_NAN, f(2.0)], NAN), (&[f(1.0), f(2.0)], f(1.0))],
    );
    check(
        "max.NaN.f32",
        "rrr",
        &[(&[f(2.0), OTHER_NAN], NAN), (&[f(1.0), f(2.0)], f(2.0))],
    );
    check(
        "min.xorsign_abs.f32",
        "rrr",
        &[(&[f(-1.0), f(2.0)], f(-1.0)), (&[f(-3.0), f(-2.0)], f(2.0))],
    );
    check(
        "max.xorsign_abs.f32",
        "rrr",
        &[(&[f(-1.0), f(2.0)], f(-2.0))],
    );
}

#[test]
fn signs_are_bits() {
    check("neg.f32", "rr", &[(&[f(1.0)], f(-1.0)), (&[0], NEG_ZERO)]);
    check("abs.f32", "rr", &[(&[f(-1.0)], f(1.0)), (&[NEG_INF], INF)]);
    check(
        "copysign.f32",
        "rrr",
        &[(&[f(-1.0), f(2.0)], f(-2.0)), (&[f(1.0), f(-2.0)], f(2.0))],
    );
    check("copysign.f64", "ddd", &[(&[d(-1.0), d(2.0)], d(-2.0))]);
    check(
        "testp.subnormal.f32",
        "pr",
        &[(&[TINY], 1), (&[MIN_NORMAL], 0)],
    );
    check(
        "testp.notanumber.f32",
        "pr",
        &[(&[OTHER_NAN], 1), (&[INF], 0)],
    );
    check(
        "testp.finite.f64",
        "pd",
        &[(&[d(1.0)], 1), (&[d(f64::INFINITY)], 0)],
    );
}

#[test]
fn approximations_are_as_near_as_can_be() {
    check(
        "ex2.approx.f32",
        "rr",
        &[
            (&[f(3.0)], f(8.0)),
            (&[f(0.5)], 0x3fb5_04f3),
            (&[NEG_INF], 0),
            (&[f(-149.0)], TINY),
        ],
    );
    check("ex2.approx.ftz.f32", "rr", &[(&[f(-149.0)], 0)]);
    check(
        "lg2.approx.f32",
        "rr",
        &[(&[f(8.0)], f(3.0)), (&[0], NEG_INF), (&[f(-1.0)], NAN)],
    );
    check(
        "rsqrt.approx.f32",
        "rr",
        &[(&[f(4.0)], f(0.5)), (&[f(2.0)], 0x3f35_04f3), (&[0], INF)],
    );
    check(
        "rcp.approx.ftz.f32",
        "rr",
        &[(&[f(3.0)], 0x3eaa_aaab), (&[TINY], INF)],
    );
    check("sqrt.approx.f32", "rr", &[(&[f(9.0)], f(3.0))]);
    check("div.approx.f32", "rrr", &[(&[f(9.0), f(3.0)], f(3.0))]);
    check("div.full.f32", "rrr", &[(&[f(1.0), f(3.0)], 0x3eaa_aaab)]);
    check("sin.approx.f32", "rr", &[(&[0], 0)]);
    check("cos.approx.f32", "rr", &[(&[0], f(1.0))]);
    check("tanh.approx.f32", "rr", &[(&[INF], f(1.0))]);
}

#[test]
fn doubles_are_ieee() {
    check("add.f64", "ddd", &[(&[d(0.1), d(0.2)], d(0.1 + 0.2))]);
    check("sub.rn.f64", "ddd", &[(&[d(1.0), d(0.9)], d(1.0 - 0.9))]);
    check(
        "mul.f64",
        "ddd",
        &[
            (&[d(0.1), d(0.2)], d(0.1 * 0.2)),
            (&[d(f64::INFINITY), 0], 0x7fff_ffff_ffff_ffff),
        ],
    );
    check(
        "fma.rn.f64",
        "dddd",
        &[(&[d(0.1), d(10.0), d(-1.0)], d(0.1f64.mul_add(10.0, -1.0)))],
    );
    check("div.rn.f64", "ddd", &[(&[d(1.0), d(3.0)], d(1.0 / 3.0))]);
    check("sqrt.rn.f64", "dd", &[(&[d(2.0)], d(2f64.sqrt()))]);
    check("rcp.rn.f64", "dd", &[(&[d(4.0)], d(0.25))]);
    check("neg.f64", "dd", &[(&[d(4.0)], d(-4.0))]);
    check("abs.f64", "dd", &[(&[d(-4.0)], d(4.0))]);
    check(
        "min.f64",
        "ddd",
        &[
            (&[d(-4.0), d(1.0)], d(-4.0)),
            (&[d(f64::NAN), d(1.0)], d(1.0)),
            (&[0, d(-0.0)], d(-0.0)),
        ],
    );
    check("max.f64", "ddd", &[(&[d(-4.0), d(1.0)], d(1.0))]);
}

#[test]
fn halves_round_once() {
    // f16: 1.0 = 0x3c00; bf16: 1.0 = 0x3f80.
    check(
        "add.f16",
        "hhh",
        &[
            (&[0x3c00, 0x3c00], 0x4000),
            (&[0x7bff, 0x7bff], 0x7c00),
            (&[0x7e00, 0x3c00], 0x7fff),
        ],
    );
    check("mul.rn.bf16", "hhh", &[(&[0x3f80, 0xbf80], 0xbf80)]);
    check("sub.bf16", "hhh", &[(&[0x3f80, 0x3f80], 0)]);
    // (1 + 3·2^-10)^2 - 1 = 6·2^-10 + 9·2^-20: only a fused product keeps the last term.
    check("fma.rn.f16", "hhhh", &[(&[0x3c03, 0x3c03, 0xbc00], 0x1e02)]);
    check(
        "fma.rn.bf16",
        "hhhh",
        &[(&[0x3f83, 0x3f83, 0xbf80], 0x3d42)],
    );
    check(
        "fma.rn.bf16x2",
        "rrrr",
        &[(&[0x3f80_4000, 0x4000_4000, 0x0000_3f80], 0x4000_40a0)],
    );
    check(
        "fma.rn.relu.f16",
        "hhhh",
        &[(&[0xbc00, 0x3c00, 0], 0), (&[0x3c00, 0x3c00, 0], 0x3c00)],
    );
    check(
        "max.f16x2",
        "rrr",
        &[(&[0x3c00_bc00, 0x4000_3c00], 0x4000_3c00)],
    );
    check("min.NaN.bf16", "hhh", &[(&[0x7fc0, 0x3f80], 0x7fff)]);
    check("neg.f16x2", "rr", &[(&[0x3c00_bc00], 0xbc00_3c00)]);
    check("abs.bf16", "hh", &[(&[0xbf80], 0x3f80)]);
}
