//! The PTX that is shipped, and what one wrong word in it leads to.

use crate::support::shipped::{Collective, all};
use slabfence::layout::{Cause, split_verdict};
use slabfence_emu_check::Rule;

#[test]
fn shipped_collectives_are_clean() {
    for world in [2, 3] {
        for collective in all(world) {
            let streams = collective.streams();
            for seed in 0..5 {
                collective.run(&streams, seed).clean();
            }
        }
    }
}

#[test]
fn shipped_collectives_need_no_assumption_while_every_block_signals() {
    // The flags of operation k + 1 are released behind the end of k. The entry lines alone would need it.
    for mut collective in all(2) {
        collective.options.kernel_boundary = false;
        collective.run(&collective.streams(), 0).clean();
    }
}

#[test]
fn operations_that_give_up_are_clean() {
    for mut collective in all(3) {
        collective.absent = 2;
        collective.fail_ticks = 10_000;
        collective.grids = vec![2, 2];
        let streams = collective.streams();
        for seed in 0..3 {
            let (outcome, verdicts) = collective.run_to_verdicts(&streams, seed);
            outcome.clean();
            assert!(
                verdicts.iter().all(|verdict| *verdict != 0),
                "{verdicts:x?}"
            );
        }
    }
}

/// Without a fail threshold: nothing but the tags ends the waits.
#[test]
fn ranks_that_disagree_are_told_although_a_third_never_comes() {
    for mut collective in all(3) {
        collective.absent = 2;
        collective.grids = vec![2];
        let mut streams = collective.streams();
        let there = Collective {
            tag: !collective.tag,
            ..collective.clone()
        };
        streams[1] = there.streams().remove(1);
        for seed in 0..3 {
            let (outcome, verdicts) = collective.run_to_verdicts(&streams, seed);
            outcome.clean();
            let causes = verdicts.iter().map(|&verdict| split_verdict(verdict));
            let causes: Vec<_> = causes.map(|split| split.map(|(cause, _)| cause)).collect();
            let told = |cause: &Option<Cause>| {
                matches!(
                    cause,
                    Some(Cause::TagMismatch | Cause::PeerFailed | Cause::Skipped)
                )
            };
            assert!(causes.iter().all(told), "{causes:?}");
            assert!(causes.contains(&Some(Cause::TagMismatch)), "{causes:?}");
        }
    }
}

/// Every seed finds the rule in every collective.
fn finds(rule: Rule, from: &str, to: &str) {
    for collective in all(2) {
        let collective = collective.mutated(from, to);
        let streams = collective.streams();
        for seed in 0..3 {
            let outcome = collective.run(&streams, seed);
            assert!(
                outcome.has(rule),
                "{} {:?}",
                collective.entry,
                outcome.rules()
            );
        }
    }
}

#[test]
fn mutations_of_shipped_kernels_are_found() {
    finds(
        Rule::Race,
        "ld.acquire.sys.global.u64",
        "ld.relaxed.sys.global.u64",
    );
    finds(
        Rule::Race,
        "ld.acquire.sys.global.u64",
        "ld.acquire.gpu.global.u64",
    );
    finds(
        Rule::Race,
        "ld.acquire.sys.global.u64",
        "ld.volatile.global.u64",
    );
    finds(
        Rule::WeakSignal,
        "ld.acquire.sys.global.u64",
        "ld.global.u64",
    );
    finds(Rule::Race, "fence.acq_rel.sys;", "");
    finds(Rule::Race, "fence.acq_rel.sys;", "fence.acq_rel.gpu;");
    finds(
        Rule::UnorderedOverwrite,
        "atom.add.acq_rel.gpu",
        "atom.add.relaxed.gpu",
    );
    finds(Rule::WrongSlot, "setp.ne.u32 odd", "setp.eq.u32 odd");
}
