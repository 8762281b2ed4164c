//! Bugs that a scenario of `slabfence check` is there for: no other shows them.

use serde_json::Value;
use slabfence_emu_mutants::{mutation, shipped};

use super::check::{object, with_ptx};

/// What one seed finds of a bug in the gather by push: rules with scenarios.
fn found(bug: &str) -> Vec<(String, String)> {
    let entries = shipped().expect("the shipped entries");
    let entry = entries.iter().find(|entry| entry.name == "sf_gather_push");
    let mutation = mutation(bug).expect("a known bug");
    let text = mutation.plant(entry.expect("a shipped entry"));
    let folder = format!("check-{bug}");
    let (run, _) = with_ptx(&folder, &text.expect("a place"), &["--seed", "3", "--json"]);
    assert_eq!(run.code, Some(1), "{bug}: {}\n{}", run.out, run.err);
    let report = object(&run);
    let findings = report["checks"][0]["findings"].as_array().expect("a list");
    let words = |one: &Value, key: &str| one[key].as_str().expect("words").to_owned();
    let of = |one| (words(one, "rule"), words(one, "scenario"));
    findings.iter().map(of).collect()
}

/// Whether a bug shows in one scenario and nowhere else, there by this rule.
#[track_caller]
fn only(bug: &str, scenario: &str, rule: &str) {
    let found = found(bug);
    assert!(
        found.iter().all(|(_, of)| of == scenario),
        "{bug}: {found:?}"
    );
    assert!(found.iter().any(|(by, _)| by == rule), "{bug}: {found:?}");
}

#[test]
fn signals_of_2_to_the_32_operations_ago_are_not_taken_for_new_ones() {
    for bug in ["flag-low-half", "entry-low-half"] {
        only(bug, "epoch-2^32", "stale-accept");
    }
}

#[test]
fn poison_that_one_of_the_waits_does_not_look_at_is_found() {
    // The other wait of the same CTA sees it.
    only("poison-unseen-for-entries", "poison-and-reset", "deadlock");
    // Of other ranks' operations the data never comes either.
    let found = found("poison-unseen-for-data");
    assert!(
        found.iter().all(|(rule, _)| rule == "deadlock"),
        "{found:?}"
    );
}

#[test]
fn poison_that_a_kernel_does_not_look_at_when_it_begins_is_found() {
    // It enters, and finds the poison when it waits.
    only("poison-unseen-at-start", "poison-and-reset", "wrong-result");
}

#[test]
fn poison_that_is_stored_or_looked_at_with_the_scope_of_one_gpu_is_found() {
    for bug in [
        "poison-start-gpu",
        "poison-poll-gpu-for-data",
        "poison-poll-gpu-for-entries",
        "poison-store-gpu",
    ] {
        only(bug, "poison-and-reset", "race");
    }
}

#[test]
fn a_failed_output_of_which_only_the_first_ctas_part_is_filled_is_found() {
    only("fill-by-one-cta", "poison-and-reset", "wrong-result");
}
