//! Read-modify-writes: those that write nothing, those that wait, those that signal.

use crate::support::{
    A, B, checker, filled, kernel, launch,
    machine::{End, Outcome, Schedule, Stream, run},
    memory,
};
use slabfence_emu_check::{Options, Region, RegionKind, Rule, Writers};

const SEEDS: std::ops::Range<u64> = 0..20;

/// Runs a body on each of two devices that have atomics on one another's memory.
fn pair(first: &str, second: &str, seed: u64) -> Vec<Rule> {
    let regions = [filled(A, 256, 0, "data"), filled(B, 256, 0, "flags")];
    let head = format!("mov.u64 %d1, {A}; mov.u64 %d2, {B};");
    let streams = [(0, first), (1, second)].map(|(device, body)| {
        let kernel = kernel(0, &format!("{head} {body} ret;"));
        Stream::grids(device, [launch(&kernel, 1, 1, &[])])
    });
    let options = Options {
        native_atomics: true,
        ..Options::default()
    };
    let checker = checker(options, &regions);
    let outcome = run(&mut memory(&regions), checker, &streams, Schedule::of(seed));
    outcome.rules()
}

#[test]
fn a_cas_that_fails_publishes_nothing_and_writes_nothing() {
    // The second word tells that the first was tried, and nothing else.
    let store = |expected: u32| {
        format!(
            "st.global.u32 [%d1], 7; atom.cas.release.sys.global.b64 %d3, [%d2], {expected}, 1;
             st.relaxed.sys.global.u64 [%d2+64], 1;"
        )
    };
    let load = "W: ld.relaxed.sys.global.u64 %d3, [%d2+64]; setp.eq.u64 %p1, %d3, 0; @%p1 bra W;
                ld.acquire.sys.global.u64 %d3, [%d2]; ld.global.u32 %r5, [%d1];";
    let touch = |expected: u32| {
        format!(
            "atom.cas.relaxed.sys.global.b32 %r5, [%d1], {expected}, 1; st.relaxed.sys.global.u64 [%d2], 1;"
        )
    };
    let look = "ld.global.u32 %r5, [%d1];";
    for seed in SEEDS {
        assert_eq!(pair(&store(0), load, seed), []);
        assert_eq!(pair(&store(5), load, seed), [Rule::Race]);
        assert_eq!(pair(&touch(0), look, seed), [Rule::Race]);
        assert_eq!(pair(&touch(5), look, seed), []);
        // It acquires all the same.
        let acquire = load.replace(
            "ld.acquire.sys.global.u64 %d3, [%d2];",
            "atom.cas.acquire.sys.global.b64 %d3, [%d2], 9, 9;",
        );
        assert_eq!(pair(&store(0), &acquire, seed), []);
        let relaxed = acquire.replace("cas.acquire", "cas.relaxed");
        assert_eq!(pair(&store(0), &relaxed, seed), [Rule::Race]);
    }
}

const FLAG: u64 = 0x100;
const ROW: u64 = 0x200;

fn base(rank: u32) -> u64 {
    [A, B][rank as usize]
}

/// Two ranks run a body some times, each with an epoch, a flag and a row that the other stores to.
fn exchange(body: &str, flag: u64, seed: u64) -> Outcome {
    numbered([LOADED; 2], body, flag, seed)
}

/// How an operation gets its number, and what it does last.
type Source = [&'static str; 2];

const LOADED: Source = [
    "ld.relaxed.gpu.global.u64 %d20, [%d1];",
    "add.u64 %d21, %d20, 1; st.relaxed.gpu.global.u64 [%d1], %d21;",
];
const ADDED: Source = ["atom.add.relaxed.gpu.global.u64 %d20, [%d1], 1;", ""];
const PASSED: Source = ["ld.param.u64 %d20, [p3];", ""];

fn numbered(sources: [Source; 2], body: &str, flag: u64, seed: u64) -> Outcome {
    let mut regions = Vec::new();
    for rank in 0..2 {
        let region = |offset, kind: RegionKind, writers| Region {
            kind,
            channel: Some(1),
            rank: Some(rank),
            writers,
            initialised: true,
            ..Region::buffer(base(rank) + offset, 64, rank, kind.name())
        };
        regions.push(region(0, RegionKind::Epoch, Writers::Rank(rank)));
        regions.push(region(FLAG, RegionKind::Flag, Writers::Anyone));
        regions.push(region(ROW, RegionKind::Buffer, Writers::Anyone));
    }
    let kernels = sources.map(|[take, last]| {
        let body = format!(
            "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; ld.param.u64 %d3, [p2];
             {take} {body} {last} ret;"
        );
        kernel(4, &body)
    });
    let mut memory = memory(&regions);
    let streams = [0, 1].map(|rank| {
        memory.put(base(rank), 2);
        memory.put(base(rank) + FLAG, flag);
        let (own, peer) = (base(rank) + FLAG, base(1 - rank) + FLAG);
        let grids = (2..6).map(|number| {
            launch(
                &kernels[rank as usize],
                1,
                1,
                &[base(rank), own, peer, number],
            )
        });
        Stream::grids(rank, grids)
    });
    let options = Options {
        native_atomics: true,
        ..Options::default()
    };
    run(
        &mut memory,
        checker(options, &regions),
        &streams,
        Schedule::of(seed),
    )
}

/// A signal that its receiver takes away: put where there is none, taken where there is one.
fn meet(n: u32) -> String {
    format!(
        "P{n}: atom.cas.release.sys.global.b64 %d10, [%d3], 0, 1; setp.ne.u64 %p1, %d10, 0; @%p1 bra P{n};
         T{n}: atom.cas.acquire.sys.global.b64 %d10, [%d2], 1, 0; setp.ne.u64 %p1, %d10, 1; @%p1 bra T{n};"
    )
}

#[test]
fn signals_that_are_put_and_taken_by_cas_are_clean_and_their_mutants_are_not() {
    let store = "st.global.u64 [%d3+0x100], %d20;";
    let load = "ld.global.u64 %d11, [%d2+0x100];";
    let body = |put: &str, take: &str| {
        let first = meet(0)
            .replace("cas.release", put)
            .replace("cas.acquire", take);
        format!("{store} {first} {load} {}", meet(1))
    };
    for seed in SEEDS {
        exchange(&body("cas.release", "cas.acquire"), 0, seed).clean();
        let outcome = exchange(&body("cas.relaxed", "cas.acquire"), 0, seed);
        assert!(outcome.has(Rule::Race), "{}", outcome.text());
        let outcome = exchange(&body("cas.release", "cas.relaxed"), 0, seed);
        assert!(outcome.has(Rule::Race), "{}", outcome.text());
    }
}

/// Waits by additions of zero until the flag holds the epoch.
const POLL: &str =
    "W: atom.add.acquire.sys.global.u64 %d10, [%d2], 0; setp.ne.u64 %p1, %d10, %d20; @%p1 bra W;";

#[test]
fn a_wait_by_a_read_modify_write_is_a_wait() {
    let signal = "st.release.sys.global.u64 [%d3], %d20;";
    let mut told = 0;
    for seed in SEEDS {
        // One operation after the other overwrites what the peer may not have seen.
        for signal in [signal, "atom.exch.release.sys.global.b64 %d9, [%d3], %d20;"] {
            // What was overwritten before the peer looked leaves the peer waiting.
            let outcome = exchange(&format!("{signal} {POLL}"), 0, seed);
            let stuck = matches!(outcome.end, End::Stuck);
            assert!(stuck || outcome.has(Rule::UnorderedOverwrite), "{signal}");
            told += usize::from(outcome.has(Rule::UnorderedOverwrite));
        }
        // With a second meeting the peer has seen it.
        let met = format!(
            "{signal} {POLL} {}",
            meet(0).replace("%d2]", "%d2+8]").replace("%d3]", "%d3+8]")
        );
        exchange(&met, 0, seed).clean();
    }
    assert!(told > 20, "{told}");
    // A flag that was there before: who polls first takes it.
    let stale =
        SEEDS.filter(|&seed| exchange(&format!("{signal} {POLL}"), 2, seed).has(Rule::StaleAccept));
    assert!(stale.count() > 5);
}

#[test]
fn a_frozen_flag_slot_is_found_however_an_operation_gets_its_number() {
    let frozen = "st.release.sys.global.u64 [%d3], %d20;
                  W: ld.acquire.sys.global.u64 %d10, [%d2]; setp.ne.u64 %p1, %d10, %d20; @%p1 bra W;";
    let slot = "and.b64 %d12, %d20, 1; shl.b64 %d12, %d12, 4; add.u64 %d2, %d2, %d12; add.u64 %d3, %d3, %d12;";
    let alternate = format!("{slot} {frozen}");
    for source in [LOADED, ADDED, PASSED] {
        let mut told = 0;
        for seed in SEEDS {
            let outcome = numbered([source; 2], frozen, 0, seed);
            let found = outcome.has(Rule::UnorderedOverwrite);
            assert!(found || matches!(outcome.end, End::Stuck));
            told += usize::from(found);
            numbered([source; 2], &alternate, 0, seed).clean();
        }
        assert!(told > 10, "{source:?}: {told}");
        // A peer without a number may store for any operation.
        for seed in SEEDS {
            numbered([source, PASSED], &alternate, 0, seed).clean();
        }
        // What was there before is told where the operation has a number.
        let stale = |seed| numbered([source; 2], frozen, 2, seed).has(Rule::StaleAccept);
        assert_eq!(SEEDS.into_iter().any(stale), source != PASSED);
    }
}

#[test]
fn a_launch_of_several_operations_is_not_held_to_the_number_of_the_first() {
    // Three operations, in slots in turn.
    let each = "and.b64 %d12, %d20, 1; shl.b64 %d12, %d12, 4; add.u64 %d13, %d2, %d12; add.u64 %d14, %d3, %d12;
                st.release.sys.global.u64 [%d14], %d20;
                W: ld.acquire.sys.global.u64 %d10, [%d13]; setp.ne.u64 %p1, %d10, %d20; @%p1 bra W;";
    let [load, advance] = LOADED;
    let three = format!(
        "mov.u32 %r5, 0; N: {load} {each} {advance} add.u32 %r5, %r5, 1;
         setp.lt.u32 %p2, %r5, 3; @%p2 bra N;"
    );
    for seed in SEEDS {
        numbered([["", ""]; 2], &three, 0, seed).clean();
    }
    // One operation is held to its number.
    let stale = |seed| numbered([LOADED; 2], each, 2, seed).has(Rule::StaleAccept);
    assert!(SEEDS.into_iter().any(stale));
}
