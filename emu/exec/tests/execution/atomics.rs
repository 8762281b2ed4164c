//! Read-modify-writes, in global and in shared memory.

use crate::support::table::check;
use crate::support::{Buffer, Memory, compile, launch, module, run};

const M1: u64 = 0xffff_ffff;

/// Checks that `atom` on the word at the first operand, with the second, gives the old value and leaves `new`.
fn atom(op: &str, class: char, cases: &[(u64, u64, u64)]) {
    let ty = if class == 'd' { "b64" } else { "b32" };
    let shape = format!("{class}{class}{class}");
    let old: Vec<_> = cases
        .iter()
        .map(|&(old, operand, _)| ([old, operand], old))
        .collect();
    let new: Vec<_> = cases
        .iter()
        .map(|&(old, operand, new)| ([old, operand], new))
        .collect();
    let list = |cases: &[([u64; 2], u64)], text: &str| {
        let cases: Vec<(&[u64], u64)> = cases
            .iter()
            .map(|(operands, result)| (&operands[..], *result))
            .collect();
        check(text, &shape, &cases);
    };
    list(&old, &format!("atom.global.{op} $0, [%a4], $2"));
    list(
        &new,
        &format!("atom.relaxed.sys.global.{op} $0, [%a4], $2; ld.global.{ty} $0, [%a4]"),
    );
    if !op.starts_with("exch") {
        list(
            &new,
            &format!("red.{op} [%a4], $2; ld.global.{ty} $0, [%a4]"),
        );
    }
    // Shared memory: a word for each lane.
    let shared = format!(
        ".shared .align 8 .b8 s[256]; mul.lo.u32 %t5, %t1, 8; mov.u32 %t6, s; add.u32 %t5, %t5, %t6;
         st.shared.{ty} [%t5], $1; atom.acq_rel.cta.shared.{op} $0, [%t5], $2"
    );
    list(&old, &shared);
    list(&new, &format!("{shared}; ld.shared.{ty} $0, [%t5]"));
}

#[test]
fn each_operation_leaves_its_result_and_gives_the_old_value() {
    atom("add.u32", 'r', &[(5, 7, 12), (M1, 1, 0)]);
    atom("add.s32", 'r', &[(5, M1, 4)]);
    atom(
        "add.u64",
        'd',
        &[(1 << 40, 7, 1 << 40 | 7), (u64::MAX, 1, 0)],
    );
    atom("and.b32", 'r', &[(0b1100, 0b1010, 0b1000)]);
    atom("or.b64", 'd', &[(1 << 63, 1, 1 << 63 | 1)]);
    atom("xor.b32", 'r', &[(0b1100, 0b1010, 0b0110)]);
    atom("min.u32", 'r', &[(M1, 1, 1), (1, M1, 1)]);
    atom("min.s32", 'r', &[(M1, 1, M1), (1, M1, M1)]);
    atom("max.u32", 'r', &[(M1, 1, M1)]);
    atom("max.s32", 'r', &[(M1, 1, 1)]);
    atom("min.s64", 'd', &[(u64::MAX, 1, u64::MAX)]);
    atom("max.u64", 'd', &[(u64::MAX, 1, u64::MAX)]);
    atom("max.s64", 'd', &[(u64::MAX, 1, 1)]);
    atom("inc.u32", 'r', &[(3, 7, 4), (7, 7, 0), (9, 7, 0)]);
    atom("dec.u32", 'r', &[(3, 7, 2), (0, 7, 7), (9, 7, 7)]);
    atom("exch.b32", 'r', &[(3, 7, 7)]);
    atom("exch.b64", 'd', &[(3, 7 << 40, 7 << 40)]);
    atom("add.f32", 'r', &[(0x3f80_0000, 0x4000_0000, 0x4040_0000)]);
}

#[test]
fn float_sums_are_flushed_in_global_memory_only() {
    check(
        "atom.global.add.f32 $0, [%a4], $2; ld.global.b32 $0, [%a4]",
        "rrr",
        &[(&[1, 1], 0)],
    );
    check(
        ".shared .align 4 .b8 s[128]; mul.lo.u32 %t5, %t1, 4; mov.u32 %t6, s; add.u32 %t5, %t5, %t6;
         st.shared.b32 [%t5], $1; atom.shared.add.f32 $0, [%t5], $2; ld.shared.b32 $0, [%t5]",
        "rrr",
        &[(&[1, 1], 2)],
    );
}

#[test]
fn compare_and_swap_stores_only_where_it_finds() {
    check(
        "atom.cas.acquire.sys.global.b32 $0, [%a4], $2, $3",
        "rrrr",
        &[(&[5, 5, 9], 5), (&[5, 6, 9], 5)],
    );
    check(
        "atom.global.cas.b32 $0, [%a4], $2, $3; ld.global.b32 $0, [%a4]",
        "rrrr",
        &[(&[5, 5, 9], 9), (&[5, 6, 9], 5)],
    );
    check(
        "atom.cas.relaxed.gpu.global.b64 $0, [%a4], 0, $2; ld.global.b64 $0, [%a4]",
        "ddd",
        &[(&[0, 9], 9), (&[1, 9], 1)],
    );
    check(
        "atom.cas.b16 $0, [%a4], $2, $3; ld.global.b16 $0, [%a4]",
        "hhhh",
        &[(&[5, 5, 9], 9), (&[5, 6, 9], 5)],
    );
}

#[test]
fn lanes_of_a_warp_take_turns_on_one_word() {
    // Every lane of four warps adds one and gets another old value: their sum is 0 + 1 + … + 127.
    let body = ".reg .b64 %d<4>; .reg .b32 %r<4>; ld.param.u64 %d1, [p0];
        atom.add.acq_rel.gpu.global.u32 %r1, [%d1], 1; red.relaxed.gpu.global.add.u32 [%d1+4], %r1; ret;";
    let kernel = compile(&module(1, body), "k");
    let mut memory = Memory::default();
    memory.buffers.push(Buffer::new(0x1000, 16));
    run(&mut memory, &[launch(&kernel, 2, 64, &[0x1000])]).done();
    assert_eq!(
        [memory.buffers[0].u32(0), memory.buffers[0].u32(1)],
        [128, 127 * 128 / 2]
    );
}
