//! The protocol of `docs/protocol.md`, as written and with one thing wrong.

use crate::support::exchange::{BODY, Exchange, mutated};
use slabfence_emu_check::{RegionKind, Rule};

use crate::support::machine::End;

const SEEDS: std::ops::Range<u64> = 0..20;

/// Every seed finds one of these rules, whichever comes first, and the mutation changes nothing else.
fn finds(body: &str, rules: &[Rule]) {
    for seed in SEEDS {
        let outcome = Exchange::new(body).run(seed);
        let found = rules.iter().any(|rule| outcome.has(*rule));
        assert!(
            found,
            "seed {seed}: {:?} {}",
            outcome.rules(),
            outcome.text()
        );
    }
}

#[test]
fn the_protocol_is_clean() {
    for seed in SEEDS {
        Exchange::new(BODY).run(seed).clean();
    }
}

#[test]
fn relaxed_accesses_with_fences_on_both_sides_are_clean() {
    let body = mutated(
        "st.release.sys.global.u64 [%d26], %d20;",
        "fence.acq_rel.sys; st.relaxed.sys.global.u64 [%d26], %d20;",
    );
    let body = body.replacen(
        "ld.acquire.sys.global.u64 %d36",
        "ld.relaxed.sys.global.u64 %d36",
        1,
    );
    let body = body.replacen("@%p4 bra POLL;", "@%p4 bra POLL; fence.acq_rel.sys;", 1);
    for seed in SEEDS {
        Exchange::new(&body).run(seed).clean();
    }
}

#[test]
fn an_acquire_made_relaxed_is_found() {
    finds(
        &mutated("ld.acquire.sys.global.u64", "ld.relaxed.sys.global.u64"),
        &[Rule::Race],
    );
}

#[test]
fn a_release_made_relaxed_is_found() {
    finds(&mutated("st.release.sys", "st.relaxed.sys"), &[Rule::Race]);
}

#[test]
fn a_scope_that_is_too_small_is_found() {
    finds(
        &mutated("ld.acquire.sys.global.u64", "ld.acquire.gpu.global.u64"),
        &[Rule::Race],
    );
    finds(&mutated("st.release.sys", "st.release.gpu"), &[Rule::Race]);
}

#[test]
fn a_weak_poll_is_found() {
    finds(
        &mutated("ld.acquire.sys.global.u64", "ld.global.u64"),
        &[Rule::WeakSignal],
    );
}

#[test]
fn a_missing_block_barrier_is_found() {
    let body = BODY.replace("    bar.sync 1, 64;\n", "");
    finds(&body, &[Rule::MissingSyncwarp, Rule::Race]);
}

#[test]
fn a_missing_barrier_behind_the_wait_is_found() {
    finds(&mutated("bar.sync 2, 32;", ""), &[Rule::Race]);
}

#[test]
fn a_frozen_slot_is_found() {
    finds(
        &mutated("setp.eq.u64 %p1, %d21, 1;", "setp.eq.u64 %p1, %d21, 7;"),
        &[Rule::WrongSlot],
    );
}

#[test]
fn a_relaxed_ticket_is_found() {
    let body = mutated("atom.add.acq_rel.gpu", "atom.add.relaxed.gpu");
    finds(&body, &[Rule::UnorderedOverwrite]);
}

#[test]
fn an_epoch_that_one_block_advances_for_all_is_found() {
    let body = mutated("setp.ne.u64 %p7, %d37, %d38;", "setp.ne.u32 %p7, %r2, 0;");
    for seed in SEEDS {
        let mut exchange = Exchange::new(&body);
        exchange.grids = vec![4, 4];
        let outcome = exchange.run(seed);
        let epoch = outcome.findings.iter().any(|finding| {
            let kind = finding.place.as_ref().and_then(|place| place.kind);
            (finding.rule, kind) == (Rule::UnorderedOverwrite, Some(RegionKind::Epoch))
        });
        assert!(epoch, "{}", outcome.text());
    }
}

#[test]
fn rows_that_another_block_staged_are_found() {
    let body = mutated(
        "add.u64 %d34, %d24, %d31;",
        "xor.b32 %r9, %r2, 1; mad.lo.u32 %r9, %r9, 32, %r1; mul.wide.u32 %d47, %r9, 16; add.u64 %d34, %d24, %d47;",
    );
    finds(&body, &[Rule::Race]);
}

#[test]
fn a_store_beside_its_region_is_found() {
    let body = mutated(
        "st.global.v4.u32 [%d33]",
        "st.global.v4.u32 [%d33+-0x10000]",
    );
    for seed in SEEDS {
        let mut exchange = Exchange::new(&body);
        exchange.grids = vec![1, 1];
        let outcome = exchange.run(seed);
        let finding = outcome.find(Rule::WrongRegion);
        assert_eq!(
            finding.detail,
            "an ordinary store hits a word of the protocol"
        );
    }
}

#[test]
fn a_store_where_another_rank_alone_may_is_found() {
    let body = mutated("add.u64 %d33, %d27, %d31;", "add.u64 %d33, %d24, %d31;");
    for seed in SEEDS {
        let outcome = Exchange::new(&body).run(seed);
        let finding = outcome.find(Rule::WrongRegion);
        assert!(finding.detail.contains("stores where rank"), "{finding}");
    }
}

#[test]
fn memory_that_no_parameter_points_to_is_found() {
    let swap = "xor.b64 %d47, %d1, 0x3000000000; ld.relaxed.sys.global.u64 %d46, [%d47];";
    let body = mutated("DONE:", &format!("DONE: {swap}"));
    for seed in SEEDS {
        let outcome = Exchange::new(&body).run(seed);
        let finding = outcome.find(Rule::WrongRegion);
        assert_eq!(
            finding.detail,
            "no pointer of the launch's parameters leads there"
        );
    }
}

/// Finds a wait that ended on something that another operation, or nobody, had stored.
fn stale(exchange: &Exchange, detail: &str) {
    for seed in SEEDS {
        let outcome = exchange.run(seed);
        let finding = outcome.find(Rule::StaleAccept);
        assert!(finding.detail.contains(detail), "{finding}");
    }
}

#[test]
fn a_comparison_that_passes_falsely_is_found() {
    // Signed, it holds for every old flag when the epoch becomes negative.
    let body = mutated(
        "setp.ne.u64 %p4, %d36, %d20;",
        "setp.lt.s64 %p4, %d36, %d20;",
    );
    let mut exchange = Exchange::new(&body);
    exchange.run(1).clean();
    exchange.epoch = (1 << 63) - 4;
    stale(&exchange, "had stored");
    // Equality holds for the right one alone.
    exchange.body = BODY.to_owned();
    exchange.run(1).clean();
}

#[test]
fn a_flag_that_was_set_before_is_found() {
    let mut exchange = Exchange::new(BODY);
    exchange.grids = vec![1];
    exchange.flags = exchange.epoch;
    stale(&exchange, "was there before the run");
}

#[test]
fn a_stale_accept_is_not_claimed_of_a_wait_that_goes_on() {
    // Every look is followed by a barrier of the lane and an ordinary store.
    let body = mutated(
        "setp.ne.u64 %p4, %d36, %d20;",
        "bar.warp.sync 1; st.global.u64 [%d35], %d20; setp.ne.u64 %p4, %d36, %d20;",
    );
    for seed in SEEDS {
        Exchange::new(&body).run(seed).clean();
    }
    // A look that ends the wait with what was there before is claimed; one that was made again and given up is not.
    let looks = |again: &str| {
        let mut exchange = Exchange::new(&mutated("@%p4 bra POLL;", again));
        exchange.grids = vec![2];
        let stale = |seed: &u64| exchange.run(*seed).has(Rule::StaleAccept);
        SEEDS.filter(stale).count()
    };
    assert!(looks("") > 10);
    assert_eq!(looks("ld.acquire.sys.global.u64 %d36, [%d23];"), 0);
}

/// Signals of every operation in slot 0, which nobody says is one.
#[test]
fn a_signal_that_its_reader_may_still_use_is_not_to_be_overwritten() {
    let frozen = |lines: [&str; 2]| {
        lines.iter().fold(BODY.to_owned(), |body, register| {
            let line = format!("selp.b64 {register},");
            let at = body.find(&line).unwrap();
            let end = at + body[at..].find(';').unwrap();
            let kept = body[at..end].replace("%p1", "0").replace("selp", "mov");
            let [to, _, first, _] = kept.split(", ").collect::<Vec<_>>()[..] else {
                panic!("{kept}");
            };
            body.replace(&body[at..end], &format!("{to}, {first}"))
        })
    };
    let cases = [
        (RegionKind::Flag, ["%d23", "%d26"]),
        (RegionKind::Entry, ["%d22", "%d25"]),
    ];
    for (kind, registers) in cases {
        let mut exchange = Exchange::new(&frozen(registers));
        exchange
            .regions
            .iter_mut()
            .for_each(|region| region.slot = None);
        let used = |seed: u64| {
            let outcome = exchange.run(seed);
            let stuck = matches!(outcome.end, End::Stuck);
            let used = outcome.findings.iter().any(|finding| {
                let place = finding.place.as_ref().and_then(|place| place.kind);
                (finding.rule, place) == (Rule::UnorderedOverwrite, Some(kind))
                    && finding.detail == "it used the value that is overwritten"
            });
            assert!(used || stuck, "{kind:?} {seed} {}", outcome.text());
            used
        };
        assert!(SEEDS.filter(|&seed| used(seed)).count() > 5, "{kind:?}");
        // In turn they are in order, named or not.
        exchange.body = BODY.to_owned();
        exchange.run(0).clean();
    }
}

#[test]
fn a_grid_without_room_for_all_its_blocks_may_wait_for_ever() {
    let mut exchange = Exchange::new(BODY);
    exchange.grids = vec![4];
    exchange.resident = 1;
    let stuck = SEEDS.filter(|&seed| matches!(exchange.run(seed).end, End::Stuck));
    assert!(stuck.count() > 5);
}

#[test]
fn an_entry_that_is_left_out_ends_in_a_deadlock() {
    let body = mutated("st.relaxed.sys.global.v2.u64 [%d25], {%d20, %d20};", "");
    for seed in SEEDS {
        let outcome = Exchange::new(&body).run(seed);
        assert!(matches!(outcome.end, End::Stuck), "{}", outcome.text());
    }
}
