//! `slabfence check`.

use serde_json::Value;
use slabfence_emu_mutants::{mutation, shipped};

use super::files::Folder;
use super::run::Run;

const SMALL: [&str; 7] = [
    "check",
    "--op",
    "gather",
    "--transport",
    "push",
    "--world",
    "2",
];

fn shipped_gather() -> &'static str {
    slabfence_ptx::image("gather").expect("a shipped image").ptx
}

#[track_caller]
pub fn object(run: &Run) -> Value {
    serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{}\n{}", run.out, run.err))
}

/// Runs on a PTX file with more arguments; what is said of the file.
pub fn with_ptx(name: &str, text: &str, more: &[&str]) -> (Run, String) {
    let folder = Folder::new(name);
    let path = folder.file("k.ptx", text.as_bytes());
    let run = Run::with(&[&SMALL[..], &["--ptx", &path], more].concat());
    let err = run.err.replace(&path, "k.ptx");
    (run, err)
}

#[test]
fn the_shipped_kernels_are_clean_in_every_scenario() {
    let run = Run::with(&[&SMALL[..], &["--seeds", "2", "--json"]].concat());
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    let report = object(&run);
    assert_eq!(report["schema"], 1);
    assert_eq!(report["ok"], true);
    assert_eq!(report["seeds"], serde_json::json!([0, 1]));
    let checks = report["checks"].as_array().expect("a list");
    assert_eq!(checks.len(), 1);
    let line = &checks[0];
    assert_eq!(
        (&line["op"], &line["transport"]),
        (&"gather".into(), &"push".into())
    );
    // Eleven scenarios, of which three have two phases and one has three.
    assert_eq!((&line["cases"], &line["runs"]), (&11.into(), &32.into()));
    assert_eq!(
        line["forgotten"], 0,
        "nothing was beyond the checker's limits"
    );
    assert_eq!(line["findings"], serde_json::json!([]));
}

#[test]
fn a_choice_of_all_checks_every_kernel_and_both_transports() {
    let run = Run::with(&["check", "--world", "2", "--seed", "7"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    let lines: Vec<&str> = run.out.lines().collect();
    for (line, name) in
        lines
            .iter()
            .zip(["gather push", "gather pull", "reduce push", "reduce pull"])
    {
        assert!(
            line.starts_with(name) && line.ends_with(": clean"),
            "{line}"
        );
        assert!(line.contains("11 scenarios, 16 runs"), "{line}");
    }
    for (line, name) in lines[4..].iter().zip(["attention", "clock"]) {
        assert!(
            line.starts_with(name) && line.contains("ranks 1:") && line.ends_with(": clean"),
            "{line}"
        );
    }
    assert_eq!(lines[6..], ["clean"]);
}

#[test]
fn the_shipped_kernels_are_clean_where_links_carry_no_atomics() {
    let args = [
        "check",
        "--world",
        "2",
        "--seeds",
        "2",
        "--json",
        "--profile",
        "sm120-pcie",
    ];
    let run = Run::with(&args);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    let report = object(&run);
    let checks = report["checks"].as_array().expect("a list");
    let cases: Vec<&serde_json::Value> = checks.iter().map(|line| &line["cases"]).collect();
    assert_eq!(cases, [11, 11, 11, 11, 9, 1]);
    for line in checks {
        assert_eq!(line["profile"], "sm120-pcie");
        assert_eq!(line["findings"], serde_json::json!([]));
    }
}

#[test]
fn an_untouched_copy_and_an_edit_of_comments_are_clean() {
    let commented = format!("// Ours.\n{}", shipped_gather());
    for text in [shipped_gather(), &commented] {
        let (run, _) = with_ptx("check-copy", text, &["--seed", "3"]);
        assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
        assert!(run.out.ends_with("clean\n"), "{}", run.out);
    }
}

#[test]
fn a_planted_bug_is_found_with_its_place_and_its_seed_finds_it_again() {
    let entries = shipped().expect("the shipped entries");
    let entry = entries.iter().find(|entry| entry.name == "sf_gather_push");
    let bug = mutation("flag-poll-relaxed").expect("a known bug");
    let text = bug.plant(entry.expect("a shipped entry")).expect("a place");
    let (run, _) = with_ptx("check-bug", &text, &["--json"]);
    assert_eq!(run.code, Some(1), "{}\n{}", run.out, run.err);
    let report = object(&run);
    assert_eq!(report["ok"], false);
    let of = |report: &Value| report["checks"][0]["findings"].as_array().cloned();
    let found = of(&report).expect("a list");
    let race = found.iter().find(|one| one["rule"] == "race");
    let race = race.expect("a race");
    let sides = [&race["earlier"], &race["later"]];
    for side in sides {
        assert_eq!(side["kernel"], "sf_gather_push");
        let line = side["ptx_line"].as_u64().expect("a line") as usize;
        let instruction = text.lines().nth(line - 1).expect("a line of the text");
        let access = side["access"].as_str().expect("words");
        let verb = if access.contains("store") {
            "st."
        } else {
            "ld."
        };
        assert!(instruction.contains(verb), "{access}: {instruction}");
        assert!(side["rank"].is_u64() && side["cta"].is_array() && side["lane"].is_u64());
        assert!(
            side["synchronised"]
                .as_str()
                .is_some_and(|words| !words.is_empty())
        );
    }
    assert!(
        race["region"]["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("inbox (slot "))
    );
    assert!(
        race["repair"]
            .as_str()
            .is_some_and(|words| words.contains("poll it with acquire"))
    );
    let seed = race["seed"].to_string();
    let replay = race["replay"].as_str().expect("a command");
    assert!(
        replay.starts_with(&format!(
            "slabfence check --op gather --transport push --world 2 --seed {seed} --ptx "
        )),
        "{replay}"
    );
    let (again, _) = with_ptx("check-again", &text, &["--json", "--seed", &seed]);
    assert_eq!(again.code, Some(1), "{}\n{}", again.out, again.err);
    let again = of(&object(&again)).expect("a list");
    let same = |one: &&Value| {
        [
            "rule", "scenario", "seed", "detail", "region", "earlier", "later",
        ]
        .iter()
        .all(|key| one[key] == race[key])
    };
    assert!(again.iter().any(|one| same(&one)), "{again:?}");
}

#[test]
fn findings_name_memory_and_operations_and_print_no_addresses() {
    let entries = shipped().expect("the shipped entries");
    let entry = entries.iter().find(|entry| entry.name == "sf_gather_push");
    let plant = |bug| {
        let bug = mutation(bug).expect("a known bug");
        bug.plant(entry.expect("a shipped entry")).expect("a place")
    };
    let (run, _) = with_ptx("check-names", &plant("flag-poll-relaxed"), &["--seed", "1"]);
    for words in [
        "race at inbox (slot A, source ",
        ") of rank ",
        ", operation 2 of device 1, `sf_gather_push` CTA 0 warp 0 lane 0, PTX line ",
    ] {
        assert!(run.out.contains(words), "{words}\n{}", run.out);
    }
    // Device addresses are host addresses: they have twelve digits.
    let long = |out: &str| {
        let hex = |rest: &str| rest.chars().take_while(char::is_ascii_hexdigit).count() > 8;
        out.split("0x").skip(1).any(hex)
    };
    assert!(!long(&run.out), "{}", run.out);
    let (run, _) = with_ptx(
        "check-stuck",
        &plant("entry-omitted"),
        &["--seed", "1", "--json"],
    );
    let report = object(&run);
    let found = report["checks"][0]["findings"].as_array().expect("a list");
    let stuck = found.iter().find(|one| one["rule"] == "deadlock");
    let waits = stuck.expect("a deadlock")["waits"]
        .as_array()
        .expect("a list");
    let words = "polls entry line (slot A, source 1) of rank 0, + 0 (PTX line ";
    let said = |wait: &Value| wait["words"].as_str().expect("words").to_owned();
    let wait = waits.iter().find(|wait| said(wait).contains(words));
    let wait = wait.unwrap_or_else(|| panic!("{waits:?}"));
    let waiter = said(wait);
    for words in [
        "rank 0, operation ",
        "`sf_gather_push` CTA 0 warp 8 lane 1, PTX line ",
        "expects 0x2, saw 0x0, holds 0x0; rank 1 may write it, in operation ",
    ] {
        assert!(waiter.contains(words), "{words}\n{waiter}");
    }
    assert_eq!((&wait["rank"], &wait["on"]), (&0.into(), &"poll".into()));
    assert_eq!(
        (&wait["warp"], &wait["lanes"]),
        (&8.into(), &serde_json::json!([1]))
    );
    let poll = &wait["polls"][0];
    assert_eq!(poll["region"], "entry line (slot A, source 1) of rank 0");
    let values = ["offset", "expected", "seen", "current"].map(|key| poll[key].as_u64());
    assert_eq!(values, [Some(0), Some(2), Some(0), Some(0)]);
    let writers = poll["writers"].as_array().expect("a list");
    assert_eq!(
        writers.len(),
        1,
        "the source alone writes the line: {writers:?}"
    );
    assert_eq!(writers[0]["rank"], 1);
    assert!(!long(&run.out), "{}", run.out);
}

#[test]
fn a_kernel_that_faults_is_found_and_told_without_noise() {
    let entry = shipped_gather().find(".visible .entry sf_gather_push");
    let (head, body) = shipped_gather().split_at(entry.expect("the entry"));
    let bad = "mov.u64 %rd1, 64; st.global.u64 [%rd1], %rd1; ret;";
    let text = format!("{head}{}", body.replacen("ret;", bad, 1));
    let (run, err) = with_ptx("check-fault", &text, &["--seed", "0"]);
    assert_eq!((run.code, err.as_str()), (Some(1), ""), "{}", run.out);
    assert!(
        run.out.contains("out-of-bounds at no memory") && run.out.contains("nothing is at 0x40"),
        "{}",
        run.out
    );
    assert!(
        run.out.contains("store of 8 bytes that faulted by rank "),
        "{}",
        run.out
    );
    assert!(!run.out.contains("fault: "), "it is told once: {}", run.out);
    assert!(
        run.out.contains("left out after others failed"),
        "{}",
        run.out
    );
}

#[test]
fn ptx_that_is_not_accepted_is_refused_with_its_place() {
    let refused = |name: &str, text: &str, said: &str| {
        let (run, err) = with_ptx(name, text, &[]);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{err}");
        assert_eq!(err, format!("slabfence: k.ptx: {said}\n"));
    };
    refused(
        "check-garbage",
        "garbage\n",
        "the PTX text is not accepted: line 1: expected `.version`, found `garbage`",
    );
    let at = |line: &&str| line.contains("ld.acquire.sys");
    let line = 1 + shipped_gather()
        .lines()
        .position(|line| at(&line))
        .expect("a poll");
    refused(
        "check-opcode",
        &shipped_gather().replace("ld.acquire.sys", "ldd.acquire.sys"),
        &format!(
            "the PTX text is not accepted: line {line}: `ldd.acquire.sys.global.u64`: opcode `ldd` is not supported"
        ),
    );
    let entry = ".param .align 8 .b8 sf_gather_push_param_0[1656]";
    let line = 1 + shipped_gather()
        .lines()
        .position(|line| line.contains(".visible .entry sf_gather_push"))
        .expect("the entry");
    assert_eq!(shipped_gather().matches(entry).count(), 1);
    refused(
        "check-parameters",
        &shipped_gather().replace(entry, &entry.replace("1656", "1664")),
        &format!(
            "line {line}: entry `sf_gather_push` has parameters of 1664 bytes, the shipped one of 1656 bytes"
        ),
    );
    for (name, directive, said) in [
        (
            "check-few-threads",
            ".maxntid 32, 1, 1",
            "takes at most 32 threads a block (.maxntid), the shipped one is launched with 288",
        ),
        (
            "check-other-threads",
            ".reqntid 256, 1, 1",
            "takes 256 threads a block (.reqntid), the shipped one is launched with 288",
        ),
    ] {
        let shipped = shipped_gather();
        refused(
            name,
            &shipped.replacen(".maxntid 288, 1, 1", directive, 1),
            &format!("line {line}: entry `sf_gather_push` {said}"),
        );
    }
    let other =
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry other()\n{\n\tret;\n}\n";
    let newer = shipped_gather();
    let number = newer.lines().position(|line| line.starts_with(".version"));
    let version = newer.lines().find(|line| line.starts_with(".version"));
    refused(
        "check-version",
        &newer.replace(version.expect("a version"), ".version 99.0"),
        &format!(
            "the PTX text is not accepted: line {}: PTX .version 99.0: this driver takes up to 9.0",
            number.expect("a version") + 1
        ),
    );
    refused(
        "check-other",
        other,
        "it defines no entry that is run here, only other",
    );
    refused(
        "check-none",
        ".version 7.0\n.target sm_80\n.address_size 64\n",
        "it defines no entry",
    );
}

#[test]
fn wrong_use_is_refused() {
    for args in [
        &["check", "--op", "scatter"][..],
        &["check", "--transport", "smoke"],
        &["check", "--world", "1"],
        &["check", "--world", "17"],
        &["check", "--seeds", "0"],
        &["check", "--seeds", "1000001"],
        &["check", "--seeds", "18446744073709551615"],
        &["check", "--resident", "0"],
        &["check", "--profile", "h300"],
        &["check", "--seeds", "2", "--seed", "1"],
        &["check", "--ptx", "/nonexistent/k.ptx"],
    ] {
        let run = Run::with(args);
        assert_eq!(run.code, Some(2), "{args:?}: {}", run.err);
        assert_eq!(run.out, "", "{args:?}");
    }
}
