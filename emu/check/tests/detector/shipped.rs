//! The PTX that is shipped, and what one wrong word in it leads to.

use crate::support::shipped::all;
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
    finds(
        Rule::Race,
        "st.release.sys.global.u64",
        "st.relaxed.sys.global.u64",
    );
    finds(
        Rule::Race,
        "st.release.sys.global.u64",
        "st.release.gpu.global.u64",
    );
    finds(
        Rule::UnorderedOverwrite,
        "atom.add.acq_rel.gpu",
        "atom.add.relaxed.gpu",
    );
    finds(Rule::WrongSlot, "setp.ne.u32 odd", "setp.eq.u32 odd");
}
