//! What accesses may not do whatever orders them: bounds, generations, uninitialised memory, atomics, `.nc`, shared memory.

use std::sync::Arc;

use crate::support::{
    A, B, check, checker, filled, kernel, launch,
    machine::{End, Outcome, Schedule, Stream, run},
    memory,
};
use slabfence_emu_check::{Checker, Options, Region, RegionKind, Rule, Touch};
use slabfence_emu_exec::{Cta, Env, Launch};

/// One block of `threads` runs a body on device 0 with buffers at `A` (device 0, initialised), `A + 0x1000` (not) and at
/// `B` (device 1).
fn regions() -> Vec<Region> {
    vec![
        filled(A, 256, 0, "a"),
        Region::buffer(A + 0x1000, 256, 0, "fresh"),
        filled(B, 256, 1, "peer"),
    ]
}

fn stream(threads: u32, body: &str) -> Stream {
    let head = format!(
        "mov.u64 %d1, {A}; mov.u64 %d2, {B}; mul.wide.u32 %d3, %r1, 4; add.u64 %d4, %d1, %d3;"
    );
    let shared = ".shared .align 16 .b8 s[512]; cvt.u64.u32 %d5, %r1; shl.b64 %d5, %d5, 2; mov.u64 %d6, s; add.u64 %d6, %d6, %d5;";
    let kernel = kernel(0, &format!("{head} {shared} {body} ret;"));
    Stream::grids(0, [launch(&kernel, 1, threads, &[])])
}

fn one(threads: u32, body: &str) -> Outcome {
    check(&regions(), &[stream(threads, body)], 1)
}

/// The rules that a body breaks.
fn rules(threads: u32, body: &str) -> Vec<Rule> {
    one(threads, body).rules()
}

#[test]
fn reading_what_nobody_wrote_is_found() {
    assert_eq!(
        rules(1, "ld.global.u32 %r5, [%d1+0x1000];"),
        [Rule::Uninitialised]
    );
    assert_eq!(
        rules(
            1,
            "st.global.u32 [%d1+0x1000], 1; ld.global.u32 %r5, [%d1+0x1000];"
        ),
        []
    );
    // The neighbour in the same sixteen bytes is another word.
    let body = "st.global.u32 [%d1+0x1000], 1; ld.global.u32 %r5, [%d1+0x1004];";
    assert_eq!(rules(1, body), [Rule::Uninitialised]);
    let finding = one(1, body).findings.remove(0);
    assert_eq!(finding.place.unwrap().offset, 4);
    // And so is the neighbour in the same word.
    assert_eq!(
        rules(
            1,
            "st.global.u8 [%d1+0x1001], 1; ld.global.u8 %r5, [%d1+0x1001];"
        ),
        []
    );
    assert_eq!(
        rules(
            1,
            "st.global.u8 [%d1+0x1001], 1; ld.global.u16 %r5, [%d1+0x1002];"
        ),
        [Rule::Uninitialised]
    );
}

#[test]
fn a_copy_initialises_and_may_read_what_is_not() {
    let mut checker = checker(Options::default(), &regions());
    let touch = |address, write| Touch {
        address,
        len: 64,
        write,
        from: None,
    };
    checker.task(1, 0, &[], &[touch(A + 0x1000, false)]);
    assert!(checker.is_clean());
    checker.task(2, 0, &[1], &[touch(A + 0x1000, true)]);
    let mut memory = memory(&regions());
    let run = |checker, memory: &mut _, body: &str| {
        run(memory, checker, &[stream(1, body)], Schedule::of(0))
    };
    run(checker, &mut memory, "ld.global.u32 %r5, [%d1+0x1000];").clean_but(&[Rule::Race]);
}

#[test]
fn a_copy_takes_along_that_nothing_was_written() {
    let fresh = A + 0x1000;
    let touch = |address, len, write, from| Touch {
        address,
        len,
        write,
        from,
    };
    let copy = |from, to, len| {
        [
            touch(from, len, false, None),
            touch(to, len, true, Some(from)),
        ]
    };
    let load = |checker, at: u64| {
        let body = format!("ld.global.u16 %r5, [%d1+{at}];");
        let (mut memory, load) = (memory(&regions()), [stream(1, &body)]);
        let rules = run(&mut memory, checker, &load, Schedule::of(0)).rules();
        rules.contains(&Rule::Uninitialised)
    };
    // Bytes 8 to 40 of what is written are those from 4 on of what is not, but for four in the middle of a word.
    let told = |at: u64, after: &[Touch]| {
        let mut checker = checker(Options::default(), &regions());
        checker.written(fresh + 18, 4);
        checker.task(1, 0, &[], &copy(fresh + 4, A + 8, 32));
        checker.task(2, 0, &[1], after);
        assert!(checker.is_clean());
        load(checker, at)
    };
    let found = [6, 8, 20, 22, 24, 26, 38, 40].map(|at| told(at, &[]));
    assert_eq!(found, [false, true, true, false, false, true, true, false]);
    let fill = [touch(A + 8, 8, true, None)];
    assert_eq!([8, 14, 16].map(|at| told(at, &fill)), [false, false, true]);
    let back = copy(A + 40, A + 8, 8);
    assert_eq!([8, 14, 16].map(|at| told(at, &back)), [false, false, true]);
    let along = copy(A + 8, A + 64, 16);
    assert_eq!([64, 76, 78].map(|at| told(at, &along)), [true, true, false]);
}

impl Outcome {
    /// Ended, and found nothing but these.
    fn clean_but(self, rules: &[Rule]) {
        assert!(matches!(self.end, End::Done));
        assert_eq!(self.rules(), rules, "{}", self.text());
    }
}

#[test]
fn lanes_that_store_halves_of_a_word_do_not_race() {
    let halves = "mul.wide.u32 %d7, %r1, 2; add.u64 %d7, %d7, %d1; cvt.u16.u32 %rs1, %r1; st.global.u16 [%d7], %rs1;";
    assert_eq!(rules(64, &format!(".reg .b16 %rs<4>; {halves}")), []);
    // Two warps that store the same word do.
    assert_eq!(rules(64, "st.global.u32 [%d1], %r1;"), [Rule::Race]);
}

#[test]
fn running_past_the_end_is_found() {
    let mut regions = regions();
    // The machine maps more than was asked for.
    regions[0].len = 200;
    let mut memory = memory(&regions);
    memory.buffers[0] = crate::support::memory::Buffer::new(A, 4096);
    let mut run_at = |offset: u32| {
        let body = format!("ld.global.u64 %d7, [%d1+{offset}];");
        let checker = checker(Options::default(), &regions);
        run(&mut memory, checker, &[stream(1, &body)], Schedule::of(0))
    };
    assert_eq!(run_at(192).rules(), []);
    let outcome = run_at(200);
    assert_eq!(outcome.rules(), [Rule::OutOfBounds]);
    assert!(
        outcome.text().contains("0 bytes past the end of a"),
        "{}",
        outcome.text()
    );
}

#[test]
fn a_fault_says_what_is_or_was_there() {
    let fault = |checker: slabfence_emu_check::Checker| {
        let body = "ld.global.u64 %d7, [%d1+0x2000];";
        match run(
            &mut memory(&regions()),
            checker,
            &[stream(1, body)],
            Schedule::of(0),
        )
        .end
        {
            End::Fault(fault, finding) => {
                assert_eq!(fault.warp, 0);
                finding.unwrap()
            }
            _ => panic!("no fault"),
        }
    };
    let finding = fault(checker(Options::default(), &regions()));
    assert_eq!(finding.rule, Rule::OutOfBounds);
    assert_eq!(finding.detail, "3840 bytes past the end of fresh");
    let mut gone = checker(Options::default(), &regions());
    gone.region(Region::buffer(A + 0x2000, 64, 0, "old"));
    gone.forget(A + 0x2000, 64);
    let finding = fault(gone);
    assert_eq!(finding.rule, Rule::StaleAddress);
    assert_eq!(finding.detail, "`old` was there");
}

#[test]
fn an_access_at_no_multiple_of_its_size_is_named_by_its_memory() {
    for (body, place, detail) in [
        (
            "ld.global.u32 %r5, [%d1+18];",
            "a, + 18",
            "the address is no multiple of 4",
        ),
        (
            "st.shared.u64 [%d6+12], %d1;",
            "shared memory, + 12",
            "the address is no multiple of 8",
        ),
        (
            "mov.u64 %d7, 66; ld.global.u32 %r5, [%d7];",
            "no memory",
            "0x42 is no multiple of 4",
        ),
    ] {
        let End::Fault(_, Some(finding)) = one(1, body).end else {
            panic!("no finding: {body}");
        };
        assert_eq!(finding.rule, Rule::Misaligned);
        assert_eq!(finding.place.unwrap().to_string(), place);
        assert_eq!(finding.detail, detail);
    }
}

/// Runs the first block of a launch over new memory.
fn run_first_block(launch: &Arc<Launch>, regions: &[Region], checker: &mut Checker) {
    let mut env = Env {
        memory: &mut memory(regions),
        hook: checker,
        globaltimer: 0,
        clock: 0,
        executed: 0,
    };
    Cta::new(launch, [0; 3], 0).step(0, &mut env, 100);
}

#[test]
fn memory_that_is_not_what_the_parameters_were_taken_for_is_stale() {
    let kernel = kernel(1, "ld.param.u64 %d1, [p0]; ld.global.u32 %r5, [%d1]; ret;");
    let regions = [filled(A, 256, 0, "a"), filled(A + 256, 256, 0, "b")];
    let words = "the parameters hold its address (+ 0x10) since `old` was there, which is gone";
    for (captured, expected) in [
        (Some(A + 16), vec![(Rule::StaleAddress, words)]),
        (Some(A + 256), vec![]),
        (None, vec![]),
    ] {
        let mut checker = checker(Options::default(), &regions);
        checker.begin(1, 0, &[]);
        if let Some(address) = captured {
            checker.captured(1, address, "old".to_owned());
        }
        let launch = Arc::new(Launch {
            tag: 1,
            ..launch(&kernel, 1, 1, &[A])
        });
        run_first_block(&launch, &regions, &mut checker);
        let findings = checker.finish();
        let found = findings.iter().map(|one| (one.rule, one.detail.as_str()));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_block_that_comes_again_after_its_end_is_watched_again() {
    let kernel = kernel(1, "ld.param.u64 %d1, [p0]; ld.global.u32 %r5, [%d1]; ret;");
    let regions = [filled(A, 256, 0, "a")];
    let mut checker = checker(Options::default(), &regions);
    checker.begin(1, 0, &[]);
    checker.captured(1, A, "old".to_owned());
    let launch = Arc::new(Launch {
        tag: 1,
        ..launch(&kernel, 1, 1, &[A])
    });
    for _ in 0..2 {
        run_first_block(&launch, &regions, &mut checker);
    }
    let counts: Vec<_> = checker.finish().iter().map(|one| one.count).collect();
    assert_eq!(counts, [2]);
}

#[test]
fn atomics_on_a_peer_need_native_ones_and_system_scope() {
    let with = |native_atomics, body: &str| {
        let options = Options {
            native_atomics,
            ..Options::default()
        };
        let checker = checker(options, &regions());
        run(
            &mut memory(&regions()),
            checker,
            &[stream(1, body)],
            Schedule::of(0),
        )
        .rules()
    };
    let system = "red.relaxed.sys.global.add.u32 [%d2], 1;";
    assert_eq!(with(true, system), []);
    assert_eq!(with(false, system), [Rule::PeerAtomic]);
    // `atomicAdd`
    let plain = "atom.global.add.u32 %r5, [%d2], 1;";
    assert_eq!(with(true, plain), [Rule::GpuScopePeerAtomic]);
    assert_eq!(with(true, "atom.global.add.u32 %r5, [%d1], 1;"), []);
}

#[test]
fn an_own_word_that_peers_see_needs_system_scope_too() {
    let plain = kernel(
        1,
        "ld.param.u64 %d1, [p0]; atom.global.add.u32 %r5, [%d1], 1; ret;",
    );
    let stream = Stream::grids(0, [launch(&plain, 1, 1, &[A])]);
    for kind in [RegionKind::Buffer, RegionKind::Ticket, RegionKind::Inbox] {
        let with = |mapped| {
            let mut regions = regions();
            regions[0] = Region {
                kind,
                mapped,
                ..regions[0].clone()
            };
            check(&regions, std::slice::from_ref(&stream), 0)
        };
        with(0).clean();
        for (mapped, who) in [
            (0b10, "device 1 has it too"),
            (0b1100, "devices 2, 3 have it too"),
            (Region::ANYWHERE, "other devices have it too"),
        ] {
            let outcome = with(mapped);
            assert_eq!(outcome.rules(), [Rule::GpuScopePeerAtomic]);
            assert_eq!(outcome.find(Rule::GpuScopePeerAtomic).detail, who);
        }
    }
}

#[test]
fn uncached_loads_of_what_is_written_meanwhile_are_found() {
    assert_eq!(
        rules(1, "ld.global.nc.u32 %r5, [%d1]; st.global.u32 [%d1+4], 1;"),
        []
    );
    for body in [
        "ld.global.nc.u32 %r5, [%d1]; st.global.u32 [%d1], 1;",
        "st.global.u32 [%d1], 1; ld.global.nc.u32 %r5, [%d1];",
    ] {
        assert_eq!(rules(1, body), [Rule::NcLoad], "{body}");
    }
    // A barrier does not help, a kernel boundary does.
    let store = "setp.lt.u32 %p1, %r1, 32; @%p1 st.global.u32 [%d1], 1; bar.sync 0; @!%p1 ld.global.nc.u32 %r5, [%d1];";
    assert_eq!(rules(64, store), [Rule::NcLoad]);
    let (mut store, load) = (
        stream(1, "st.global.u32 [%d1], 1;"),
        stream(1, "ld.global.nc.u32 %r5, [%d1];"),
    );
    assert_eq!(
        check(&regions(), &[store.clone(), load.clone()], 3).rules(),
        [Rule::NcLoad]
    );
    store.work.extend(load.work);
    check(&regions(), &[store], 3).clean();
}

#[test]
fn one_flag_has_one_size() {
    let pair = |first: &str, second: &str| {
        check(&regions(), &[stream(1, first), stream(1, second)], 2).rules()
    };
    let store = "st.relaxed.sys.global.u64 [%d1], 1;";
    assert_eq!(pair(store, "ld.relaxed.sys.global.u64 %d7, [%d1];"), []);
    assert_eq!(
        pair(store, "ld.relaxed.sys.global.u32 %r5, [%d1];"),
        [Rule::MixedSize]
    );
    assert_eq!(
        pair(store, "ld.relaxed.sys.global.u32 %r5, [%d1+4];"),
        [Rule::MixedSize]
    );
    // In order, as in clearing both halves of a word at first, it is nobody's business.
    assert_eq!(
        rules(
            1,
            "st.relaxed.sys.global.u32 [%d1], 0; st.relaxed.sys.global.u64 [%d1], 1;"
        ),
        []
    );
}

#[test]
fn a_vector_may_be_read_torn() {
    let pair = |first: &str, second: &str| {
        let store = stream(1, first);
        let wait = format!("W: {second} setp.ne.u64 %p1, %d7, 1; @%p1 bra W;");
        check(&regions(), &[store, stream(1, &wait)], 2).rules()
    };
    let store = "mov.u64 %d7, 1; st.relaxed.sys.global.v2.u64 [%d1], {%d7, %d7};";
    let vector = "ld.relaxed.sys.global.v2.u64 {%d7, %d8}, [%d1];";
    assert_eq!(pair(store, vector), [Rule::TornVector]);
    assert_eq!(pair(store, "ld.relaxed.sys.global.u64 %d7, [%d1];"), []);
    let scalar = "mov.u64 %d7, 1; st.relaxed.sys.global.u64 [%d1+8], %d7; st.relaxed.sys.global.u64 [%d1], %d7;";
    assert_eq!(pair(scalar, vector), []);
}

#[test]
fn warps_need_a_barrier_between_accesses_to_shared_memory() {
    let other =
        "xor.b32 %r6, %r1, 32; mul.wide.u32 %d7, %r6, 4; mov.u64 %d8, s; add.u64 %d7, %d7, %d8;";
    let body = |between: &str| {
        format!("{other} st.shared.u32 [%d6], 1; {between} ld.shared.u32 %r7, [%d7];")
    };
    assert_eq!(rules(64, &body("bar.sync 0;")), []);
    // Whoever reads first finds nothing there.
    let found = rules(64, &body(""));
    assert!(found.contains(&Rule::SharedRace), "{found:?}");
    let found = rules(64, &body("bar.warp.sync -1;"));
    assert!(found.contains(&Rule::SharedRace), "{found:?}");
    assert_eq!(
        rules(32, "ld.shared.u32 %r7, [%d6];"),
        [Rule::Uninitialised]
    );
}

#[test]
fn lanes_need_a_barrier_of_the_warp() {
    let other =
        "xor.b32 %r6, %r1, 1; mul.wide.u32 %d7, %r6, 4; mov.u64 %d8, s; add.u64 %d7, %d7, %d8;";
    let shared = |between: &str| {
        format!("{other} st.shared.u32 [%d6], 1; {between} ld.shared.u32 %r7, [%d7];")
    };
    assert_eq!(rules(32, &shared("bar.warp.sync -1;")), []);
    assert_eq!(rules(32, &shared("")), [Rule::MissingSyncwarp]);
    assert_eq!(
        rules(32, &shared("shfl.sync.idx.b32 %r8, %r1, 0, 31, -1;")),
        [Rule::MissingSyncwarp]
    );
    let global = |between: &str| {
        format!(
            "xor.b32 %r6, %r1, 1; mul.wide.u32 %d7, %r6, 4; add.u64 %d7, %d7, %d1;
                 st.global.u32 [%d4], 1; {between} ld.global.u32 %r7, [%d7];"
        )
    };
    assert_eq!(rules(32, &global("bar.warp.sync -1;")), []);
    assert_eq!(rules(32, &global("")), [Rule::MissingSyncwarp]);
    // Half of the warp meets, and reads its own half.
    let half = "setp.ge.u32 %p1, %r1, 16; @%p1 ret; bar.warp.sync 0xffff;";
    assert_eq!(rules(32, &shared(half)), []);
}

#[test]
fn a_barrier_that_some_only_arrive_at_orders_them_before_those_who_wait() {
    let body =
        "setp.lt.u32 %p1, %r1, 32; @%p1 st.shared.u32 [%d6], 1; @%p1 bar.arrive 1, 64; @%p1 ret;
                bar.sync 1, 64; ld.shared.u32 %r7, [%d6+-128];";
    assert_eq!(rules(64, body), []);
    let late = body.replace(
        "@%p1 st.shared.u32 [%d6], 1; @%p1 bar.arrive 1, 64;",
        "@%p1 bar.arrive 1, 64; @%p1 st.shared.u32 [%d6], 1;",
    );
    let found = rules(64, &late);
    assert!(found.contains(&Rule::SharedRace), "{found:?}");
}

#[test]
fn arrivals_at_a_ticket_come_in_any_order_and_a_store_after_all() {
    let ticket = [Region {
        kind: RegionKind::Ticket,
        ..filled(A, 16, 0, "ticket")
    }];
    let rules = |body: &str| {
        let kernel = kernel(1, &format!("ld.param.u64 %d1, [p0]; {body} ret;"));
        let stream = Stream::grids(0, [launch(&kernel, 1, 64, &[A])]);
        check(&ticket, &[stream], 0).rules()
    };
    let arrive = "red.relaxed.gpu.global.add.u64 [%d1], 1;";
    let zero = "setp.ne.u32 %p1, %r1, 0; @%p1 ret; st.relaxed.gpu.global.u64 [%d1], 0;";
    assert_eq!(rules(arrive), []);
    assert_eq!(rules(&format!("{arrive} bar.sync 0; {zero}")), []);
    let found = rules(&format!("{arrive} {zero}"));
    assert_eq!(found, [Rule::UnorderedOverwrite]);
}
