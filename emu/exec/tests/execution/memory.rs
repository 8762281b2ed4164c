//! Loads and stores: widths, vectors, spaces, generic addresses, globals.

use crate::support::{Buffer, Memory, compile, launch, module, run, table::check};
use slabfence_emu_exec::Launch;
use std::sync::Arc;

const A: u64 = 0x7000_0000_0000;
const B: u64 = 0x7000_0001_0000;

/// Runs one block of `threads` with the addresses of two buffers; gives the buffers.
fn run_body(threads: u32, body: &str, first: &[u32]) -> Memory {
    let kernel = compile(&module(2, body), "k");
    let mut memory = Memory::default();
    memory.buffers.push(Buffer::new(A, 4096));
    memory.buffers.push(Buffer::new(B, 4096));
    memory.buffers[0].put_u32s(first);
    run(&mut memory, &[launch(&kernel, 1, threads, &[A, B])]).done();
    memory
}

#[test]
fn loads_extend_to_their_register() {
    // Operand 1 lies at [%a4].
    check("ld.global.s8 $0, [%a4]", "rd", &[(&[0x80], 0xffff_ff80)]);
    check("ld.global.u8 $0, [%a4]", "rd", &[(&[0x180], 0x80)]);
    check("ld.global.s8 $0, [%a4]", "hd", &[(&[0x80], 0xff80)]);
    check(
        "ld.global.s16 $0, [%a4]",
        "dd",
        &[(&[0x8000], 0xffff_ffff_ffff_8000)],
    );
    check("ld.global.u16 $0, [%a4]", "rd", &[(&[0x1_8000], 0x8000)]);
    check(
        "ld.global.s32 $0, [%a4]",
        "dd",
        &[(&[0x8000_0000], 0xffff_ffff_8000_0000)],
    );
    check(
        "ld.global.b32 $0, [%a4]",
        "dd",
        &[(&[0x1_8000_0000], 0x8000_0000)],
    );
    check("ld.global.nc.u64 $0, [%a4]", "dd", &[(&[1 << 63], 1 << 63)]);
    check("ld.u64 $0, [%a4+8]", "ddd", &[(&[1, 7], 7)]);
    check(
        "add.u64 %a7, %a4, 16; ld.global.ca.u64 $0, [%a7+-8]",
        "ddd",
        &[(&[1, 7], 7)],
    );
    for form in [
        "volatile.global",
        "relaxed.gpu.global",
        "acquire.sys.global",
        "relaxed.cta",
        "weak.global.cg",
    ] {
        check(&format!("ld.{form}.u64 $0, [%a4]"), "dd", &[(&[99], 99)]);
    }
}

#[test]
fn stores_truncate() {
    check(
        "st.global.u8 [%a4], $2; ld.global.u64 $0, [%a4]",
        "ddd",
        &[(&[0x1111_1111, 0xabcd], 0x1111_11cd)],
    );
    check(
        "st.global.b16 [%a4], $2; ld.global.u64 $0, [%a4]",
        "ddr",
        &[(&[0x1111_1111, 0xf_abcd], 0x1111_abcd)],
    );
    check(
        "st.global.u32 [%a4], 7; ld.global.u64 $0, [%a4]",
        "dd",
        &[(&[1 << 40], 1 << 40 | 7)],
    );
    for form in [
        "volatile.global",
        "relaxed.sys.global",
        "release.gpu.global",
        "global.wt",
        "weak",
    ] {
        check(
            &format!("st.{form}.u64 [%a4], 5; ld.global.u64 $0, [%a4]"),
            "dd",
            &[(&[99], 5)],
        );
    }
}

#[test]
fn vectors_move_their_elements_in_order() {
    let memory = run_body(
        32,
        ".reg .b64 %d<8>; .reg .b32 %r<8>; .reg .b16 %h<8>;
         ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mov.u32 %r7, %tid.x;
         mul.wide.u32 %d3, %r7, 16; add.u64 %d4, %d1, %d3; mul.wide.u32 %d5, %r7, 32; add.u64 %d6, %d2, %d5;
         ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d4];
         st.global.v2.b32 [%d6], {%r4, %r3};
         ld.global.v2.u64 {%d1, %d2}, [%d4];
         st.global.b64 [%d6+8], %d2;
         ld.global.v4.u16 {%h1, _, _, %h4}, [%d4+8];
         st.global.v2.u16 [%d6+16], {%h4, %h1};
         ld.global.v4.s8 {%r1, %r2, %r3, %r4}, [%d4];
         st.global.u32 [%d6+20], %r2;
         st.global.v4.u8 [%d6+24], {%r4, %r3, %r2, %r1};
         st.global.v2.u8 [%d6+28], {1, 2};
         ret;",
        &(0..128).map(|word| word * 0x0101_0183).collect::<Vec<_>>(),
    );
    for lane in 0..32u32 {
        let word = |index: u32| (4 * lane + index).wrapping_mul(0x0101_0183);
        let out = |index: u32| memory.buffers[1].u32((8 * lane + index) as usize);
        assert_eq!(
            [out(0), out(1), out(2), out(3)],
            [word(3), word(2), word(2), word(3)]
        );
        assert_eq!(out(4), word(3) >> 16 | word(2) << 16);
        let [b0, b1, b2, b3] = word(0).to_le_bytes();
        assert_eq!(out(5), b1 as i8 as u32);
        assert_eq!(out(6), u32::from_le_bytes([b3, b2, b1, b0]));
        assert_eq!(out(7), 0x0201);
    }
}

#[test]
fn sixteen_bytes_move_as_one_scalar() {
    let memory = run_body(
        32,
        ".reg .b64 %d<8>; .reg .b32 %r<8>; .reg .b128 %q<3>;
         ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mov.u32 %r7, %tid.x;
         mul.wide.u32 %d3, %r7, 16; add.u64 %d4, %d1, %d3; add.u64 %d5, %d2, %d3;
         ld.acquire.sys.global.b128 %q1, [%d4];
         mov.b128 {%d6, %d7}, %q1; add.u64 %d6, %d6, 1; mov.b128 %q2, {%d7, %d6};
         st.relaxed.sys.global.b128 [%d5], %q2;
         ret;",
        &(0..128).collect::<Vec<_>>(),
    );
    for lane in 0..32 {
        let (low, high) = (
            memory.buffers[0].u64(2 * lane),
            memory.buffers[0].u64(2 * lane + 1),
        );
        assert_eq!(memory.buffers[1].u64(2 * lane), high);
        assert_eq!(memory.buffers[1].u64(2 * lane + 1), low + 1);
    }
}

#[test]
fn a_warp_may_span_regions_and_spaces() {
    // Even lanes store to the first buffer, odd ones to the second; then lane 0 generic-stores to shared, lane 1 to
    // local memory, the others to a buffer, all in one instruction.
    let memory = run_body(
        32,
        ".reg .b64 %d<12>; .reg .b32 %r<8>; .reg .pred %p<4>; .shared .align 8 .b8 s[8]; .local .align 8 .b8 l[8];
         ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1;
         setp.eq.u32 %p1, %r2, 0; selp.b64 %d3, %d1, %d2, %p1; mul.wide.u32 %d4, %r1, 8; add.u64 %d5, %d3, %d4;
         st.global.u32 [%d5], %r1;
         mov.u64 %d6, s; cvta.shared.u64 %d6, %d6; mov.u64 %d7, l; cvta.local.u64 %d7, %d7;
         add.u64 %d8, %d1, %d4; add.u64 %d8, %d8, 1024;
         setp.eq.u32 %p1, %r1, 0; selp.b64 %d8, %d6, %d8, %p1;
         setp.eq.u32 %p2, %r1, 1; selp.b64 %d8, %d7, %d8, %p2;
         add.u32 %r3, %r1, 500;
         st.u32 [%d8], %r3;
         ld.u32 %r4, [%d8];
         st.global.u32 [%d5+4], %r4;
         ld.shared.u32 %r5, [s]; ld.local.u32 %r6, [l];
         @!%p1 bra END;
         st.global.u32 [%d2+2048], %r5;
    END: @!%p2 bra DONE;
         st.global.u32 [%d2+2052], %r6;
    DONE: ret;",
        &[],
    );
    for lane in 0..32 {
        let own = &memory.buffers[lane % 2];
        assert_eq!(own.u32(2 * lane), lane as u32);
        assert_eq!(own.u32(2 * lane + 1), lane as u32 + 500);
        assert_eq!(
            memory.buffers[0].u32(256 + 2 * lane),
            if lane < 2 { 0 } else { lane as u32 + 500 }
        );
    }
    assert_eq!(memory.buffers[1].u32(512), 500);
    assert_eq!(memory.buffers[1].u32(513), 501);
}

#[test]
fn spaces_are_told_apart() {
    check("isspacep.global $0, %a4", "pd", &[(&[0], 1)]);
    check("isspacep.shared $0, %a4", "pd", &[(&[0], 0)]);
    check(
        "cvta.shared.u64 %a7, $1; isspacep.shared $0, %a7",
        "pd",
        &[(&[16], 1)],
    );
    check(
        "cvta.shared.u64 %a7, $1; cvta.to.shared.u64 $0, %a7",
        "dd",
        &[(&[16], 16)],
    );
    check(
        "cvta.local.u64 %a7, $1; isspacep.local $0, %a7",
        "pd",
        &[(&[16], 1)],
    );
    check("cvta.to.global.u64 $0, $1", "dd", &[(&[A], A)]);
}

#[test]
fn parameters_can_be_indexed() {
    // The parameter block as an array: by address in its space, and by generic address.
    let memory = run_body(
        2,
        ".reg .b64 %d<12>; .reg .b32 %r<4>;
         ld.param.u64 %d1, [p0]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 8;
         mov.b64 %d3, p0; add.u64 %d4, %d3, %d2; ld.param.u64 %d5, [%d4];
         cvta.param.u64 %d6, %d4; ld.u64 %d7, [%d6];
         add.u64 %d8, %d1, %d2; st.global.u64 [%d8], %d5; st.global.u64 [%d8+64], %d7;
         ret;",
        &[],
    );
    for base in [0, 8] {
        assert_eq!(memory.buffers[0].u64(base), A);
        assert_eq!(memory.buffers[0].u64(base + 1), B);
    }
}

#[test]
fn local_memory_is_a_threads_own() {
    let memory = run_body(
        64,
        ".reg .b64 %d<12>; .reg .b32 %r<8>; .local .align 16 .b8 stack[32]; .reg .b64 %SP;
         ld.param.u64 %d1, [p0]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d1, %d2;
         mov.u64 %SP, stack;
         st.local.u32 [%SP+4], %r1; st.local.v2.u32 [stack+16], {%r1, 9};
         bar.sync 0;
         and.b32 %r2, %r1, 1; mul.wide.u32 %d4, %r2, 12; add.u64 %d5, %SP, %d4;
         ld.local.u32 %r3, [%d5+4]; ld.local.v4.u32 {%r4, %r5, %r6, %r7}, [stack+16];
         add.u32 %r3, %r3, %r5; add.u32 %r3, %r3, %r6;
         st.global.u32 [%d3], %r3;
         ret;",
        &[],
    );
    for thread in 0..64 {
        assert_eq!(memory.buffers[0].u32(thread), thread as u32 + 9);
    }
}

#[test]
fn static_and_dynamic_shared_memory_lie_one_after_the_other() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64
        .extern .shared .align 16 .b8 dyn[];
        .shared .align 4 .u32 module_word;
        .visible .entry k(.param .u64 p0) {
         .reg .b64 %d<8>; .reg .b32 %r<12>; .shared .align 8 .b8 own[12];
         ld.param.u64 %d1, [p0]; mov.u32 %r1, %tid.x;
         mov.u32 %r2, dyn; shl.b32 %r3, %r1, 2; add.s32 %r4, %r2, %r3;
         st.shared.u32 [%r4], %r1; st.shared.u32 [own+8], 77; st.shared.u32 [module_word], 88;
         bar.sync 0;
         ld.shared.u32 %r5, [%r4]; ld.shared.u32 %r6, [own+8]; ld.shared.u32 %r7, [module_word];
         mul.wide.u32 %d2, %r1, 16; add.u64 %d3, %d1, %d2;
         mov.u32 %r8, %dynamic_smem_size; add.u32 %r8, %r8, %r2;
         st.global.v4.u32 [%d3], {%r5, %r6, %r7, %r8};
         ret; }";
    let kernel = compile(text, "k");
    assert_eq!(kernel.static_shared_bytes(), 16);
    let mut memory = Memory::default();
    memory.buffers.push(Buffer::new(A, 4096));
    let mut grid = Launch::clone(&launch(&kernel, 1, 64, &[A]));
    grid.dynamic_shared = 256;
    run(&mut memory, &[Arc::new(grid)]).done();
    for thread in 0..64 {
        let out = [0, 1, 2, 3].map(|index| memory.buffers[0].u32(4 * thread + index));
        assert_eq!(out, [thread as u32, 77, 88, 256 + 16]);
    }
}

#[test]
fn globals_are_found_through_the_launch() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64
        .const .align 4 .b8 table[8] = {1, 0, 0, 0, 254, 255, 255, 255};
        .global .align 8 .u64 counter = 5;
        .visible .entry k(.param .u64 p0) {
         .reg .b64 %d<8>; .reg .b32 %r<8>;
         ld.param.u64 %d1, [p0];
         ld.const.s32 %d2, [table+4]; mov.u64 %d3, table; ld.const.u32 %r1, [%d3];
         ld.global.u64 %d4, [counter]; mov.u64 %d5, counter; atom.global.add.u64 %d6, [%d5], 2; 
         cvta.global.u64 %d7, %d5; st.u64 [%d7+8], 3;
         st.global.v2.u64 [%d1], {%d2, %d4}; st.global.u32 [%d1+16], %r1; st.global.u64 [%d1+24], %d6;
         ret; }";
    let module = slabfence_emu_ptx::parse(text).unwrap();
    assert_eq!(module.globals[0].init, [1, 0, 0, 0, 254, 255, 255, 255]);
    let kernel = compile(text, "k");
    let mut memory = Memory::default();
    memory.buffers.push(Buffer::new(A, 64));
    memory.buffers.push(Buffer::new(B, 8).read_only());
    memory.buffers.push(Buffer::new(0x7100_0000_0000, 16));
    memory.buffers[1].write(0, &module.globals[0].init);
    memory.buffers[2].put_u64s(&[5, 0]);
    let grid = Launch {
        globals: Arc::from([B, 0x7100_0000_0000]),
        kernel,
        grid: [1, 1, 1],
        block: [1, 1, 1],
        params: A.to_le_bytes().into(),
        dynamic_shared: 0,
        multiprocessors: 1,
        tag: 0,
    };
    grid.validate().unwrap();
    run(&mut memory, &[Arc::new(grid)]).done();
    let out = &memory.buffers[0];
    assert_eq!(
        [out.u64(0), out.u64(1), out.u64(2), out.u64(3)],
        [(-2i64) as u64, 5, 1, 5]
    );
    assert_eq!([memory.buffers[2].u64(0), memory.buffers[2].u64(1)], [7, 3]);
}

#[test]
fn a_new_generation_makes_a_warp_look_again() {
    let body = ".reg .b64 %d<4>; .reg .pred %p<2>; ld.param.u64 %d1, [p0];
        LOOP: ld.global.u64 %d2, [%d1]; setp.eq.u64 %p1, %d2, 0; @%p1 bra LOOP; ret;";
    let kernel = compile(&module(1, body), "k");
    let mut memory = Memory::default();
    memory.buffers.push(Buffer::new(A, 16));
    let grid = launch(&kernel, 1, 1, &[A]);
    let mut cta = slabfence_emu_exec::Cta::new(&grid, [0; 3], 0);
    let mut step = |memory: &mut Memory| {
        let mut env = slabfence_emu_exec::Env {
            memory,
            hook: &mut slabfence_emu_exec::Fast,
            globaltimer: 0,
            clock: 0,
            executed: 0,
        };
        cta.step(0, &mut env, 50)
    };
    assert_eq!(step(&mut memory), slabfence_emu_exec::Step::Ran);
    // Another buffer takes the address; the old one stays where it lies.
    let _old = std::mem::replace(&mut memory.buffers[0], Buffer::new(A, 16));
    memory.buffers[0].put_u64s(&[1]);
    memory.generation += 1;
    assert_eq!(step(&mut memory), slabfence_emu_exec::Step::CtaDone);
}
