//! Branches, divergence, waiting for siblings, special registers.

use crate::support::{Buffer, End, Memory, compile, launch, module, run};
use slabfence_emu_exec::{Cta, Env, Fast, Launch, Step, WaitReason};
use std::sync::Arc;

const A: u64 = 0x7000_0000_0000;

/// Runs a body whose `%d3` is the address of the thread's own 64-bit word; gives the words.
fn words(block: u32, body: &str) -> Vec<u64> {
    let memory = run_own(block, body, &[]).1;
    (0..block as usize)
        .map(|thread| memory.buffers[0].u64(thread))
        .collect()
}

fn run_own(block: u32, body: &str, first: &[u64]) -> (End, Memory) {
    let text = format!(
        ".reg .b64 %d<16>; .reg .b32 %r<16>; .reg .pred %p<8>;
         ld.param.u64 %d1, [p0]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 8; add.u64 %d3, %d1, %d2;
         mov.u32 %r2, %laneid;\n{body}"
    );
    let kernel = compile(&module(1, &text), "k");
    let mut memory = Memory::default();
    memory.buffers.push(Buffer::new(A, 8192));
    memory.buffers[0].put_u64s(first);
    let end = run(&mut memory, &[launch(&kernel, 1, block, &[A])]);
    (end, memory)
}

#[test]
fn lanes_part_and_meet_again() {
    // A branch of three ways, each with its own value; behind it all lanes vote together.
    let found = words(
        32,
        "setp.lt.u32 %p1, %r2, 8; @%p1 bra LOW; setp.lt.u32 %p2, %r2, 20; @%p2 bra MIDDLE;
         mov.u32 %r3, 300; bra MEET;
    MIDDLE: mov.u32 %r3, 200; bra MEET;
    LOW: mov.u32 %r3, 100;
    MEET: activemask.b32 %r4; add.u32 %r3, %r3, %r2; mov.b64 %d4, {%r3, %r4}; st.global.u64 [%d3], %d4; ret;",
    );
    for (lane, word) in found.into_iter().enumerate() {
        let way = if lane < 8 {
            100
        } else if lane < 20 {
            200
        } else {
            300
        };
        assert_eq!(word, 0xffff_ffff << 32 | (way + lane as u64));
    }
}

#[test]
fn loops_of_different_length_end_together() {
    let found = words(
        32,
        "mov.u64 %d4, 0; mov.u32 %r3, 0;
    LOOP: setp.ge.u32 %p1, %r3, %r2; @%p1 bra OUT;
         cvt.u64.u32 %d5, %r3; add.u64 %d4, %d4, %d5; add.u32 %r3, %r3, 1; bra LOOP;
    OUT: activemask.b32 %r4; cvt.u64.u32 %d6, %r4; shl.b64 %d6, %d6, 32; or.b64 %d4, %d4, %d6;
         st.global.u64 [%d3], %d4; ret;",
    );
    for (lane, word) in found.into_iter().enumerate() {
        let lane = lane as u64;
        assert_eq!(
            word,
            0xffff_ffff << 32 | (lane * lane.saturating_sub(1) / 2)
        );
    }
}

#[test]
fn a_lane_may_wait_for_its_sibling() {
    // Lane 0 polls, lower in the text than the store of lane 1 that it waits for.
    let (end, memory) = run_own(
        32,
        "setp.eq.u32 %p1, %r2, 1; @%p1 bra PRODUCE; setp.ne.u32 %p2, %r2, 0; @%p2 bra END;
    POLL: ld.acquire.cta.global.u64 %d4, [%d1+512]; setp.eq.u64 %p3, %d4, 0; @%p3 bra POLL;
         st.global.u64 [%d3], %d4; bra END;
    PRODUCE: st.release.cta.global.u64 [%d1+512], 42;
    END: ret;",
        &[],
    );
    end.done();
    assert_eq!(memory.buffers[0].u64(0), 42);
}

#[test]
fn a_poll_ends_the_step_and_says_so() {
    let body = ".reg .b64 %d<4>; .reg .pred %p<2>; ld.param.u64 %d1, [p0];
        POLL: ld.relaxed.gpu.global.u64 %d2, [%d1]; setp.eq.u64 %p1, %d2, 0; @%p1 bra POLL; ret;";
    let kernel = compile(&module(1, body), "k");
    let mut memory = Memory::default();
    memory.buffers.push(Buffer::new(A, 16));
    let mut cta = Cta::new(&launch(&kernel, 1, 32, &[A]), [0; 3], 0);
    let mut step = |memory: &mut Memory| {
        let hook = &mut Fast;
        let mut env = Env {
            memory,
            hook,
            globaltimer: 0,
            clock: 0,
            executed: 0,
        };
        (cta.step(0, &mut env, 1000), env.executed)
    };
    // The first look is no repetition; then every look ends a step.
    assert_eq!(step(&mut memory), (Step::Polled, 5));
    assert_eq!(step(&mut memory), (Step::Polled, 3));
    memory.buffers[0].put_u64s(&[1]);
    // Test and branch on the old value, then a look, test, branch and end.
    assert_eq!(step(&mut memory), (Step::CtaDone, 6));
    assert_eq!(step(&mut memory), (Step::CtaDone, 0));
}

#[test]
fn a_value_kept_by_a_guard_survives_a_loop() {
    // `%d4` is written in the first round only, and needed in all: no other value may take its place meanwhile.
    let found = words(
        32,
        "mov.u64 %d4, 0; mov.u64 %d5, 0; mov.u32 %r3, 0;
    LOOP: setp.eq.u32 %p1, %r3, 0; @%p1 mov.u64 %d4, 1000; add.u64 %d5, %d5, %d4;
         mul.wide.u32 %d6, %r3, 7; add.u64 %d7, %d6, 3; mul.lo.u64 %d8, %d7, %d6; add.u64 %d5, %d5, %d8;
         add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 4; @%p2 bra LOOP;
         st.global.u64 [%d3], %d5; ret;",
    );
    let rest: u64 = (0..4).map(|round| (7 * round + 3) * 7 * round).sum();
    assert_eq!(found, [4000 + rest; 32]);
}

#[test]
fn even_a_weak_wait_does_not_starve_siblings() {
    let (end, memory) = run_own(
        32,
        "setp.eq.u32 %p1, %r2, 1; @%p1 bra PRODUCE; setp.ne.u32 %p2, %r2, 0; @%p2 bra END;
    POLL: ld.global.u64 %d4, [%d1+512]; setp.eq.u64 %p3, %d4, 0; @%p3 bra POLL;
         st.global.u64 [%d3], %d4; bra END;
    PRODUCE: st.global.u64 [%d1+512], 42;
    END: ret;",
        &[],
    );
    end.done();
    assert_eq!(memory.buffers[0].u64(0), 42);
}

#[test]
fn a_lock_taken_lane_by_lane_is_free_in_the_end() {
    // The classic intra-warp spin lock: every lane locks, adds non-atomically, unlocks.
    let (end, memory) = run_own(
        64,
        "add.u64 %d4, %d1, 1024;
    SPIN: atom.global.cas.b32 %r3, [%d4], 0, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra SPIN;
         ld.volatile.global.u32 %r4, [%d4+4]; add.u32 %r4, %r4, 1; st.volatile.global.u32 [%d4+4], %r4;
         atom.global.exch.b32 %r5, [%d4], 0;
         ret;",
        &[],
    );
    end.done();
    assert_eq!(
        [memory.buffers[0].u32(256), memory.buffers[0].u32(257)],
        [0, 64]
    );
}

#[test]
fn a_wait_that_cannot_end_is_seen_as_one() {
    let (end, _) = run_own(
        1,
        "POLL: ld.acquire.sys.global.u64 %d4, [%d1+512]; ld.relaxed.sys.global.u64 %d5, [%d1+520];
         nanosleep.u32 20; setp.eq.u64 %p3, %d4, 3; @%p3 bra POLL; ret;",
        &[3; 128],
    );
    let End::Stuck(ctas) = end else {
        panic!("{end:?}")
    };
    let waits = ctas[0].waits();
    assert_eq!(waits.len(), 1);
    assert_eq!(waits[0].lanes, 1);
    let WaitReason::Polling { addr, seen } = waits[0].reason else {
        panic!("{waits:?}")
    };
    assert!(
        (addr == A + 512 || addr == A + 520) && seen == 3,
        "{waits:?}"
    );
    assert!(waits[0].line > 0);
}

#[test]
fn conditional_exit_leaves_the_others_running() {
    let found = words(
        64,
        "setp.lt.u32 %p1, %r2, 31; @%p1 exit; activemask.b32 %r3; cvt.u64.u32 %d4, %r3; st.global.u64 [%d3], %d4;",
    );
    for (thread, word) in found.into_iter().enumerate() {
        assert_eq!(word, if thread % 32 == 31 { 1 << 31 } else { 0 });
    }
}

#[test]
fn special_registers_place_a_thread() {
    let body = ".reg .b64 %d<16>; .reg .b32 %r<32>;
        ld.param.u64 %d1, [p0];
        mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y;
        mov.u32 %r6, %ctaid.x; mov.u32 %r7, %ctaid.y; mov.u32 %r8, %nctaid.x;
        mad.lo.u32 %r9, %r3, %r5, %r2; mad.lo.u32 %r9, %r9, %r4, %r1;
        mad.lo.u32 %r10, %r7, %r8, %r6; mul.lo.u32 %r11, %r10, 48; add.u32 %r11, %r11, %r9;
        mul.wide.u32 %d2, %r11, 32; add.u64 %d3, %d1, %d2;
        mov.u32 %r12, %laneid; mov.u32 %r13, %warpid; mov.u32 %r14, %nwarpid; mov.u32 %r15, %lanemask_lt;
        mov.u32 %r16, %lanemask_ge; mov.u32 %r17, %smid; mov.u32 %r18, %nsmid; mov.u64 %d4, %gridid; cvt.u32.u64 %r19, %d4;
        st.global.v4.u32 [%d3], {%r12, %r13, %r14, %r15}; st.global.v4.u32 [%d3+16], {%r16, %r17, %r18, %r19};
        ret;";
    let kernel = compile(&module(1, body), "k");
    let mut memory = Memory::default();
    memory.buffers.push(Buffer::new(A, 32 * 48 * 6));
    let mut grid = Launch::clone(&launch(&kernel, 1, 1, &[A]));
    (grid.grid, grid.block, grid.tag) = ([3, 2, 1], [8, 3, 2], 9);
    run(&mut memory, &[Arc::new(grid)]).done();
    for thread in 0..48 * 6u32 {
        let out: [u32; 8] =
            std::array::from_fn(|index| memory.buffers[0].u32(8 * thread as usize + index));
        let (cta, own) = (thread / 48, thread % 48);
        let lane = own % 32;
        assert_eq!(
            out,
            [
                lane,
                own / 32,
                2,
                (1 << lane) - 1,
                u32::MAX << lane,
                cta % 4,
                4,
                9
            ],
            "thread {thread}"
        );
    }
}

#[test]
fn clocks_run_forward() {
    let found = words(
        1,
        "mov.u64 %d4, %clock64; add.u64 %d5, %d4, 0; mov.u64 %d6, %clock64; sub.u64 %d7, %d6, %d4;
         mov.u64 %d8, %globaltimer; setp.ge.u64 %p1, %d8, 1000; selp.u64 %d9, 100, 0, %p1; add.u64 %d7, %d7, %d9;
         st.global.u64 [%d3], %d7; ret;",
    );
    assert_eq!(found, [102]);
}

#[test]
fn counts_of_executed_instructions_are_exact() {
    let (end, _) = run_own(64, "ret;", &[]);
    // Two warps, six instructions each.
    assert_eq!(end.done(), 12);
}
