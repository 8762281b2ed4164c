//! Barriers of a block: whole and partial, arrivals, reductions, misuse.

use crate::support::{Buffer, End, Memory, compile, launch, module, run};
use slabfence_emu_exec::{BarrierMisuse, FaultKind, WaitReason};

const A: u64 = 0x7000_0000_0000;

fn run_body(block: u32, body: &str) -> (End, Memory) {
    let text = format!(
        ".reg .b64 %d<16>; .reg .b32 %r<16>; .reg .pred %p<8>;
         ld.param.u64 %d1, [p0]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d1, %d2;
         mov.u32 %r2, %warpid;\n{body}"
    );
    let kernel = compile(&module(1, &text), "k");
    let mut memory = Memory::default();
    memory.buffers.push(Buffer::new(A, 8192));
    let end = run(&mut memory, &[launch(&kernel, 1, block, &[A])]);
    (end, memory)
}

fn misuse(block: u32, body: &str) -> BarrierMisuse {
    match run_body(block, body).0.fault().kind {
        FaultKind::Barrier(misuse) => misuse,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_stored_before_a_barrier_is_there_behind_it() {
    let (end, memory) = run_body(
        200,
        ".shared .align 4 .b8 s[1024]; mov.u32 %r3, s; shl.b32 %r4, %r1, 2; add.u32 %r5, %r3, %r4;
         st.shared.u32 [%r5], %r1;
         bar.sync 0;
         mov.u32 %r6, 199; sub.u32 %r6, %r6, %r1; shl.b32 %r6, %r6, 2; add.u32 %r6, %r6, %r3; ld.shared.u32 %r7, [%r6];
         barrier.sync.aligned 0;
         st.shared.u32 [%r5], %r7;
         barrier.sync 3;
         ld.shared.u32 %r8, [%r6];
         add.u32 %r7, %r7, %r8; st.global.u32 [%d3], %r7; ret;",
    );
    end.done();
    for thread in 0..200 {
        assert_eq!(memory.buffers[0].u32(thread), 199);
    }
}

#[test]
fn exited_threads_leave_the_count() {
    // Half of warp 0 and all of warp 1 end before the barrier, in this order and the other.
    for first in ["setp.lt.u32 %p1, %r1, 16;", "setp.ge.u32 %p1, %r1, 32;"] {
        let (end, memory) = run_body(
            64,
            &format!("{first} @%p1 exit; bar.sync 0; st.global.u32 [%d3], 1; ret;"),
        );
        end.done();
        let total: u32 = (0..64).map(|thread| memory.buffers[0].u32(thread)).sum();
        assert_eq!(total, if first.contains("lt") { 48 } else { 32 });
    }
}

#[test]
fn a_warp_that_is_not_full_counts_as_one() {
    // 48 threads are two warps: 64 to a barrier with a count.
    let (end, memory) = run_body(48, "bar.sync 1, 64; st.global.u32 [%d3], 1; ret;");
    end.done();
    assert_eq!(
        (0..48)
            .map(|thread| memory.buffers[0].u32(thread))
            .sum::<u32>(),
        48
    );
}

#[test]
fn named_barriers_serve_some_warps() {
    // Warps 0 and 1 meet at barrier 1, warps 2 and 3 at barrier 2; each pair exchanges a word.
    let (end, memory) = run_body(
        128,
        "shr.u32 %r3, %r2, 1; add.u32 %r4, %r3, 1;
         st.global.u32 [%d3], %r1;
         bar.sync %r4, 64;
         xor.b32 %r5, %r1, 32; mul.wide.u32 %d4, %r5, 4; add.u64 %d5, %d1, %d4; ld.global.u32 %r6, [%d5];
         st.global.u32 [%d3+512], %r6; ret;",
    );
    end.done();
    for thread in 0..128 {
        assert_eq!(memory.buffers[0].u32(128 + thread), thread as u32 ^ 32);
    }
}

#[test]
fn producers_arrive_and_go_on() {
    // Warp 1 produces and arrives; warp 0 waits for it. Twice, so that the barrier is used anew.
    let (end, memory) = run_body(
        64,
        "setp.eq.u32 %p1, %r2, 0; @%p1 bra CONSUME;
         st.global.u32 [%d1+4096], 5; bar.arrive 1, 64;
         bar.sync 2, 64;
         st.global.u32 [%d1+4100], 6; bar.arrive 1, 64; ret;
    CONSUME: bar.sync 1, 64; ld.global.u32 %r3, [%d1+4096]; bar.sync 2, 64;
         bar.sync 1, 64; ld.global.u32 %r4, [%d1+4100];
         mad.lo.u32 %r5, %r3, 10, %r4; st.global.u32 [%d3], %r5; ret;",
    );
    end.done();
    assert_eq!(memory.buffers[0].u32(31), 56);
    assert_eq!(memory.buffers[0].u32(32), 0);
}

#[test]
fn barriers_reduce_predicates() {
    let (end, memory) = run_body(
        96,
        "setp.eq.u32 %p1, %r1, 70; bar.red.or.pred %p2, 0, %p1; bar.red.and.pred %p3, 0, %p1;
         bar.red.or.pred %p4, 1, 96, !%p1; barrier.red.and.pred %p5, 0, !%p2;
         bar.red.popc.u32 %r3, 0, !%p1; bar.red.popc.u32 %r4, 2, 96, %p1;
         selp.u32 %r5, 1, 0, %p2; selp.u32 %r6, 2, 0, %p3; selp.u32 %r7, 4, 0, %p4; selp.u32 %r8, 8, 0, %p5;
         or.b32 %r5, %r5, %r6; or.b32 %r5, %r5, %r7; or.b32 %r5, %r5, %r8;
         shl.b32 %r3, %r3, 8; or.b32 %r5, %r5, %r3; shl.b32 %r4, %r4, 16; or.b32 %r5, %r5, %r4;
         st.global.u32 [%d3], %r5; ret;",
    );
    end.done();
    for thread in 0..96 {
        assert_eq!(memory.buffers[0].u32(thread), 1 | 4 | 95 << 8 | 1 << 16);
    }
}

#[test]
fn lanes_that_part_before_a_barrier_meet_in_it() {
    let (end, memory) = run_body(
        64,
        "and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra EVEN;
         st.global.u32 [%d3], 1; barrier.sync 0; bra OUT;
    EVEN: st.global.u32 [%d3], 2; barrier.sync 0;
    OUT: xor.b32 %r4, %r1, 33; mul.wide.u32 %d4, %r4, 4; add.u64 %d5, %d1, %d4; ld.global.u32 %r5, [%d5];
         st.global.u32 [%d3+512], %r5; ret;",
    );
    end.done();
    for thread in 0..64 {
        assert_eq!(
            memory.buffers[0].u32(128 + thread),
            if thread % 2 == 0 { 1 } else { 2 }
        );
    }
}

#[test]
fn misuse_is_a_fault() {
    assert_eq!(
        misuse(64, "mov.u32 %r3, 16; bar.sync %r3; ret;"),
        BarrierMisuse::Id(16)
    );
    assert_eq!(misuse(64, "bar.sync 0, 48; ret;"), BarrierMisuse::Count(48));
    assert_eq!(
        misuse(64, "bar.sync 0, 128; ret;"),
        BarrierMisuse::Count(128)
    );
    assert_eq!(misuse(64, "bar.sync 0, 0; ret;"), BarrierMisuse::Count(0));
    assert_eq!(misuse(64, "bar.sync %r1; ret;"), BarrierMisuse::LanesDiffer);
    let differ = "add.u32 %r3, %r2, 2; shl.b32 %r3, %r3, 5; bar.sync 1, %r3; ret;";
    assert_eq!(
        misuse(96, differ),
        BarrierMisuse::CountsDiffer {
            id: 1,
            first: 64,
            now: 96
        }
    );
    assert_eq!(
        misuse(64, "bar.arrive 1, 64; bar.arrive 1, 64; ret;"),
        BarrierMisuse::ArrivedTwice(1)
    );
    let mixed = "setp.eq.u32 %p1, %r2, 0; @%p1 bra RED; bar.sync 0; ret;
        RED: bar.red.popc.u32 %r3, 0, %p1; ret;";
    assert_eq!(misuse(64, mixed), BarrierMisuse::OperationsDiffer(0));
}

#[test]
fn a_missing_warp_shows_in_the_report() {
    let (end, _) = run_body(
        96,
        "setp.eq.u32 %p1, %r2, 2; @%p1 bra OTHER; bar.sync 1, 96; ret; OTHER: bar.sync 2, 96; ret;",
    );
    let End::Stuck(ctas) = end else {
        panic!("{end:?}")
    };
    let reasons: Vec<_> = ctas[0]
        .waits()
        .iter()
        .map(|state| (state.warp, state.reason))
        .collect();
    assert_eq!(
        reasons,
        [
            (0, WaitReason::Barrier { id: 1, count: 96 }),
            (1, WaitReason::Barrier { id: 1, count: 96 }),
            (2, WaitReason::Barrier { id: 2, count: 96 }),
        ]
    );
    assert!((0..3).all(|warp| !ctas[0].runnable(warp)));
}
