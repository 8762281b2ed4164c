//! Words of the protocol have one size, whatever orders those who access them.

use crate::support::{
    A, check, filled, kernel, launch,
    machine::{Outcome, Stream},
};
use slabfence_emu_check::{Region, RegionKind, Rule};

const SIGNALS: [RegionKind; 6] = [
    RegionKind::Epoch,
    RegionKind::Ticket,
    RegionKind::Entry,
    RegionKind::Flag,
    RegionKind::Poison,
    RegionKind::Packets,
];
const OTHERS: [RegionKind; 4] = [
    RegionKind::Counter,
    RegionKind::Inbox,
    RegionKind::Outbox,
    RegionKind::Buffer,
];

/// One thread accesses a word of a region that its parameters name, in this order.
fn one(kind: RegionKind, body: &str) -> Outcome {
    let region = Region {
        kind,
        ..filled(A, 256, 0, "word")
    };
    let kernel = kernel(1, &format!("ld.param.u64 %d1, [p0]; {body} ret;"));
    let stream = Stream::grids(0, [launch(&kernel, 1, 1, &[A])]);
    check(&[region], &[stream], 0)
}

#[test]
fn a_signal_is_accessed_in_one_size_even_by_one_thread() {
    let first = "st.relaxed.sys.global.u64 [%d1+64], 1;";
    for (second, offset) in [
        ("ld.relaxed.sys.global.u32 %r5, [%d1+64];", 64),
        ("ld.acquire.sys.global.u32 %r5, [%d1+68];", 68),
        ("st.relaxed.sys.global.u32 [%d1+68], 1;", 68),
        ("red.relaxed.sys.global.add.u32 [%d1+64], 1;", 64),
    ] {
        let body = format!("{first} {second}");
        for kind in SIGNALS {
            let outcome = one(kind, &body);
            let finding = outcome.find(Rule::MixedSize);
            let place = finding.place.as_ref().unwrap();
            assert_eq!((place.kind, place.offset), (Some(kind), offset), "{second}");
            assert_eq!(finding.detail, "4 bytes here, otherwise before");
            let earlier = finding.earlier.as_ref().unwrap();
            assert_eq!(earlier.access, "strong .sys store of 8 bytes");
        }
        for kind in OTHERS {
            assert!(!one(kind, &body).has(Rule::MixedSize), "{kind:?} {second}");
        }
    }
}

#[test]
fn a_signal_whose_halves_are_words_is_no_wider_word() {
    let halves = "st.relaxed.sys.global.u32 [%d1], 1; st.relaxed.sys.global.u32 [%d1+4], 1;";
    let whole = "ld.relaxed.sys.global.u64 %d7, [%d1];";
    for kind in SIGNALS {
        let outcome = one(kind, &format!("{halves} {whole}"));
        let finding = outcome.find(Rule::MixedSize);
        assert_eq!(finding.place.as_ref().unwrap().offset, 0);
        assert_eq!(finding.detail, "8 bytes here, otherwise before");
        // Neighbours are words of their own.
        assert!(!one(kind, halves).has(Rule::MixedSize), "{kind:?}");
        let beside = format!("{halves} ld.relaxed.sys.global.u64 %d7, [%d1+8];");
        assert!(!one(kind, &beside).has(Rule::MixedSize), "{kind:?}");
    }
}

#[test]
fn a_signal_that_was_only_read_in_another_size_is_told_without_an_earlier_side() {
    let body = "ld.relaxed.sys.global.u64 %d7, [%d1]; ld.relaxed.sys.global.u32 %r5, [%d1];";
    for kind in SIGNALS {
        let outcome = one(kind, body);
        let finding = outcome.find(Rule::MixedSize);
        assert_eq!(finding.earlier, None);
        let later = finding.later.as_ref().unwrap();
        assert_eq!(later.access, "strong .sys load of 4 bytes");
        let same = body.replace("u32 %r5", "u64 %d8");
        assert!(!one(kind, &same).has(Rule::MixedSize), "{kind:?}");
    }
}
