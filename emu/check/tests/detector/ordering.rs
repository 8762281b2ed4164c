//! What orders accesses: releases, acquires, fences, scopes, read-modify-writes, barriers, kernels, copies.

use crate::support::{
    A, check, checker, filled, kernel, launch,
    machine::{Outcome, Schedule, Stream, Work, grid, run},
    memory,
};
use slabfence_emu_check::{Options, Region, Rule, Touch};

const SEEDS: std::ops::Range<u64> = 0..20;
const FLAG: u64 = A + 0x1000;

/// A buffer of device 0 with data at `A` and flags at `FLAG`.
fn regions() -> Vec<Region> {
    vec![filled(A, 256, 0, "data"), filled(FLAG, 256, 0, "flags")]
}

/// Runs each of these bodies on a device of its own.
fn apart(bodies: &[&str], seed: u64) -> Outcome {
    let head = format!("mov.u64 %d1, {A}; mov.u64 %d2, {FLAG};\n");
    let streams: Vec<_> = (0..)
        .zip(bodies)
        .map(|(device, body)| {
            let kernel = kernel(0, &format!("{head}{body} ret;"));
            Stream::grids(device, [launch(&kernel, 1, 32, &[])])
        })
        .collect();
    let options = Options {
        native_atomics: true,
        ..Options::default()
    };
    let checker = checker(options, &regions());
    run(
        &mut memory(&regions()),
        checker,
        &streams,
        Schedule::of(seed),
    )
}

fn pair(first: &str, second: &str, seed: u64) -> Outcome {
    apart(&[first, second], seed)
}

/// Lane 0 alone goes on.
const ONE: &str = "setp.ne.u32 %p1, %r1, 0; @%p1 ret;";

pub(super) fn clean(first: &str, second: &str) {
    for seed in SEEDS {
        pair(&format!("{ONE} {first}"), &format!("{ONE} {second}"), seed).clean();
    }
}

pub(super) fn finds(rule: Rule, first: &str, second: &str) {
    for seed in SEEDS {
        let outcome = pair(&format!("{ONE} {first}"), &format!("{ONE} {second}"), seed);
        assert_eq!(outcome.rules(), [rule], "seed {seed}: {}", outcome.text());
    }
}

const DATA: &str = "st.global.u32 [%d1], 7;";
const USE: &str = "ld.global.u32 %r5, [%d1];";
pub(super) const WAIT: &str =
    "W: ld.acquire.sys.global.u64 %d3, [%d2]; setp.eq.u64 %p2, %d3, 0; @%p2 bra W;";
pub(super) const WAIT_RELAXED: &str =
    "W: ld.relaxed.sys.global.u64 %d3, [%d2]; setp.eq.u64 %p2, %d3, 0; @%p2 bra W;";

pub(super) fn of(parts: &[&str]) -> String {
    parts.join(" ")
}

#[test]
fn release_and_acquire_pass_data_on() {
    let store = of(&[DATA, "st.release.sys.global.u64 [%d2], 1;"]);
    clean(&store, &of(&[WAIT, USE]));
    finds(Rule::Race, &store, &of(&[WAIT_RELAXED, USE]));
    finds(
        Rule::Race,
        &of(&[DATA, "st.relaxed.sys.global.u64 [%d2], 1;"]),
        &of(&[WAIT, USE]),
    );
}

#[test]
fn a_strong_store_behind_a_load_does_not_hide_it_from_those_behind_the_store() {
    let tell = "st.release.sys.global.u64 [%d2], 1;";
    let told = "st.relaxed.sys.global.u32 [%d1], 2;";
    let ways = [
        (
            "ld.global.u32 %r5, [%d1];",
            "st.relaxed.sys.global.u32 [%d1], 1;",
            Rule::Race,
        ),
        (
            "ld.relaxed.cta.global.u32 %r5, [%d1];",
            "st.relaxed.sys.global.u32 [%d1], 1;",
            Rule::Race,
        ),
        (
            "ld.global.u32 %r5, [%d1];",
            "red.relaxed.sys.global.add.u32 [%d1], 1;",
            Rule::Race,
        ),
        (
            "ld.relaxed.sys.global.u8 %r5, [%d1];",
            "st.relaxed.sys.global.u32 [%d1], 1;",
            Rule::MixedSize,
        ),
    ];
    for (load, store, rule) in ways {
        // Told without an acquire: the two strong stores are no race, the load and the later store are.
        finds(rule, &of(&[load, store, tell]), &of(&[WAIT_RELAXED, told]));
        clean(&of(&[load, store, tell]), &of(&[WAIT, told]));
        clean(&of(&[store, tell]), &of(&[WAIT_RELAXED, told]));
    }
}

#[test]
fn a_release_publishes_nothing_that_comes_after_it() {
    finds(
        Rule::Race,
        &of(&["st.release.sys.global.u64 [%d2], 1;", DATA]),
        &of(&[WAIT, USE]),
    );
}

#[test]
fn fences_make_relaxed_accesses_release_and_acquire() {
    let store = of(&[
        DATA,
        "fence.acq_rel.sys; st.relaxed.sys.global.u64 [%d2], 1;",
    ]);
    clean(&store, &of(&[WAIT_RELAXED, "fence.acq_rel.sys;", USE]));
    clean(&store, &of(&[WAIT_RELAXED, "membar.sys;", USE]));
    clean(
        &of(&[DATA, "membar.sys; st.volatile.global.u64 [%d2], 1;"]),
        &of(&[WAIT, USE]),
    );
    finds(
        Rule::Race,
        &store,
        &of(&[WAIT_RELAXED, "fence.acq_rel.gpu;", USE]),
    );
    finds(
        Rule::Race,
        &store,
        &of(&[WAIT_RELAXED, USE, "fence.acq_rel.sys;"]),
    );
    // A release fence does not acquire.
    finds(
        Rule::Race,
        &store,
        &of(&[WAIT_RELAXED, "fence.release.sys;", USE]),
    );
}

#[test]
fn a_scope_must_include_the_other_thread() {
    let store = of(&[DATA, "st.release.gpu.global.u64 [%d2], 1;"]);
    finds(Rule::Race, &store, &of(&[WAIT, USE]));
}

#[test]
fn strong_accesses_race_if_either_scope_is_too_small() {
    let wait = |scope: &str| WAIT_RELAXED.replace("sys", scope);
    let store = |scope: &str| format!("st.relaxed.{scope}.global.u64 [%d2], 1;");
    clean(&store("sys"), &wait("sys"));
    finds(Rule::Race, &store("sys"), &wait("gpu"));
    finds(Rule::Race, &store("gpu"), &wait("sys"));
}

#[test]
fn a_release_fence_whose_scope_is_too_small_publishes_nothing() {
    let store = of(&[
        DATA,
        "fence.acq_rel.gpu; st.relaxed.sys.global.u64 [%d2], 1;",
    ]);
    finds(Rule::Race, &store, &of(&[WAIT, USE]));
}

#[test]
fn a_chain_of_read_modify_writes_carries_all_releases() {
    let add = "atom.add.acq_rel.sys.global.u64 %d3, [%d2], 1;";
    let last =
        "setp.ne.u64 %p2, %d3, 1; @%p2 ret; ld.global.u32 %r5, [%d1]; ld.global.u32 %r6, [%d1+4];";
    let body = |word: u32| format!("st.global.u32 [%d1+{word}], 7; {add} {last}");
    clean(&body(0), &body(4));
    let relaxed = |word| body(word).replace("acq_rel", "relaxed");
    for seed in SEEDS {
        let outcome = pair(
            &format!("{ONE} {}", relaxed(0)),
            &format!("{ONE} {}", relaxed(4)),
            seed,
        );
        assert_eq!(outcome.rules(), [Rule::Race], "{}", outcome.text());
    }
    // A reduction carries the release of another on, and acquires nothing itself.
    clean(
        &of(&[
            DATA,
            "st.release.sys.global.u64 [%d2+64], 1; red.release.sys.global.add.u64 [%d2], 1;",
        ]),
        &of(&[
            "red.relaxed.sys.global.add.u64 [%d2], 1;
               W: ld.acquire.sys.global.u64 %d3, [%d2]; setp.ne.u64 %p2, %d3, 2; @%p2 bra W;",
            USE,
        ]),
    );
}

#[test]
fn a_relaxed_store_of_another_thread_breaks_a_release_sequence() {
    // A third thread sees the release, and stores over it. Who acquires its value acquires nothing.
    let third = "W: ld.relaxed.sys.global.u64 %d3, [%d2]; setp.eq.u64 %p2, %d3, 0; @%p2 bra W;
        STORE st.relaxed.sys.global.u64 [%d2+64], 1;";
    let wait = "V: ld.relaxed.sys.global.u64 %d3, [%d2+64]; setp.eq.u64 %p2, %d3, 0; @%p2 bra V;
        ld.acquire.sys.global.u64 %d3, [%d2];";
    let first = of(&[ONE, DATA, "st.release.sys.global.u64 [%d2], 1;"]);
    let rules = |store: &str, seed| {
        let second = of(&[ONE, &third.replace("STORE", store)]);
        apart(&[&first, &second, &of(&[ONE, wait, USE])], seed).rules()
    };
    for seed in SEEDS {
        assert_eq!(
            rules("st.relaxed.sys.global.u64 [%d2], 2;", seed),
            [Rule::Race]
        );
        // A read-modify-write carries the release on.
        assert_eq!(
            rules("atom.add.relaxed.sys.global.u64 %d4, [%d2], 1;", seed),
            []
        );
    }
}

#[test]
fn a_relaxed_store_of_the_same_thread_publishes_its_earlier_release_of_the_word_again() {
    // A release and a strong write behind it to the same word are a release pattern; to another word they are not.
    let wait = "V: ld.acquire.sys.global.u64 %d3, [%d2]; setp.ne.u64 %p2, %d3, 2; @%p2 bra V;";
    let store = |released: u32| {
        format!(
            "{DATA} st.release.sys.global.u64 [%d2+{released}], 1; st.relaxed.sys.global.u64 [%d2], 2;"
        )
    };
    clean(&store(0), &of(&[wait, USE]));
    finds(Rule::Race, &store(8), &of(&[wait, USE]));
    // What comes between the two is not published.
    let late = of(&[
        "st.release.sys.global.u64 [%d2], 1;",
        DATA,
        "st.relaxed.sys.global.u64 [%d2], 2;",
    ]);
    finds(Rule::Race, &late, &of(&[wait, USE]));
}

#[test]
fn an_acquire_by_one_lane_says_nothing_to_the_others_without_a_barrier() {
    let store = of(&[
        ONE,
        DATA,
        "st.global.u32 [%d1+4], 7; st.release.sys.global.u64 [%d2], 1;",
    ]);
    let wait = "setp.ne.u32 %p3, %r1, 0; @%p3 bra J; W: ld.acquire.sys.global.u64 %d3, [%d2];
                setp.eq.u64 %p2, %d3, 0; @%p2 bra W; J:";
    let reads = "mul.wide.u32 %d5, %r1, 0; add.u64 %d5, %d5, %d1; ld.global.u32 %r5, [%d5];";
    for seed in SEEDS {
        pair(&store, &of(&[wait, "bar.warp.sync -1;", reads]), seed).clean();
        pair(&store, &of(&[wait, "bar.sync 0;", reads]), seed).clean();
        let outcome = pair(&store, &of(&[wait, reads]), seed);
        assert_eq!(outcome.rules(), [Rule::Race], "{}", outcome.text());
        let finding = outcome.find(Rule::Race);
        let reader = [&finding.earlier, &finding.later]
            .into_iter()
            .flatten()
            .find(|party| party.device == 1);
        assert_ne!(reader.unwrap().thread.as_ref().unwrap().lane, 0);
        // Shuffles order no memory.
        let shuffle = "shfl.sync.idx.b32 %r6, %r1, 0, 31, -1;";
        let outcome = pair(&store, &of(&[wait, shuffle, reads]), seed);
        assert_eq!(outcome.rules(), [Rule::Race], "{}", outcome.text());
    }
}

#[test]
fn a_release_by_one_lane_publishes_its_siblings_only_behind_a_barrier() {
    let write = "mul.wide.u32 %d5, %r1, 4; add.u64 %d5, %d5, %d1; st.global.u32 [%d5], 7;";
    let release = "setp.ne.u32 %p1, %r1, 0; @%p1 ret; st.release.sys.global.u64 [%d2], 1;";
    let read = of(&[ONE, WAIT, "ld.global.u32 %r5, [%d1+8];"]);
    for seed in SEEDS {
        pair(&of(&[write, "bar.warp.sync -1;", release]), &read, seed).clean();
        let outcome = pair(&of(&[write, release]), &read, seed);
        assert_eq!(outcome.rules(), [Rule::Race], "{}", outcome.text());
    }
}

#[test]
fn kernels_of_a_stream_are_ordered_and_those_of_two_are_not() {
    let store = kernel(0, &format!("{ONE} mov.u64 %d1, {A}; {DATA} ret;"));
    let load = kernel(0, &format!("{ONE} mov.u64 %d1, {A}; {USE} ret;"));
    let (store, load) = (launch(&store, 1, 32, &[]), launch(&load, 1, 32, &[]));
    for seed in SEEDS {
        let one = Stream::grids(0, [store.clone(), load.clone(), store.clone()]);
        check(&regions(), &[one], seed).clean();
        let two = [
            Stream::grids(0, [store.clone()]),
            Stream::grids(0, [load.clone()]),
        ];
        assert_eq!(check(&regions(), &two, seed).rules(), [Rule::Race]);
    }
}

#[test]
fn copies_and_fills_are_ordered_by_their_stream() {
    let load = kernel(0, &format!("{ONE} mov.u64 %d1, {A}; {USE} ret;"));
    let load = launch(&load, 1, 32, &[]);
    let fill = Work::Task(vec![Touch {
        address: A,
        len: 64,
        write: true,
        from: None,
    }]);
    let from = Work::Task(vec![Touch {
        address: A,
        len: 64,
        write: false,
        from: None,
    }]);
    for seed in SEEDS {
        let one = Stream::new(
            0,
            [fill.clone(), grid(load.clone()), fill.clone(), from.clone()],
        );
        check(&regions(), &[one], seed).clean();
        let two = [
            Stream::new(0, [fill.clone()]),
            Stream::grids(0, [load.clone()]),
        ];
        let outcome = check(&regions(), &two, seed);
        assert_eq!(outcome.rules(), [Rule::Race]);
        let two = [
            Stream::new(0, [fill.clone()]),
            Stream::new(1, [from.clone()]),
        ];
        assert_eq!(check(&regions(), &two, seed).rules(), [Rule::Race]);
    }
}

/// One kernel reads, the next one of its stream tells the other device with a relaxed store, and that overwrites.
fn told_by_a_later_kernel(tell: &str, boundary: bool, seed: u64) -> Outcome {
    let head = format!("{ONE} mov.u64 %d1, {A}; mov.u64 %d2, {FLAG};");
    let body = |text: &str| launch(&kernel(0, &format!("{head} {text} ret;")), 1, 32, &[]);
    let streams = [
        Stream::grids(0, [body(USE), body(tell)]),
        Stream::grids(1, [body(&of(&[WAIT, DATA]))]),
    ];
    let options = Options {
        kernel_boundary: boundary,
        ..Options::default()
    };
    let checker = checker(options, &regions());
    run(
        &mut memory(&regions()),
        checker,
        &streams,
        Schedule::of(seed),
    )
}

#[test]
fn a_kernel_publishes_what_came_before_it_if_the_boundary_is_assumed_to() {
    let tell = "st.relaxed.sys.global.u64 [%d2], 1;";
    for seed in SEEDS {
        told_by_a_later_kernel(tell, true, seed).clean();
        let outcome = told_by_a_later_kernel(tell, false, seed);
        assert_eq!(outcome.rules(), [Rule::Race]);
        told_by_a_later_kernel(&of(&["fence.acq_rel.sys;", tell]), false, seed).clean();
        // Nothing of the kernel itself is published.
        let outcome = told_by_a_later_kernel(&of(&[USE, tell]), true, seed);
        assert_eq!(outcome.rules(), [Rule::Race]);
    }
}

#[test]
fn a_finding_names_both_sides_and_the_place() {
    let outcome = pair(
        &of(&[
            ONE,
            "mov.u64 %d4, %d4;",
            DATA,
            "st.relaxed.sys.global.u64 [%d2], 1;",
        ]),
        &of(&[ONE, WAIT, "bar.warp.sync 1;", USE]),
        0,
    );
    let finding = outcome.find(Rule::Race);
    let place = finding.place.as_ref().unwrap();
    assert_eq!((place.region.as_str(), place.offset), ("data", 0));
    let (earlier, later) = (
        finding.earlier.as_ref().unwrap(),
        finding.later.as_ref().unwrap(),
    );
    assert_eq!(
        (earlier.op, earlier.device, earlier.access.as_str()),
        (1, 0, "weak store of 4 bytes")
    );
    assert_eq!(
        (later.op, later.device, later.access.as_str()),
        (101, 1, "weak load of 4 bytes")
    );
    let thread = later.thread.as_ref().unwrap();
    assert_eq!(
        (
            thread.kernel.as_str(),
            thread.ctaid,
            thread.warp,
            thread.lane
        ),
        ("k", [0; 3], 0, 0)
    );
    assert!(
        later.synchronised.starts_with("barrier of the warp"),
        "{}",
        later.synchronised
    );
    assert!(thread.line > 5 && earlier.thread.as_ref().unwrap().line > 5);
    let text = finding.to_string();
    assert!(
        text.contains("usual repair: Store the flag with release"),
        "{text}"
    );
}

#[test]
fn a_finding_names_the_words_that_both_sides_last_synchronised_on() {
    let store = of(&[ONE, "st.release.sys.global.u64 [%d2], 1;", DATA]);
    let load = of(&[ONE, WAIT, USE]);
    for seed in SEEDS {
        let outcome = pair(&store, &load, seed);
        let finding = outcome.find(Rule::Race);
        let sides = [&finding.earlier, &finding.later].map(|side| side.as_ref().unwrap());
        for side in sides {
            let word = ["released flags, + 0, line ", "acquired flags, + 0, line "];
            let word = word[side.device as usize];
            assert!(side.synchronised.starts_with(word), "{finding}");
        }
        assert_eq!(finding.place.as_ref().unwrap().to_string(), "data, + 0");
        let text = finding.to_string();
        assert!(text.contains("operation 101 of device 1, `k` CTA 0 warp 0 lane 0, PTX line "));
    }
}
