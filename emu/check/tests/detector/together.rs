//! Lanes of a warp that read a word by one instruction: what is remembered of them at once is still each lane's own.

use crate::support::{
    A, check, filled, kernel, launch,
    machine::{Outcome, Stream},
};
use slabfence_emu_check::{Region, RegionKind, Rule};

const SEEDS: std::ops::Range<u64> = 0..20;
const COUNTER: u64 = A + 0x1000;
/// A load and a store.
const ORDINARY: (&str, &str) = ("ld.global.u32 %r5, [%d1];", "st.global.u32 [%d1], 7;");
const EPOCH: (&str, &str) = (
    "ld.relaxed.gpu.global.u64 %d5, [%d1];",
    "st.relaxed.gpu.global.u64 [%d1], 7;",
);

/// Runs a warp for each of these bodies, each on a device of its own, over a word of a kind and a counter.
fn warps(kind: RegionKind, bodies: &[&str], seed: u64) -> Outcome {
    let word = Region {
        kind,
        ..filled(A, 64, 0, "word")
    };
    let head = format!("mov.u64 %d1, {A}; mov.u64 %d2, {COUNTER};");
    let streams: Vec<_> = (0..)
        .zip(bodies)
        .map(|(device, body)| {
            let kernel = kernel(2, &format!("{head} {body} ret;"));
            Stream::grids(device, [launch(&kernel, 1, 32, &[A, COUNTER])])
        })
        .collect();
    check(&[word, filled(COUNTER, 64, 0, "counter")], &streams, seed)
}

/// The rules that one warp breaks.
fn rules(kind: RegionKind, body: &str) -> Vec<Rule> {
    warps(kind, &[body], 1).rules()
}

/// Only this lane goes on.
fn lane(lane: u32) -> String {
    format!("setp.ne.u32 %p1, %r1, {lane}; @%p1 ret;")
}

#[test]
fn a_lane_that_stores_what_all_lanes_have_read_does_so_behind_a_barrier_of_the_warp() {
    let kinds = [
        (RegionKind::Buffer, ORDINARY, Rule::MissingSyncwarp),
        (RegionKind::Epoch, EPOCH, Rule::UnorderedOverwrite),
    ];
    for (kind, (load, store), rule) in kinds {
        for n in [0, 5, 31] {
            let alone = lane(n);
            let outcome = warps(kind, &[&format!("{load} {alone} {store}")], 1);
            assert_eq!(outcome.rules(), [rule], "{}", outcome.text());
            // It is never told of itself.
            let found = outcome.find(rule);
            let lanes = [&found.earlier, &found.later]
                .map(|side| side.as_ref().and_then(|side| side.thread.as_ref()))
                .map(|thread| thread.map(|thread| thread.lane));
            assert_eq!(lanes, [Some(u32::from(n == 0)), Some(n)]);
            let behind = format!("{load} bar.warp.sync -1; {alone} {store}");
            assert_eq!(rules(kind, &behind), []);
            // What it has read alone is in its order.
            assert_eq!(rules(kind, &format!("{alone} {load} {store}")), []);
            // What it has read again is not what the others have read.
            let again = format!("{load} {alone} {load} {store}");
            assert_eq!(rules(kind, &again), [rule]);
        }
    }
}

#[test]
fn no_lane_of_those_that_store_to_a_word_together_hides_another() {
    for n in [0, 5, 31] {
        let alone = lane(n);
        let behind = "bar.warp.sync -1;";
        let others = "setp.ne.u32 %p1, %r1, {n}; @!%p1 ld.global.u32 %r5, [%d1];"
            .replace("{n}", &n.to_string());
        let rules = |body: String| rules(RegionKind::Buffer, &body);
        let store = "st.global.u32 [%d1], 7;";
        // One lane has loaded what all store to; all have stored where one stores, or loads, afterwards.
        assert_eq!(rules(format!("{others} {store}")), [Rule::MissingSyncwarp]);
        assert_eq!(rules(format!("{others} {behind} {store}")), []);
        for after in ["st.global.u32 [%d1], 8;", "ld.global.u32 %r5, [%d1];"] {
            assert_eq!(
                rules(format!("{store} {alone} {after}")),
                [Rule::MissingSyncwarp],
                "lane {n}: {after}"
            );
            assert_eq!(rules(format!("{store} {behind} {alone} {after}")), []);
        }
        // A release by one of them says nothing of the others.
        let told = format!("{alone} st.release.sys.global.u64 [%d2], 1;");
        let user = "W: ld.acquire.sys.global.u64 %d3, [%d2]; setp.eq.u64 %p2, %d3, 0; @%p2 bra W;
             st.global.u32 [%d1], 9;";
        for (between, found) in [("", &[Rule::Race][..]), (behind, &[])] {
            let teller = format!("{store} {between} {told}");
            let outcome = warps(
                RegionKind::Buffer,
                &[&teller, &format!("{} {user}", lane(0))],
                1,
            );
            assert_eq!(outcome.rules(), found, "lane {n}: {}", outcome.text());
        }
    }
    // They are no race among themselves, nor with what they stored before.
    let twice = "st.global.u32 [%d1], 7; bar.warp.sync -1; st.global.u32 [%d1], 8;";
    assert_eq!(rules(RegionKind::Buffer, twice), []);
    assert_eq!(
        rules(
            RegionKind::Buffer,
            "red.relaxed.gpu.global.add.u32 [%d1], 1;"
        ),
        []
    );
}

/// All lanes load, and all but lane 5 and those of a mask tell lane 5 so, which waits for so many and stores.
fn tells_lane_five((load, store): (&str, &str), silent: u32, told: u32) -> String {
    format!(
        "{load} setp.eq.u32 %p1, %r1, 5; @%p1 bra W;
         mov.u32 %r6, {silent}; shr.u32 %r6, %r6, %r1; and.b32 %r6, %r6, 1; setp.eq.u32 %p2, %r6, 1; @%p2 ret;
         red.release.cta.global.add.u32 [%d2], 1; ret;
         W: ld.acquire.cta.global.u32 %r7, [%d2]; setp.lt.u32 %p3, %r7, {told}; @%p3 bra W; {store}"
    )
}

#[test]
fn a_lane_that_has_heard_of_every_other_one_may_store() {
    let kinds = [
        (RegionKind::Buffer, ORDINARY, Rule::MissingSyncwarp),
        (RegionKind::Epoch, EPOCH, Rule::UnorderedOverwrite),
    ];
    for (seed, (kind, accesses, rule)) in SEEDS.flat_map(|seed| kinds.map(|kind| (seed, kind))) {
        let all = tells_lane_five(accesses, 0, 31);
        warps(kind, &[&all], seed).clean();
        let but_one = tells_lane_five(accesses, 1 << 9, 30);
        let outcome = warps(kind, &[&but_one], seed);
        assert_eq!(outcome.rules(), [rule], "{}", outcome.text());
        assert_eq!(outcome.find(rule).count, 1, "{}", outcome.text());
    }
    // Which lane it has not heard of.
    let outcome = warps(
        RegionKind::Buffer,
        &[&tells_lane_five(ORDINARY, 1 << 9, 30)],
        1,
    );
    let found = outcome.find(Rule::MissingSyncwarp);
    let earlier = found.earlier.as_ref().and_then(|side| side.thread.as_ref());
    assert_eq!(earlier.map(|thread| thread.lane), Some(9));
}

#[test]
fn of_some_lanes_that_read_at_once_those_are_told_that_nobody_has_heard_of() {
    // Lanes from 16 on read, and all but lane 20 of them say so.
    let reads = "setp.lt.u32 %p1, %r1, 16; @%p1 ret; ld.global.u32 %r5, [%d1];
                 setp.eq.u32 %p2, %r1, 20; @%p2 ret; red.release.sys.global.add.u32 [%d2], 1;";
    let waits = format!(
        "{} W: ld.acquire.sys.global.u32 %r7, [%d2]; setp.lt.u32 %p3, %r7, 15; @%p3 bra W;
         st.global.u32 [%d1], 7;",
        lane(0)
    );
    for seed in SEEDS {
        let outcome = warps(RegionKind::Buffer, &[reads, &waits], seed);
        let races: Vec<_> = outcome
            .findings
            .iter()
            .filter(|f| f.rule == Rule::Race)
            .collect();
        let [race] = races[..] else {
            panic!("{}", outcome.text());
        };
        let earlier = race.earlier.as_ref().and_then(|side| side.thread.as_ref());
        assert_eq!(earlier.map(|thread| thread.lane), Some(20));
        assert_eq!(race.count, 1, "{}", outcome.text());
    }
}

#[test]
fn a_relaxed_load_of_all_lanes_is_kept_for_a_fence_of_each() {
    // Device 0 publishes its row; every lane of device 1 sees the flag, and those fence that go on to read the row.
    let writes = format!(
        "{} st.global.u32 [%d1], 7; st.release.sys.global.u32 [%d2], 1;",
        lane(0)
    );
    let reads = |fenced: u32| {
        format!(
            "W: ld.relaxed.sys.global.u32 %r5, [%d2]; setp.eq.u32 %p1, %r5, 0; @%p1 bra W;
             setp.ge.u32 %p2, %r1, {fenced}; @%p2 bra S; fence.acq_rel.sys; S: ld.global.u32 %r6, [%d1];"
        )
    };
    for seed in SEEDS {
        warps(RegionKind::Buffer, &[&writes, &reads(32)], seed).clean();
        let outcome = warps(RegionKind::Buffer, &[&writes, &reads(31)], seed);
        assert_eq!(outcome.rules(), [Rule::Race], "{}", outcome.text());
        let found = outcome.find(Rule::Race);
        let later = found.later.as_ref().and_then(|side| side.thread.as_ref());
        assert_eq!(later.map(|thread| thread.lane), Some(31));
    }
}
