//! Long runs: what is remembered does not grow with the number of launches, and what is needed is kept.

use crate::support::{
    A, B, check, filled, kernel, launch,
    machine::{Outcome, Stream},
};
use slabfence_emu_check::{Region, Rule};

const WORD: u64 = B + 128;

fn regions() -> Vec<Region> {
    vec![filled(A, 1 << 16, 0, "data"), filled(B, 256, 0, "flag")]
}

/// So many launches of 64 warps, each of which loads and stores words of its own and one that all count in. The last
/// thing of the stream is a warp with this body, and beside the stream there is one with that.
fn run(launches: usize, last: &str, beside: &str) -> Outcome {
    let work = kernel(
        0,
        &format!(
            "mov.u64 %d1, {A}; mov.u64 %d2, {B}; mad.lo.u32 %r4, %r2, 1024, %r1; mul.wide.u32 %d3, %r4, 4;
             add.u64 %d4, %d1, %d3; ld.global.u32 %r5, [%d4]; st.global.u32 [%d4], %r5;
             and.b32 %r6, %r1, 31; setp.eq.u32 %p1, %r6, 0; @%p1 red.relaxed.gpu.global.add.u32 [%d2+4], 1; ret;"
        ),
    );
    let one = |body| {
        let head = format!("mov.u64 %d2, {B}; mov.u64 %d5, {WORD};");
        launch(&kernel(0, &format!("{head} {body} ret;")), 1, 1, &[])
    };
    let mut all = vec![launch(&work, 2, 1024, &[]); launches];
    all.push(one(last));
    let streams = [Stream::grids(1, [one(beside)]), Stream::grids(0, all)];
    check(&regions(), &streams, 7)
}

#[test]
fn what_a_thousand_launches_leave_is_what_ten_leave() {
    let [ten, thousand] = [10, 1000].map(|launches| {
        let outcome = run(launches, "", "");
        let remembered = outcome.remembered;
        outcome.clean();
        remembered
    });
    assert_eq!((ten.warps, ten.operations), (64, 0));
    assert_eq!((thousand.warps, thousand.operations), (64, 0));
    // Of 64,000 warps.
    assert!(thousand.room < 6000, "{thousand:?}");
}

#[test]
fn an_access_that_races_is_named_though_thousands_of_warps_have_come_and_gone_since() {
    // The flag is relaxed, so it orders nothing.
    let store = "st.global.u32 [%d5], 7; st.relaxed.sys.global.u32 [%d2], 1;";
    let load = "W: ld.relaxed.sys.global.u32 %r5, [%d2]; setp.eq.u32 %p1, %r5, 0; @%p1 bra W;
                ld.global.u32 %r6, [%d5];";
    let outcome = run(200, load, store);
    assert_eq!(outcome.rules(), [Rule::Race], "{}", outcome.text());
    let race = outcome.find(Rule::Race);
    let sides = [&race.earlier, &race.later].map(|side| {
        let side = side.as_ref().expect("both sides");
        let thread = side.thread.as_ref().expect("a warp");
        (side.device, side.op, thread.pc, side.access.as_str())
    });
    assert_eq!(
        sides,
        [
            (1, 1, 5, "weak store of 4 bytes"),
            (0, 301, 8, "weak load of 4 bytes")
        ]
    );
}
