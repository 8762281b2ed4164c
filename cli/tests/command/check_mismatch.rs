//! `slabfence check` where ranks are in different operations.

use serde_json::Value;
use slabfence_emu_mutants::{Entry, mutation, shipped};

use super::check::{object, with_ptx};

/// Both collectives by push, each as a text of its own.
fn both(text: impl Fn(&Entry) -> String) -> String {
    let entries = shipped().expect("the shipped entries").into_iter();
    let run = ["sf_gather_push", "sf_reduce_push_bf16_w2"];
    let run = entries.filter(|entry| run.contains(&entry.name));
    let texts: Vec<String> = run.map(|entry| text(&entry)).collect();
    let [first, second] = &texts[..] else {
        panic!("two entries");
    };
    let body = second.find(".visible .entry").expect("its entry");
    format!("{first}\n{}", &second[body..])
}

/// The bug hangs only where the operations use different signals, as packets will: planted with it, and in what must be clean,
/// are reductions with flags of their own.
#[test]
fn entry_lines_that_are_polled_behind_the_wait_for_data_are_found_where_ranks_differ() {
    let bug = mutation("entry-behind-data").expect("a known bug");
    let right = both(|entry| {
        let right = bug.counterpart(entry).expect("a place");
        right.expect("a counterpart").text
    });
    let (run, _) = with_ptx("check-counterpart", &right, &["--seeds", "3"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    let wrong = both(|entry| bug.plant(entry).expect("a place"));
    let (run, _) = with_ptx("check-mismatch", &wrong, &["--json"]);
    assert_eq!(run.code, Some(1), "{}\n{}", run.out, run.err);
    let report = object(&run);
    let found = report["checks"][0]["findings"].as_array().expect("a list");
    let alone = |one: &Value| {
        let expected: (Value, Value) = ("deadlock".into(), "mismatched-ranks".into());
        (&one["rule"], &one["scenario"]) == (&expected.0, &expected.1)
    };
    assert!(!found.is_empty() && found.iter().all(alone), "{found:?}");
}
