//! How much is remembered, and that more is told.

use crate::support::{
    A, checker, filled, kernel, launch,
    machine::{Outcome, Schedule, Stream, run},
    memory,
};
use slabfence_emu_check::{Options, Region, RegionKind};

/// So many blocks load one word of a kind, as many at once as are resident.
fn loads(kind: RegionKind, load: &str, blocks: u32, threads: u32, resident: usize) -> Outcome {
    let word = Region {
        kind,
        ..filled(A, 16, 0, "word")
    };
    let kernel = kernel(1, &format!("ld.param.u64 %d1, [p0]; {load} ret;"));
    let stream = Stream::grids(0, [launch(&kernel, blocks, threads, &[A])]);
    let schedule = Schedule {
        resident,
        fuel: 1000,
        ..Schedule::of(1)
    };
    let regions = [word];
    let checker = checker(Options::default(), &regions);
    let outcome = run(&mut memory(&regions), checker, &[stream], schedule);
    assert!(outcome.findings.is_empty(), "{}", outcome.text());
    outcome
}

#[test]
fn the_readers_of_a_word_that_are_more_than_two_hundred_and_fifty_six_are_told() {
    let load = "ld.global.u64 %d2, [%d1];";
    let forgotten = |blocks| {
        let all = usize::MAX;
        loads(RegionKind::Buffer, load, blocks, 1, all).forgotten
    };
    // Of a word of eight bytes, twice four.
    assert_eq!([forgotten(256), forgotten(257), forgotten(264)], [0, 2, 16]);
    // The lanes that read by one execution of an instruction are one.
    let half = "and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 ret; ld.global.u64 %d2, [%d1];";
    let all = usize::MAX;
    assert_eq!(loads(RegionKind::Buffer, half, 40, 32, all).forgotten, 0);
}

#[test]
fn the_users_of_a_signal_that_are_more_than_sixteen_thousand_are_told() {
    let load = "ld.relaxed.gpu.global.u64 %d2, [%d1];";
    let forgotten = |load, blocks| {
        let all = usize::MAX;
        loads(RegionKind::Ticket, load, blocks, 1024, all).forgotten
    };
    // All but one lane of each warp.
    let some = format!("and.b32 %r2, %r1, 31; setp.eq.u32 %p1, %r2, 31; @%p1 ret; {load}");
    assert_eq!([forgotten(&some, 16), forgotten(&some, 17)], [0, 480]);
    // A warp that loads as one is one.
    assert_eq!(forgotten(load, 17), 0);
}

#[test]
fn warps_that_are_more_than_two_thousand_at_once_are_told() {
    let told = |blocks| {
        let outcome = loads(RegionKind::Buffer, "", blocks, 1, 1);
        (outcome.forgotten, outcome.crowded)
    };
    assert_eq!([told(2048), told(2100)], [(0, 0), (0, 52)]);
}
