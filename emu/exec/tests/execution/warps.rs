//! Operations of several lanes of a warp.

use crate::support::{Buffer, End, Memory, compile, launch, module, run};
use slabfence_emu_exec::{FaultKind, WaitReason};

const A: u64 = 0x7000_0000_0000;

fn run_body(block: u32, body: &str) -> (End, Memory) {
    let text = format!(
        ".reg .b64 %d<16>; .reg .b32 %r<16>; .reg .pred %p<8>;
         ld.param.u64 %d1, [p0]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 8; add.u64 %d3, %d1, %d2;
         mov.u32 %r2, %laneid; mul.lo.u32 %r3, %r2, %r2; mov.u32 %r4, 0; setp.eq.u32 %p1, %r1, 99; selp.u32 %r5, 1, 0, %p1;
         {body}
         selp.u32 %r5, 1, 0, %p1; st.global.v2.u32 [%d3], {{%r4, %r5}}; ret;"
    );
    let kernel = compile(&module(1, &text), "k");
    let mut memory = Memory::default();
    memory.buffers.push(Buffer::new(A, 8192));
    let end = run(&mut memory, &[launch(&kernel, 1, block, &[A])]);
    (end, memory)
}

/// What every lane of a warp has in `%r4` and `%p1` after the body. (`%r2` is the lane, `%r3` its square.)
fn lanes(body: &str) -> Vec<(u32, u32)> {
    let (end, memory) = run_body(32, body);
    end.done();
    (0..32)
        .map(|lane| {
            (
                memory.buffers[0].u32(2 * lane),
                memory.buffers[0].u32(2 * lane + 1),
            )
        })
        .collect()
}

#[test]
fn shuffles_read_other_lanes() {
    let square = |lane: u32| lane * lane;
    for (lane, found) in lanes("shfl.sync.bfly.b32 %r4|%p1, %r3, 5, 31, -1;")
        .into_iter()
        .enumerate()
    {
        assert_eq!(found, (square(lane as u32 ^ 5), 1));
    }
    for (lane, found) in lanes("shfl.sync.idx.b32 %r4|%p1, %r3, 7, 31, -1;")
        .into_iter()
        .enumerate()
    {
        assert_eq!(found, (49, 1), "{lane}");
    }
    for (lane, found) in lanes("shfl.sync.up.b32 %r4|%p1, %r3, 3, 0, -1;")
        .into_iter()
        .enumerate()
    {
        let lane = lane as u32;
        assert_eq!(
            found,
            if lane < 3 {
                (square(lane), 0)
            } else {
                (square(lane - 3), 1)
            }
        );
    }
    for (lane, found) in lanes("shfl.sync.down.b32 %r4|%p1, %r3, 30, 31, -1;")
        .into_iter()
        .enumerate()
    {
        let lane = lane as u32;
        assert_eq!(
            found,
            if lane > 1 {
                (square(lane), 0)
            } else {
                (square(lane + 30), 1)
            }
        );
    }
}

#[test]
fn shuffles_stay_in_their_segment() {
    // Width 8: segment mask 0b11000 in bits 8 to 12.
    for (lane, found) in lanes("shfl.sync.down.b32 %r4|%p1, %r3, 5, 0x181F, -1;")
        .into_iter()
        .enumerate()
    {
        let lane = lane as u32;
        assert_eq!(
            found,
            if lane % 8 < 3 {
                ((lane + 5) * (lane + 5), 1)
            } else {
                (lane * lane, 0)
            }
        );
    }
    for (lane, found) in lanes("shfl.sync.up.b32 %r4|%p1, %r3, 2, 0x1800, -1;")
        .into_iter()
        .enumerate()
    {
        let lane = lane as u32;
        assert_eq!(
            found,
            if lane % 8 < 2 {
                (lane * lane, 0)
            } else {
                ((lane - 2) * (lane - 2), 1)
            }
        );
    }
    for (lane, found) in lanes("shfl.sync.idx.b32 %r4, %r3, 9, 0x181F, -1;")
        .into_iter()
        .enumerate()
    {
        let from = lane as u32 / 8 * 8 + 1;
        assert_eq!(found.0, from * from);
    }
}

#[test]
fn votes_and_ballots() {
    let votes = lanes(
        "setp.gt.u32 %p2, %r2, 4; vote.sync.ballot.b32 %r4, %p2, -1; vote.sync.any.pred %p3, %p2, -1;
         vote.sync.all.pred %p4, %p2, -1; vote.sync.uni.pred %p5, %p2, -1; vote.sync.uni.pred %p6, %p3, -1;
         vote.sync.ballot.b32 %r6, !%p2, -1; xor.b32 %r6, %r6, %r4; setp.eq.u32 %p7, %r6, -1;
         not.pred %p4, %p4; not.pred %p5, %p5; and.pred %p1, %p3, %p4; and.pred %p1, %p1, %p5; and.pred %p1, %p1, %p6;
         and.pred %p1, %p1, %p7;",
    );
    assert_eq!(votes, vec![(0xffff_ffe0, 1); 32]);
}

#[test]
fn matches_find_equal_lanes() {
    for (lane, found) in lanes("and.b32 %r6, %r2, 3; match.any.sync.b32 %r4, %r6, -1;")
        .into_iter()
        .enumerate()
    {
        assert_eq!(found.0, 0x1111_1111 << (lane % 4));
    }
    for (lane, found) in lanes("and.b32 %r4, %r2, 3; match.any.sync.b32 %r4, %r4, -1;")
        .into_iter()
        .enumerate()
    {
        assert_eq!(found.0, 0x1111_1111 << (lane % 4));
    }
    assert_eq!(
        lanes("match.all.sync.b32 %r4|%p1, 5, -1;"),
        vec![(u32::MAX, 1); 32]
    );
    assert_eq!(
        lanes("match.all.sync.b32 %r4|%p1, %r2, -1;"),
        vec![(0, 0); 32]
    );
    let wide = "mov.b64 %d4, {%r4, %r2}; match.any.sync.b64 %r4, %d4, -1;";
    for (lane, found) in lanes(wide).into_iter().enumerate() {
        assert_eq!(found.0, 1 << lane);
    }
}

#[test]
fn reductions_and_election() {
    assert_eq!(lanes("redux.sync.add.u32 %r4, %r2, -1;")[3].0, 496);
    assert_eq!(
        lanes("sub.u32 %r6, %r2, 3; redux.sync.min.s32 %r4, %r6, -1;")[9].0,
        (-3i32) as u32
    );
    assert_eq!(
        lanes("sub.u32 %r6, %r2, 3; redux.sync.min.u32 %r4, %r6, -1;")[9].0,
        0
    );
    assert_eq!(
        lanes("sub.u32 %r6, %r2, 3; redux.sync.max.u32 %r4, %r6, -1;")[9].0,
        u32::MAX
    );
    assert_eq!(
        lanes("sub.u32 %r6, %r2, 3; redux.sync.max.s32 %r4, %r6, -1;")[9].0,
        28
    );
    assert_eq!(lanes("redux.sync.or.b32 %r4, %r2, -1;")[0].0, 31);
    assert_eq!(
        lanes("or.b32 %r6, %r2, 32; redux.sync.and.b32 %r4, %r6, -1;")[0].0,
        32
    );
    assert_eq!(lanes("redux.sync.xor.b32 %r4, %r2, -1;")[0].0, 0);
    for (lane, found) in lanes("elect.sync %r4|%p1, -1;").into_iter().enumerate() {
        assert_eq!(found, (0, u32::from(lane == 0)));
    }
}

#[test]
fn tiles_of_a_warp_work_apart() {
    // Each half has its own member mask, in one instruction.
    let found = lanes(
        "setp.lt.u32 %p2, %r2, 16; selp.b32 %r6, 0xffff, 0xffff0000, %p2; redux.sync.add.u32 %r4, %r2, %r6;",
    );
    for (lane, (sum, _)) in found.into_iter().enumerate() {
        assert_eq!(sum, if lane < 16 { 120 } else { 376 });
    }
}

#[test]
fn members_that_parted_are_waited_for() {
    // The upper half takes a longer way to the shuffle.
    let found = lanes(
        "setp.lt.u32 %p2, %r2, 16; @%p2 bra MEET; mov.u32 %r6, 0;
    LONG: add.u32 %r6, %r6, 1; setp.lt.u32 %p3, %r6, 50; @%p3 bra LONG; add.u32 %r3, %r3, 1000;
    MEET: shfl.sync.bfly.b32 %r4, %r3, 16, 31, -1;",
    );
    for (lane, (value, _)) in found.into_iter().enumerate() {
        let other = lane as u32 ^ 16;
        assert_eq!(value, other * other + if other >= 16 { 1000 } else { 0 });
    }
}

#[test]
fn warp_barriers_join_different_places() {
    // Two halves meet in two different `bar.warp.sync`; what one stored before it, the other sees behind it.
    let found = lanes(
        "setp.lt.u32 %p2, %r2, 16; @%p2 bra LOW;
         st.global.u64 [%d3+1024], %d3; bar.warp.sync -1; bra OUT;
    LOW: bar.warp.sync 0xffffffff; ld.global.u32 %r4, [%d1+1272];
    OUT: ;",
    );
    assert_eq!(found[0].0, (A + 248) as u32);
}

#[test]
fn a_lane_outside_of_its_mask_is_a_fault() {
    let fault = run_body(32, "bar.warp.sync 0xff;").0.fault();
    assert_eq!(
        (fault.kind, fault.lane),
        (FaultKind::NotInMemberMask { mask: 0xff }, 8)
    );
}

#[test]
fn a_member_that_never_comes_shows_in_the_report() {
    let (end, _) = run_body(
        64,
        "setp.eq.u32 %p2, %r2, 0; @%p2 bra AWAY; bar.warp.sync -1; bra OUT; AWAY: bar.sync 5, 64; OUT: ;",
    );
    let End::Stuck(ctas) = end else {
        panic!("{end:?}")
    };
    let waits = ctas[0].waits();
    let lanes = |reason| {
        waits
            .iter()
            .find(|state| state.warp == 0 && state.reason == reason)
            .map(|state| state.lanes)
    };
    assert_eq!(
        lanes(WaitReason::Lanes { mask: u32::MAX }),
        Some(0xffff_fffe)
    );
    assert_eq!(lanes(WaitReason::Barrier { id: 5, count: 64 }), Some(1));
}

#[test]
fn ended_members_are_not_waited_for() {
    let (end, memory) = run_body(
        32,
        "setp.lt.u32 %p2, %r2, 4; @%p2 exit; redux.sync.add.u32 %r4, %r2, -1;",
    );
    end.done();
    assert_eq!(memory.buffers[0].u32(2 * 20), 490);
}
