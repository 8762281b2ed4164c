//! `slabfence litmus`.

use serde_json::{Value, json};

use super::files::Folder;
use super::run::Run;

const OWN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../testdata/litmus/slabfence/expected.csv"
);

/// A load that may or may not see a store.
const TEST: &str = "PTX a test\n{x=0;}\nP0@cta 0,gpu 0 | P1@cta 0,gpu 1 ;\n\
    st.relaxed.sys x, 1 | ld.relaxed.sys r0, x ;\nexists (P1:r0 == 1)\n";

/// Runs on a folder with these files; the last one is the argument, with more arguments after it.
fn run(name: &str, files: &[(&str, &str)], more: &[&str]) -> (Run, String) {
    let folder = Folder::new(name);
    let write = |(file, text): &(&str, &str)| folder.file(file, text.as_bytes());
    let paths: Vec<String> = files.iter().map(write).collect();
    let last = paths.last().expect("a file");
    let run = Run::with(&[&["litmus", last.as_str()], more].concat());
    let shorten = |text: &str| text.replace(&folder.path(""), "");
    let err = shorten(&run.err);
    (
        Run {
            out: shorten(&run.out),
            ..run
        },
        err,
    )
}

#[track_caller]
fn refused(name: &str, files: &[(&str, &str)], said: &str) {
    let (run, err) = run(name, files, &[]);
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    assert_eq!(err, format!("slabfence: {said}\n"));
}

#[test]
fn our_own_suite_succeeds_and_lists_what_is_missed() {
    let run = Run::with(&["litmus", OWN, "--json"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    let report: Value = serde_json::from_str(&run.out).expect("one JSON object");
    let counts = [
        "tests",
        "agree",
        "unsound",
        "missed",
        "race_differs",
        "stuck_differs",
        "unknown",
        "skipped",
    ];
    assert_eq!(
        counts.map(|count| report[count].as_u64()),
        [147, 145, 0, 2, 0, 0, 0, 0].map(Some)
    );
    let files = report["differences"].as_array().expect("a list").iter();
    let files: Vec<&str> = files
        .map(|one| one["file"].as_str().expect("a name"))
        .collect();
    assert_eq!(files, ["shapes/lb.litmus", "shapes/2+2w.litmus"]);
}

#[test]
fn without_the_kernel_boundary_our_own_suite_fails() {
    let run = Run::with(&["litmus", OWN, "--without-kernel-boundary"]);
    assert_eq!(run.code, Some(1), "{}\n{}", run.out, run.err);
    let unsound = "unsound, NOT KNOWN: protocol/boundary-write.litmus: reaches what is forbidden\n";
    assert!(run.out.contains(unsound), "{}", run.out);
    assert!(run.out.ends_with("FAILED\n"), "{}", run.out);
}

#[test]
fn one_test_is_told_with_its_ends_and_races() {
    let (run, _) = run(
        "litmus-one",
        &[("t.litmus", &TEST.replace("st.relaxed.sys", "st.weak"))],
        &[],
    );
    let expected = "t.litmus (a test)\n  exists: true\n  states: 5, all explored\n  stuck: no\n  races: 2\n    \
        x: race: P0 line 4, then P1 line 4\n    x: race: P1 line 4, then P0 line 4\n  ends:\n    \
        -        P1:r0=0\n    fulfils  P1:r0=1\n";
    assert_eq!((run.code, run.out.as_str()), (Some(0), expected));
}

#[test]
fn one_test_is_told_as_json() {
    let (run, _) = run("litmus-json", &[("t.litmus", TEST)], &["--json"]);
    let mut report: Value = serde_json::from_str(&run.out).expect("one JSON object");
    report["file"] = Value::Null;
    let expected = json!({
        "ok": true, "file": null, "name": "a test", "quantifier": "exists", "holds": true, "states": 5, "complete": true,
        "stuck": false, "races": [],
        "ends": [{ "values": ["P1:r0=0"], "fulfils": false }, { "values": ["P1:r0=1"], "fulfils": true }],
    });
    assert_eq!((run.code, report), (Some(0), expected));
}

#[test]
fn a_verdict_that_differs_fails() {
    let one = |name: &str, line: &str, said: &str| {
        let (run, _) = run(name, &[("t.litmus", TEST), ("e.csv", line)], &[]);
        assert_eq!(run.code, Some(1), "{}", run.out);
        assert!(run.out.contains(said), "{}", run.out);
    };
    one(
        "litmus-unsound",
        "t.litmus,0",
        "unsound, NOT KNOWN: t.litmus: reaches what is forbidden",
    );
    one(
        "litmus-race",
        "t.litmus,1,1",
        "race differs, NOT KNOWN: t.litmus: some execution should have a race, and none does",
    );
    one(
        "litmus-stuck",
        "t.litmus,1,0,1",
        "stuck differs, NOT KNOWN: t.litmus: some execution should be stuck, and none does",
    );
}

#[test]
fn a_bound_that_is_hit_is_told_and_fails() {
    let (run, _) = run(
        "litmus-bound",
        &[("t.litmus", TEST), ("e.csv", "t.litmus,1")],
        &["--states", "1"],
    );
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(
        run.out
            .contains("unknown, NOT KNOWN: t.litmus: has more states than the bound"),
        "{}",
        run.out
    );
}

#[test]
fn what_is_beyond_the_model_is_skipped_with_its_reason() {
    let proxy = TEST.replace("ld.relaxed.sys", "ld.weak.const");
    let (run, _) = run(
        "litmus-skip",
        &[("t.litmus", &proxy), ("e.csv", "t.litmus,1")],
        &[],
    );
    assert_eq!(run.code, Some(0), "{}", run.out);
    let said = "skipped, known: t.litmus: `ld.weak.const`: proxies are not modelled";
    assert!(run.out.contains(said), "{}", run.out);
}

#[test]
fn bad_input_is_refused_in_one_line_with_its_place() {
    refused(
        "litmus-bad-test",
        &[("t.litmus", &TEST.replace("st.", "sto."))],
        "t.litmus:4:1: `sto.relaxed.sys` is not an instruction of litmus tests",
    );
    refused(
        "litmus-bad-list",
        &[("e.csv", "t.litmus;1")],
        "e.csv:1: expected `file,condition[,race[,stuck]]`",
    );
    refused(
        "litmus-absent",
        &[("e.csv", "t.litmus,1")],
        "t.litmus: No such file or directory (os error 2)",
    );
    refused(
        "litmus-listed-bad",
        &[("t.litmus", "PTX t"), ("e.csv", "t.litmus,1")],
        "t.litmus:1:6: expected `{`, found the end of the file",
    );
}
