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
    // Ten scenarios, of which two have two phases.
    assert_eq!((&line["cases"], &line["runs"]), (&10.into(), &24.into()));
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
        assert!(line.contains("10 scenarios, 12 runs"), "{line}");
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
    assert_eq!(cases, [10, 10, 10, 10, 9, 1]);
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

const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/scenarios/");

#[test]
fn the_examples_of_scenarios_are_found_or_clean_as_documented() {
    let of = |name: &str| {
        let path = format!("{SCENARIOS}{name}.toml");
        let run = Run::with(&["check", "--json", "--scenario", &path]);
        let report = object(&run);
        let list = report["checks"][0]["findings"].as_array().cloned();
        let found = list.expect("a list").into_iter().map(|one| {
            let word = |value: &Value| value.as_str().expect("a word").to_owned();
            (word(&one["rule"]), word(&one["region"]["name"]))
        });
        (
            run.code,
            report["checks"][0]["runs"].as_u64(),
            found.collect::<Vec<_>>(),
        )
    };
    let (code, _, found) = of("pairwise_barrier");
    assert_eq!(code, Some(1));
    let race = |(rule, region): &(String, String)| rule == "race" && region.contains("(staging)");
    assert!(!found.is_empty() && found.iter().all(race), "{found:?}");
    assert_eq!(
        of("pairwise_barrier_repaired"),
        (Some(0), Some(20), Vec::new())
    );
    let (code, _, found) = of("host_slot_odd_graph");
    assert_eq!(code, Some(1));
    assert!(!found.is_empty() && found.iter().all(race), "{found:?}");
    assert_eq!(of("host_slot_even_graph"), (Some(0), Some(20), Vec::new()));
    let (code, _, found) = of("device_counter");
    assert_eq!(code, Some(1));
    let counter = (
        "gpu-scope-peer-atomic".to_owned(),
        "buffer `counter` (calls so far)".to_owned(),
    );
    assert!(found.contains(&counter), "{found:?}");
}

/// A scenario of one rank that stores the low word of its second argument to its first.
const STORE: &str = r#"ptx = "k.ptx"
ranks = 1
[[buffer]]
name = "to"
size = 8
owner = 0
[[step]]
rank = 0
[step.launch]
kernel = "store"
grid = 1
block = 1
arguments = [{ buffer = "to" }, { u32 = 7 }]
[[expect]]
buffer = "to"
contents = { words = [7, 0] }
"#;

const STORE_PTX: &str = ".version 7.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 to, .param .u32 word)
.maxntid 32, 1, 1
{
    .reg .b64 %to;
    .reg .b32 %word;
    ld.param.u64 %to, [to];
    ld.param.u32 %word, [word];
    st.global.u32 [%to], %word;
    ret;
}
";

/// A scenario of one rank that copies a word of one buffer to another.
const COPY: &str = r#"ptx = "k.ptx"
ranks = 2
[[buffer]]
name = "from"
size = 64
owner = 0
tag = "rows"
initial = "unwritten"
[[buffer]]
name = "to"
size = 8
owner = 0
[[step]]
rank = 0
[step.launch]
kernel = "copy"
grid = 1
block = 1
arguments = [{ at = { buffer = "from", offset = 32 } }, { buffer = "to" }]
"#;

const COPY_PTX: &str = ".version 7.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to)
{
    .reg .b64 %from, %to, %word;
    ld.param.u64 %from, [from];
    ld.param.u64 %to, [to];
    ld.global.u64 %word, [%from];
    st.global.u64 [%to], %word;
    ret;
}
";

#[test]
fn a_scenario_finds_loads_of_what_nobody_has_written() {
    let folder = Folder::new("check-unwritten");
    folder.file("k.ptx", COPY_PTX.as_bytes());
    let with = |initial: &str, mapped: &str, offset: &str| {
        let text = COPY
            .replace("initial = \"unwritten\"\n", initial)
            .replace("tag =", &format!("{mapped}tag ="))
            .replace("offset = 32", offset);
        let path = folder.file("s.toml", text.as_bytes());
        let run = Run::with(&["check", "--seeds", "2", "--scenario", &path, "--json"]);
        let list = object(&run)["checks"][0]["findings"].clone();
        let list = list.as_array().cloned().expect("a list");
        let found = list.iter().map(|one| {
            let region = &one["region"];
            (
                one["rule"].clone(),
                region["name"].clone(),
                region["offset"].clone(),
            )
        });
        found.collect::<Vec<_>>()
    };
    let rows = (
        "uninitialised".into(),
        "buffer `from` (rows)".into(),
        32.into(),
    );
    let unwritten = "initial = \"unwritten\"\n";
    let mapped = "mapped = [1]\n";
    for mapped in ["", mapped] {
        let found = with(unwritten, mapped, "offset = 32");
        assert_eq!(found, std::slice::from_ref(&rows));
    }
    assert_eq!(with("", "", "offset = 32"), []);
    assert_eq!(with("", mapped, "offset = 32"), []);
    // A mapping has whole pages, and the buffer has not.
    let past = with("", mapped, "offset = 64");
    assert_eq!(past.len(), 1);
    assert_eq!(past[0].0, "out-of-bounds");
}

/// Runs the scenario with this in place of that; what is said of the file.
fn stored(name: &str, this: &str, that: &str) -> (Run, String) {
    let folder = Folder::new(name);
    folder.file("k.ptx", STORE_PTX.as_bytes());
    assert_eq!(STORE.matches(this).count(), 1, "{this}");
    let path = folder.file("s.toml", STORE.replace(this, that).as_bytes());
    let run = Run::with(&["check", "--seeds", "2", "--scenario", &path]);
    let err = run.err.replace(&folder.path(""), "");
    (run, err)
}

#[test]
fn a_scenario_is_compared_with_what_it_expects() {
    let (run, err) = stored("check-right", "u32 = 7", "u32 = 7");
    assert_eq!((run.code, err.as_str()), (Some(0), ""), "{}", run.out);
    let (run, _) = stored("check-wrong", "u32 = 7", "u32 = 8");
    assert_eq!(run.code, Some(1), "{}", run.out);
    let said = "byte 0 of buffer `to` is 0x08, not 0x07";
    assert!(
        run.out.contains("wrong-result") && run.out.contains(said),
        "{}",
        run.out
    );
    let (run, _) = stored("check-outside", "size = 8", "size = 2");
    assert_eq!(
        run.code,
        Some(2),
        "what is expected does not fit: {}",
        run.out
    );
}

#[test]
fn bad_ptx_of_a_scenario_is_refused_with_its_line() {
    let refused = |name: &str, this: &str, that: &str, said: &str| {
        let folder = Folder::new(name);
        assert_eq!(STORE_PTX.matches(this).count(), 1, "{this}");
        folder.file("k.ptx", STORE_PTX.replace(this, that).as_bytes());
        let path = folder.file("s.toml", STORE.as_bytes());
        let run = Run::with(&["check", "--scenario", &path]);
        let err = run.err.replace(&folder.path(""), "");
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{err}");
        let said = format!("slabfence: k.ptx: the PTX text is not accepted: {said}\n");
        assert_eq!(err, said);
    };
    refused(
        "check-p1",
        ".version 7.0",
        "// Ours.\n.version 99.0",
        "line 2: PTX .version 99.0: this driver takes up to 9.0",
    );
    refused(
        "check-p2",
        "sm_80",
        "sm_103",
        "line 2: PTX .target sm_103 does not run on sm_90",
    );
    refused(
        "check-p3",
        "st.global.u32",
        "stt.global.u32",
        "line 11: `stt.global.u32`: opcode `stt` is not supported",
    );
}

#[test]
fn bad_scenarios_are_refused_with_their_line() {
    let refused = |name: &str, this: &str, that: &str, said: &str| {
        let (run, err) = stored(name, this, that);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{err}");
        assert_eq!(err, format!("slabfence: s.toml: {said}\n"));
    };
    refused(
        "check-s1",
        "{ buffer = \"to\" }",
        "{ buffer = \"two\" }",
        "line 13: there is no buffer `two`",
    );
    refused(
        "check-s2",
        "\"store\"",
        "\"stare\"",
        "line 10: the PTX has no kernel `stare`",
    );
    refused(
        "check-s3",
        ", { u32 = 7 }",
        "",
        "line 13: 1 arguments for the 2 parameters of kernel `store`",
    );
    refused(
        "check-s4",
        "u32 = 7",
        "u64 = 7",
        "line 13: 8 bytes for parameter `word` of kernel `store`, which has 4",
    );
    refused(
        "check-s5",
        "owner = 0",
        "owner = 1",
        "line 6: there is no rank 1 of 1",
    );
    refused(
        "check-s6",
        "[step.launch]",
        "sleep = 1\n[step.launch]",
        "line 9: unknown field `sleep`, expected one of `rank`, `stream`, `times`, `launch`, `replay`, `record`, `wait`",
    );
    refused(
        "check-s7",
        "\"k.ptx\"",
        "3",
        "line 1: invalid type: integer `3`, expected a string",
    );
    refused(
        "check-s9",
        "block = 1",
        "block = 1\nshared = 99999999",
        "line 13: 99999999 bytes of shared memory, and 0 that kernel `store` has itself; a block has at most 49152 here",
    );
    refused(
        "check-s10",
        "block = 1",
        "block = 64",
        "line 10: the device refuses to launch `store`: CUDA_ERROR_INVALID_VALUE",
    );
    refused(
        "check-s11",
        "ranks = 1",
        "ranks = 1\nprofile = \"h300\"",
        "line 3: there is no profile `h300`, only h200-nvlink, sm120-pcie",
    );
    refused(
        "check-s12",
        "[[step]]",
        "[[step]]\nrank = 0\nwait = \"e\"\n[[step]]",
        "line 9: no step before this one records event `e`",
    );
    refused(
        "check-s13",
        "[step.launch]",
        "record = \"e\"\n[step.launch]",
        "line 8: a step has one of `launch`, `replay`, `record` and `wait`",
    );
    refused(
        "check-s14",
        "owner = 0\n",
        "owner = 0\ntag = \"flags\"\nwriter = 0\n",
        "line 8: a `writer` goes with the tags `flag`, `packets` and `staging`",
    );
    refused(
        "check-s15",
        "owner = 0\n",
        "owner = 0\n[[buffer.part]]\nname = \"p\"\noffset = 4\nsize = 5\n",
        "line 10: 5 bytes from 4 on in a buffer of 8",
    );
    refused(
        "check-s8",
        "{ words = [7, 0] }",
        "\"unwritten\"",
        "line 16: nothing can be expected of unwritten bytes",
    );
}
