//! Lanes of one warp: those that end before the others meet, and those that store in turn.

use crate::support::{
    A, B, check, filled, kernel, launch,
    machine::{Outcome, Stream},
};
use slabfence_emu_check::{Region, Rule};

const SEEDS: std::ops::Range<u64> = 0..20;
const FLAG: u64 = B;

fn regions() -> Vec<Region> {
    vec![filled(A, 512, 0, "data"), filled(FLAG, 64, 0, "flag")]
}

/// A body of some threads, beside a lane of another device that waits for the flag and reads the word of thread 9.
fn beside_a_reader(threads: u32, body: &str, seed: u64) -> Outcome {
    let head = format!(
        "mov.u64 %d1, {A}; mov.u64 %d2, {FLAG}; mul.wide.u32 %d3, %r1, 4; add.u64 %d4, %d1, %d3;"
    );
    let reader = "W: ld.acquire.sys.global.u64 %d5, [%d2]; setp.eq.u64 %p1, %d5, 0; @%p1 bra W;
                  ld.global.u32 %r5, [%d1+36];";
    let streams = [(0, threads, body), (1, 1, reader)].map(|(device, threads, body)| {
        let kernel = kernel(0, &format!("{head} {body} ret;"));
        Stream::grids(device, [launch(&kernel, 1, threads, &[])])
    });
    check(&regions(), &streams, seed)
}

#[test]
fn what_a_lane_did_that_returned_before_the_barrier_is_not_published_by_those_who_met() {
    const STORE: &str = "st.global.u32 [%d4], 7;";
    const RETURN: &str = "setp.eq.u32 %p2, %r1, 9; @%p2 ret;";
    const RELEASE: &str = "setp.ne.u32 %p1, %r1, 0; @%p1 ret; st.release.sys.global.u64 [%d2], 1;";
    for seed in SEEDS {
        for barrier in ["bar.sync 0;", "bar.warp.sync -1;"] {
            let outcome =
                beside_a_reader(32, &format!("{STORE} {RETURN} {barrier} {RELEASE}"), seed);
            assert_eq!(
                outcome.rules(),
                [Rule::Race],
                "{barrier} {}",
                outcome.text()
            );
            // Who returns behind a barrier has met the others.
            let met = format!("{STORE} {barrier} {RETURN} {barrier} {RELEASE}");
            beside_a_reader(32, &met, seed).clean();
            // Lanes that the block never had hold nothing back.
            beside_a_reader(20, &format!("{STORE} {barrier} {RELEASE}"), seed).clean();
        }
        // So it is for those who only arrive, and for a warp that returns as a whole.
        let arrive = format!(
            "{STORE} {RETURN} setp.ge.u32 %p3, %r1, 32; @%p3 bra S; bar.arrive 1, 64; ret;
             S: bar.sync 1, 64; setp.ne.u32 %p1, %r1, 32; @%p1 ret; st.release.sys.global.u64 [%d2], 1;"
        );
        let outcome = beside_a_reader(64, &arrive, seed);
        assert_eq!(outcome.rules(), [Rule::Race], "{}", outcome.text());
        beside_a_reader(64, &arrive.replace(RETURN, ""), seed).clean();
        let whole = format!(
            "{STORE} setp.lt.u32 %p2, %r1, 32; @%p2 ret; bar.sync 0; setp.ne.u32 %p1, %r1, 32;
             @%p1 ret; st.release.sys.global.u64 [%d2], 1;"
        );
        let outcome = beside_a_reader(64, &whole, seed);
        assert_eq!(outcome.rules(), [Rule::Race], "{}", outcome.text());
    }
}

/// The rules that a body of one warp breaks.
fn rules(body: &str) -> Vec<Rule> {
    let kernel = kernel(0, &format!("mov.u64 %d1, {A}; {body} ret;"));
    check(
        &regions(),
        &[Stream::grids(0, [launch(&kernel, 1, 32, &[])])],
        1,
    )
    .rules()
}

#[test]
fn a_word_that_another_lane_stored_an_iteration_before_is_found() {
    // In iteration n lane l stores word l + n.
    let turns = |between: &str| {
        format!(
            "mul.wide.u32 %d3, %r1, 4; add.u64 %d4, %d1, %d3; mov.u32 %r5, 0;
             L: st.global.u32 [%d4], %r1; {between} add.u64 %d4, %d4, 4; add.u32 %r5, %r5, 1;
             setp.lt.u32 %p1, %r5, 3; @%p1 bra L;"
        )
    };
    assert_eq!(rules(&turns("")), [Rule::MissingSyncwarp]);
    assert_eq!(rules(&turns("bar.warp.sync -1;")), []);
    // Lanes of one execution are taken to store the same, also where they come to it one after another.
    assert_eq!(rules("st.global.u32 [%d1], 7;"), []);
    let apart = "setp.lt.u32 %p1, %r1, 16; @%p1 bra S; add.u32 %r6, %r1, 1; add.u32 %r6, %r6, 1;
                 S: st.global.u32 [%d1], 7;";
    assert_eq!(rules(apart), []);
    // A lane may store to its own words again.
    let own = "mul.wide.u32 %d3, %r1, 4; add.u64 %d4, %d1, %d3; mov.u32 %r5, 0;
               L: st.global.u32 [%d4], %r5; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 3; @%p1 bra L;";
    assert_eq!(rules(own), []);
}
