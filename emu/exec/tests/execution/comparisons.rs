//! `setp`, `set` and predicate logic.

use crate::support::table::check;

const M1: u64 = 0xffff_ffff;
const NAN: u64 = 0x7fc0_0000;

fn f(value: f32) -> u64 {
    value.to_bits().into()
}

/// Checks which of less, equal, greater a comparison takes for true.
fn order(op: &str, shape: &str, [low, high]: [u64; 2], holds: [u64; 3]) {
    check(
        op,
        shape,
        &[
            (&[low, high], holds[0]),
            (&[high, high], holds[1]),
            (&[high, low], holds[2]),
        ],
    );
}

#[test]
fn integers_compare_by_their_sign() {
    let words = [
        ("eq", [0, 1, 0]),
        ("ne", [1, 0, 1]),
        ("lt", [1, 0, 0]),
        ("le", [1, 1, 0]),
        ("gt", [0, 0, 1]),
        ("ge", [0, 1, 1]),
    ];
    for (word, holds) in words {
        order(&format!("setp.{word}.u32"), "prr", [1, M1], holds);
        order(&format!("setp.{word}.s32"), "prr", [M1, 1], holds);
        order(&format!("setp.{word}.u64"), "pdd", [1, u64::MAX], holds);
        order(&format!("setp.{word}.s64"), "pdd", [u64::MAX, 1], holds);
        order(&format!("setp.{word}.u16"), "phh", [1, 0xffff], holds);
        order(&format!("setp.{word}.s16"), "phh", [0xffff, 1], holds);
    }
    for (word, holds) in [
        ("lo", [1, 0, 0]),
        ("ls", [1, 1, 0]),
        ("hi", [0, 0, 1]),
        ("hs", [0, 1, 1]),
    ] {
        order(&format!("setp.{word}.u32"), "prr", [1, M1], holds);
        order(&format!("setp.{word}.u64"), "pdd", [1, u64::MAX], holds);
    }
    check(
        "setp.eq.b64",
        "pdd",
        &[(&[1 << 40, 1 << 40], 1), (&[1 << 40, 0], 0)],
    );
}

#[test]
fn floats_compare_ordered_or_not() {
    let words = [
        ("eq", [0, 1, 0, 0]),
        ("ne", [1, 0, 1, 0]),
        ("lt", [1, 0, 0, 0]),
        ("le", [1, 1, 0, 0]),
        ("gt", [0, 0, 1, 0]),
        ("ge", [0, 1, 1, 0]),
        ("equ", [0, 1, 0, 1]),
        ("neu", [1, 0, 1, 1]),
        ("ltu", [1, 0, 0, 1]),
        ("leu", [1, 1, 0, 1]),
        ("gtu", [0, 0, 1, 1]),
        ("geu", [0, 1, 1, 1]),
        ("num", [1, 1, 1, 0]),
        ("nan", [0, 0, 0, 1]),
    ];
    for (word, [less, equal, greater, unordered]) in words {
        order(
            &format!("setp.{word}.f32"),
            "prr",
            [f(-1.0), f(2.0)],
            [less, equal, greater],
        );
        check(
            &format!("setp.{word}.f32"),
            "prr",
            &[
                (&[NAN, f(1.0)], unordered),
                (&[f(1.0), NAN], unordered),
                (&[NAN, NAN], unordered),
            ],
        );
        let d = |value: f64| value.to_bits();
        order(
            &format!("setp.{word}.f64"),
            "pdd",
            [d(-1.0), d(2.0)],
            [less, equal, greater],
        );
        check(
            &format!("setp.{word}.f64"),
            "pdd",
            &[
                (&[d(f64::NAN), d(1.0)], unordered),
                (&[d(1.0), d(f64::NAN)], unordered),
            ],
        );
    }
    check("setp.eq.f32", "prr", &[(&[0, 0x8000_0000], 1)]);
}

#[test]
fn a_comparison_combines_with_a_predicate() {
    check(
        "setp.lt.and.s32",
        "prrp",
        &[(&[1, 2, 1], 1), (&[1, 2, 0], 0), (&[2, 1, 1], 0)],
    );
    check(
        "setp.lt.or.s32",
        "prrp",
        &[(&[2, 1, 1], 1), (&[2, 1, 0], 0)],
    );
    check(
        "setp.lt.xor.s32",
        "prrp",
        &[(&[1, 2, 1], 0), (&[2, 1, 1], 1)],
    );
    check(
        "setp.lt.and.s32 $0, $1, $2, !$3",
        "prrp",
        &[(&[1, 2, 0], 1), (&[1, 2, 1], 0)],
    );
    // The second destination combines the complement.
    check(
        "setp.lt.and.s32 %p7|$0, $1, $2, $3",
        "prrp",
        &[(&[1, 2, 1], 0), (&[2, 1, 1], 1), (&[2, 1, 0], 0)],
    );
    check("setp.lt.s32 $0|%p7, $1, $2", "prr", &[(&[1, 2], 1)]);
    check(
        "setp.lt.s32 _|$0, $1, $2",
        "prr",
        &[(&[1, 2], 0), (&[2, 2], 1)],
    );
}

#[test]
fn set_gives_ones_or_one() {
    check("set.lt.u32.s32", "rrr", &[(&[M1, 2], M1), (&[2, 1], 0)]);
    check("set.gt.f32.u32", "rrr", &[(&[M1, 2], f(1.0)), (&[1, 2], 0)]);
    check("set.eq.u32.u64", "rdd", &[(&[1 << 40, 1 << 40], M1)]);
    check("set.leu.s32.f32", "rrr", &[(&[NAN, 0], M1)]);
    check(
        "set.lt.and.u32.s32",
        "rrrp",
        &[(&[1, 2, 0], 0), (&[1, 2, 1], M1)],
    );
}

#[test]
fn predicates_have_logic() {
    check("and.pred", "ppp", &[(&[1, 1], 1), (&[1, 0], 0)]);
    check("or.pred", "ppp", &[(&[0, 0], 0), (&[1, 0], 1)]);
    check("xor.pred", "ppp", &[(&[1, 1], 0), (&[1, 0], 1)]);
    check("not.pred", "pp", &[(&[1], 0), (&[0], 1)]);
    check("mov.pred", "pp", &[(&[1], 1), (&[0], 0)]);
    check("mov.pred $0, 1", "p", &[(&[], 1)]);
    check("mov.pred $0, -1", "p", &[(&[], 1)]);
    check("mov.pred $0, 2", "p", &[(&[], 1)]);
    check("mov.pred $0, 0", "p", &[(&[], 0)]);
}

#[test]
fn guards_keep_the_other_lanes_values() {
    check(
        "mov.b32 $0, 7; @$1 mov.b32 $0, $2",
        "rpr",
        &[(&[1, 9], 9), (&[0, 9], 7)],
    );
    check(
        "mov.b64 $0, 7; @!$1 add.s64 $0, $2, 1",
        "dpd",
        &[(&[1, 9], 7), (&[0, 9], 10)],
    );
    check(
        "mov.b64 $0, 7; @!$1 ld.global.u64 $0, [%a4+8]",
        "dpd",
        &[(&[1, 9], 7), (&[0, 9], 9)],
    );
}
