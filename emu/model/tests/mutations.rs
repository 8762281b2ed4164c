//! A rule of the model that is taken away changes verdicts: the tests would notice its loss.

mod common;

use common::{files, judge, own};
use slabfence_emu_model::Rules;

/// Our tests whose verdict is another one under `rules`.
fn changed(rules: Rules) -> Vec<String> {
    let judged = judge(&own("expected.csv"), rules);
    let changed = files(&judged, |judgement| !judgement.is_accepted());
    changed.into_iter().map(str::to_owned).collect()
}

#[test]
fn without_scopes_everything_reaches_everything() {
    let rules = Rules {
        scopes: false,
        ..Rules::ASSUMED
    };
    let expected = [
        "shapes/mp-reader-fence-narrow.litmus",
        "shapes/mp-writer-fence-narrow.litmus",
        "shapes/mp-cta-across-ctas.litmus",
        "shapes/mp-gpu-across-gpus.litmus",
        "shapes/mp-acquire-narrow.litmus",
        "shapes/mp-release-narrow.litmus",
        "shapes/mp-host-narrow.litmus",
        "shapes/mp-two-releases.litmus",
        "shapes/chain-narrow.litmus",
        "shapes/transitive-atom.litmus",
        "shapes/observed-narrow.litmus",
        "shapes/sb-sc-narrow.litmus",
        "shapes/atom-cta.litmus",
        "shapes/atom-default-scope.litmus",
        "protocol/push-fence-gpu.litmus",
        "protocol/push-poll-gpu.litmus",
        "protocol/push-flag-gpu.litmus",
        "protocol/reuse-entry-gpu.litmus",
        "protocol/ticket-cta.litmus",
    ];
    assert_eq!(changed(rules), expected);
}

#[test]
fn without_chains_an_update_of_a_flag_hides_its_release() {
    let rules = Rules {
        chains: false,
        ..Rules::ASSUMED
    };
    let expected = [
        "shapes/chain-atom.litmus",
        "shapes/chain-red.litmus",
        "shapes/chain-acquired-by-cta.litmus",
        "shapes/observed-chain.litmus",
    ];
    assert_eq!(changed(rules), expected);
}

#[test]
fn without_fences_relaxed_flags_never_synchronise() {
    let rules = Rules {
        fences: false,
        ..Rules::ASSUMED
    };
    let expected = [
        "shapes/mp-fences.litmus",
        "shapes/mp-fence-release-load-acquire.litmus",
        "shapes/mp-release-fence-acquire.litmus",
        "shapes/mp-fence-halves.litmus",
        "shapes/mp-volatile-membar.litmus",
        "shapes/chain-acquired-by-cta.litmus",
        "shapes/atom-fence.litmus",
        "shapes/sb-sc.litmus",
        "shapes/sb-sc-strong.litmus",
        "shapes/iriw-sc.litmus",
        "shapes/sc-acquired-by-cta.litmus",
        "protocol/push-poll-relaxed-fence.litmus",
        "protocol/push-fence.litmus",
    ];
    assert_eq!(changed(rules), expected);
}

#[test]
fn without_the_order_of_sc_fences_stores_are_buffered() {
    let rules = Rules {
        sc_order: false,
        ..Rules::ASSUMED
    };
    let expected = [
        "shapes/sb-sc.litmus",
        "shapes/sb-sc-strong.litmus",
        "shapes/iriw-sc.litmus",
        "shapes/sc-acquired-by-cta.litmus",
    ];
    assert_eq!(changed(rules), expected);
}

#[test]
fn without_barriers_threads_of_a_block_are_not_ordered() {
    let rules = Rules {
        barriers: false,
        ..Rules::ASSUMED
    };
    let expected = [
        "shapes/observed-passed-on.litmus",
        "shapes/bar-sync.litmus",
        "shapes/bar-release.litmus",
        "shapes/bar-arrive.litmus",
        "protocol/push-fence.litmus",
        "protocol/ticket-threads.litmus",
    ];
    assert_eq!(changed(rules), expected);
}

#[test]
fn without_coherence_strong_reads_go_back_in_time() {
    let rules = Rules {
        coherence: false,
        ..Rules::ASSUMED
    };
    let expected = [
        "shapes/corr-strong.litmus",
        "shapes/coww.litmus",
        "shapes/corr-two-readers.litmus",
        "shapes/iriw-sc.litmus",
    ];
    assert_eq!(changed(rules), expected);
}
