//! Fences of sequential consistency order one another, beyond what their releases and acquires do.
//!
//! Store buffering whose outcome is used: the first thread stores data, fences, looks whether the second has come, and
//! says so. The second says that it has come, fences, and reads the data if the first had not seen it: then the first
//! thread's fence was first. What the second reads of the first comes after its fence, so nothing else orders the two.

use crate::support::{
    A, checker, filled, kernel, launch,
    machine::{End, Outcome, Schedule, Stream, run},
    memory,
};
use slabfence_emu_check::{Options, Rule};

const SEEDS: std::ops::Range<u64> = 0..40;
const FLAGS: u64 = A + 0x1000;
/// What the first thread says.
const ABSENT: u64 = 1;
const THERE: u64 = 2;

/// The fences of the two threads.
type Fences = [&'static str; 2];

/// Runs it on these devices; gives what was found and what the first thread said.
fn buffered([first, second]: Fences, devices: [u32; 2], seed: u64) -> (Outcome, u64) {
    let first = format!(
        "st.global.u32 [%d1], 7; {first} ld.relaxed.sys.global.u64 %d3, [%d2];
         add.u64 %d3, %d3, 1; st.relaxed.sys.global.u64 [%d2+64], %d3;"
    );
    let second = format!(
        "st.relaxed.sys.global.u64 [%d2], 1; {second}
         W: ld.relaxed.sys.global.u64 %d3, [%d2+64]; setp.eq.u64 %p1, %d3, 0; @%p1 bra W;
         setp.eq.u64 %p1, %d3, {THERE}; @%p1 ret; ld.global.u32 %r5, [%d1];"
    );
    let grid = |body: &str, device| {
        let body = format!("mov.u64 %d1, {A}; mov.u64 %d2, {FLAGS}; {body} ret;");
        Stream::grids(device, [launch(&kernel(0, &body), 1, 1, &[])])
    };
    let streams = [grid(&first, devices[0]), grid(&second, devices[1])];
    let regions = [filled(A, 64, 0, "data"), filled(FLAGS, 256, 0, "flags")];
    let mut memory = memory(&regions);
    let checker = checker(Options::default(), &regions);
    let outcome = run(&mut memory, checker, &streams, Schedule::of(seed));
    assert!(matches!(outcome.end, End::Done), "{}", outcome.text());
    let said = memory.get(FLAGS + 64);
    assert!(said == ABSENT || said == THERE, "{said}");
    (outcome, said)
}

/// Whether these fences order the data before its use. Every seed must say so in which the data is used.
fn orders(fences: Fences, devices: [u32; 2]) -> bool {
    let mut used = Vec::new();
    for seed in SEEDS {
        let (outcome, said) = buffered(fences, devices, seed);
        if said == THERE {
            assert_eq!(outcome.rules(), [], "seed {seed}: {}", outcome.text());
            continue;
        }
        if let Some(finding) = outcome.findings.first() {
            let place = finding.place.as_ref().unwrap();
            assert_eq!((place.region.as_str(), place.offset), ("data", 0));
            assert_eq!(outcome.rules(), [Rule::Race], "{}", outcome.text());
        }
        used.push(outcome.findings.is_empty());
    }
    let first = *used.first().expect("a seed in which the data is used");
    assert!(used.iter().all(|&one| one == first), "{fences:?}: {used:?}");
    assert!(used.len() < SEEDS.count(), "seeds in which it is not");
    first
}

const SYSTEM: &str = "fence.sc.sys;";
const DEVICE: &str = "fence.sc.gpu;";

#[test]
fn two_fences_of_sequential_consistency_order_what_lies_before_the_first() {
    assert!(orders([SYSTEM, SYSTEM], [0, 1]));
    assert!(orders(["membar.sys;", SYSTEM], [0, 1]));
    assert!(orders([SYSTEM, "membar.sys;"], [0, 1]));
}

#[test]
fn other_fences_do_not_order_one_another() {
    let weaker = "fence.acq_rel.sys;";
    assert!(!orders([weaker, weaker], [0, 1]));
    assert!(!orders([SYSTEM, weaker], [0, 1]));
    assert!(!orders([weaker, SYSTEM], [0, 1]));
    assert!(!orders(["", SYSTEM], [0, 1]));
    assert!(!orders([SYSTEM, ""], [0, 1]));
}

#[test]
fn fences_of_sequential_consistency_need_scopes_that_include_each_other() {
    assert!(!orders([DEVICE, SYSTEM], [0, 1]));
    assert!(!orders([SYSTEM, DEVICE], [0, 1]));
    assert!(!orders(["membar.gl;", "membar.gl;"], [0, 1]));
    assert!(orders([DEVICE, DEVICE], [0, 0]));
    assert!(orders(["membar.gl;", SYSTEM], [0, 0]));
    assert!(!orders(["membar.cta;", SYSTEM], [0, 0]));
}
