//! Packets: a word of data and a stamp in one scalar access. No shipped kernel has any yet.

use crate::support::{
    checker, kernel, launch,
    machine::{Outcome, Schedule, Stream, run},
    memory,
};
use slabfence_emu_check::{Options, Region, RegionKind, Rule, Writers};

/// One warp a rank. Lane n stores its packet at the peer and waits for the peer's packet n.
const BODY: &str = "
    ld.param.u64 %d1, [p0];
    ld.relaxed.gpu.global.u64 %d20, [%d1];
    and.b64 %d21, %d20, 1;
    setp.eq.u64 %p1, %d21, 1;
    ld.param.u64 %d2, [p1]; ld.param.u64 %d3, [p2]; selp.b64 %d22, %d3, %d2, %p1;
    ld.param.u64 %d2, [p3]; ld.param.u64 %d3, [p4]; selp.b64 %d23, %d3, %d2, %p1;
    mul.wide.u32 %d4, %r1, 8; add.u64 %d22, %d22, %d4; add.u64 %d23, %d23, %d4;
    shl.b64 %d5, %d20, 32; or.b64 %d5, %d5, 7;
    st.relaxed.sys.global.u64 [%d23], %d5;
POLL:
    ld.acquire.sys.global.u64 %d6, [%d22];
    shr.u64 %d6, %d6, 32;
    setp.ne.u64 %p2, %d6, %d20;
    @%p2 bra POLL;
    bar.warp.sync -1;
    setp.ne.u32 %p3, %r1, 0;
    @%p3 ret;
    add.u64 %d7, %d20, 1;
    atom.exch.relaxed.gpu.global.b64 %d8, [%d1], %d7;
    ret;";

const PACKETS: u64 = 0x1000;
const SLOT: u64 = 0x100;

fn base(rank: u32) -> u64 {
    0x10_0000_0000 * (u64::from(rank) + 1)
}

/// Two ranks run some operations.
fn exchange(body: &str, seed: u64) -> Outcome {
    from(2, false, body, seed)
}

/// From an epoch on; `anyone` may store packets, or their sender alone.
fn from(epoch: u64, anyone: bool, body: &str, seed: u64) -> Outcome {
    let mut regions = Vec::new();
    for rank in 0..2 {
        let region = |offset, len, kind: RegionKind, writer| Region {
            kind,
            channel: Some(1),
            rank: Some(rank),
            writers: Writers::Rank(writer),
            initialised: true,
            ..Region::buffer(base(rank) + offset, len, rank, kind.name())
        };
        regions.push(region(0, 8, RegionKind::Epoch, rank));
        for slot in 0..2 {
            // Slots are not named: what a frozen one does shall show by itself.
            let at = PACKETS + SLOT * slot;
            let mut packets = region(at, SLOT, RegionKind::Packets, 1 - rank);
            if anyone {
                packets.writers = Writers::Anyone;
            }
            regions.push(packets);
        }
    }
    let kernel = kernel(5, body);
    let mut memory = memory(&regions);
    let streams = [0, 1].map(|rank| {
        memory.put(base(rank), epoch);
        let mut params = vec![base(rank)];
        for side in [base(rank), base(1 - rank)] {
            params.extend([side + PACKETS, side + PACKETS + SLOT]);
        }
        Stream::grids(rank, vec![launch(&kernel, 1, 32, &params); 6])
    });
    let checker = checker(Options::default(), &regions);
    run(&mut memory, checker, &streams, Schedule::of(seed))
}

#[test]
fn packets_in_alternate_slots_are_clean() {
    for seed in 0..20 {
        exchange(BODY, seed).clean();
    }
}

#[test]
fn a_frozen_packet_slot_is_found() {
    let body = BODY.replace("setp.eq.u64 %p1, %d21, 1;", "setp.eq.u64 %p1, %d21, 7;");
    let outcomes: Vec<_> = (0..20).map(|seed| exchange(&body, seed)).collect();
    for outcome in &outcomes {
        let rules = outcome.rules();
        assert!(rules.contains(&Rule::UnorderedOverwrite) || rules.contains(&Rule::PacketLost));
    }
    // Some of them lose a packet that nobody had read.
    assert!(outcomes.iter().any(|outcome| outcome.has(Rule::PacketLost)));
}

#[test]
fn a_scrub_is_no_packet() {
    // One lane stores another stamp first: nobody waits for that, so nothing is lost.
    let body = BODY.replace(
        "st.relaxed.sys.global.u64 [%d23], %d5;",
        "xor.b64 %d9, %d5, 0x100000000; st.relaxed.sys.global.u64 [%d23], %d9; st.relaxed.sys.global.u64 [%d23], %d5;",
    );
    for seed in 0..20 {
        exchange(&body, seed).clean();
    }
}

#[test]
fn a_packet_that_is_a_vector_is_found() {
    let body = BODY.replace(
        "ld.acquire.sys.global.u64 %d6, [%d22];",
        "ld.acquire.sys.global.v2.u32 {%r5, %r6}, [%d22]; mov.b64 %d6, {%r5, %r6};",
    );
    for seed in 0..20 {
        assert!(exchange(&body, seed).has(Rule::TornVector));
    }
}

const SEND: &str = "st.relaxed.sys.global.u64 [%d23], %d5;";
const RECEIVE: &str = "ld.acquire.sys.global.u64 %d6, [%d22];
    shr.u64 %d6, %d6, 32;
    setp.ne.u64 %p2, %d6, %d20;
    @%p2 bra POLL;";

fn changed(from: &str, to: &str) -> String {
    assert!(BODY.contains(from), "{from}");
    BODY.replace(from, to)
}

#[test]
fn a_stamp_that_is_stored_apart_from_its_data_is_found() {
    // Read as one, the halves are of another size.
    let apart = "cvt.u32.u64 %r6, %d20; st.relaxed.sys.global.u32 [%d23], 7; st.relaxed.sys.global.u32 [%d23+4], %r6;";
    let one = changed(SEND, apart);
    // Read apart, nothing races, and the data's word is vouched for by nobody.
    let poll =
        "ld.acquire.sys.global.u32 %r5, [%d22+4]; cvt.u64.u32 %d6, %r5; setp.ne.u64 %p2, %d6, %d20;
        @%p2 bra POLL; ld.relaxed.sys.global.u32 %r5, [%d22];";
    let two = one.replace(RECEIVE, poll);
    assert_ne!(one, two);
    for seed in 0..20 {
        assert!(exchange(&one, seed).has(Rule::MixedSize));
        let outcome = exchange(&two, seed);
        assert_eq!(outcome.rules(), [Rule::StaleAccept], "{}", outcome.text());
        let finding = outcome.find(Rule::StaleAccept);
        assert!(finding.detail.ends_with("took what is no operation's"));
    }
}

#[test]
fn a_receiver_that_scrubs_the_next_slot_is_found() {
    // The sender may be there already.
    let scrub = "bar.warp.sync -1; xor.b64 %d9, %d22, 0x100; st.relaxed.sys.global.u64 [%d9], 0;";
    let body = changed("bar.warp.sync -1;", scrub);
    let mut lost = 0;
    for seed in 0..20 {
        assert!(exchange(&body, seed).has(Rule::WrongRegion));
        let outcome = from(2, true, &body, seed);
        let lost_here = outcome.has(Rule::PacketLost);
        assert!(
            lost_here || outcome.has(Rule::UnorderedOverwrite),
            "{}",
            outcome.text()
        );
        lost += u32::from(lost_here);
    }
    assert!(lost > 0);
}

#[test]
fn packets_need_no_scrub_as_long_as_the_whole_stamp_is_compared() {
    // An old packet of the same stamp would be 2^32 operations old, and a slot is stored to in every second one.
    for epoch in [(1 << 31) - 3, (1 << 32) - 3] {
        for seed in 0..20 {
            // The operations that compare 32 bits with the epoch's low half.
            let body = changed(
                "setp.ne.u64 %p2, %d6, %d20;",
                "and.b64 %d10, %d20, 0xffffffff; setp.ne.u64 %p2, %d6, %d10;",
            );
            from(epoch, false, &body, seed).clean();
        }
    }
    // Of a stamp of two bits an old packet passes for the new one: that of four operations before, of two in one slot.
    let body = changed(
        "setp.ne.u64 %p2, %d6, %d20;",
        "xor.b64 %d10, %d6, %d20; and.b64 %d10, %d10, 1; setp.ne.u64 %p2, %d10, 0;",
    );
    for seed in 0..20 {
        let outcome = exchange(&body, seed);
        let finding = outcome.find(Rule::StaleAccept);
        assert!(finding.detail.contains("took what"), "{finding}");
    }
}

#[test]
fn a_scrub_whose_stamp_is_that_of_the_next_packet_in_the_slot_is_found() {
    // The sender clears the other slot with the stamp that its receiver will wait for there.
    let scrub = "add.u64 %d9, %d20, 1; shl.b64 %d9, %d9, 32; xor.b64 %d10, %d23, 0x100;
        st.relaxed.sys.global.u64 [%d10], %d9; st.relaxed.sys.global.u64 [%d23], %d5;";
    let body = changed(SEND, scrub);
    let taken = (0..20).filter(|&seed| {
        let outcome = exchange(&body, seed);
        let taken = outcome.findings.iter().any(|finding| {
            finding.rule == Rule::StaleAccept && finding.detail.ends_with("is no operation's")
        });
        assert!(taken || !outcome.findings.is_empty(), "{seed}");
        taken
    });
    assert!(taken.count() > 5);
}
