//! `slabfence check --scenario`: the examples, memory that nobody has written, outputs that are expected, files that are
//! refused with their line.

use serde_json::Value;

use super::check::object;
use super::files::Folder;
use super::run::Run;
use super::scenarios::{SHARED, access};

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
pub(super) fn stored(name: &str, this: &str, that: &str) -> (Run, String) {
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
fn shared_memory_that_a_kernel_has_itself_counts() {
    let folder = Folder::new("check-shared");
    let large = STORE_PTX.replacen("{\n", "{\n\t.shared .align 4 .b8 room[60000];\n", 1);
    assert_ne!(large, STORE_PTX);
    folder.file("k.ptx", large.as_bytes());
    let path = folder.file("s.toml", STORE.as_bytes());
    let run = Run::with(&["check", "--seeds", "2", "--scenario", &path]);
    assert_eq!(run.code, Some(2), "{}", run.err);
    let said = "line 10: 0 bytes of shared memory, and 60000 that kernel `store` has itself; a block has at most 49152 here";
    assert!(run.err.contains(said), "{}", run.err);
}

#[test]
fn a_file_that_is_no_text_is_refused_with_the_line() {
    let folder = Folder::new("check-bytes");
    let path = folder.file("s.toml", b"ptx = \"k.ptx\"\nranks = \xff\n");
    let run = Run::with(&["check", "--scenario", &path]);
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(
        run.err.contains("line 2: no UTF-8 text from byte 22 on"),
        "{}",
        run.err
    );
}

#[test]
fn a_text_with_a_nul_is_refused_with_its_name_and_line() {
    let folder = Folder::new("check-nul");
    folder.file(
        "k.ptx",
        STORE_PTX.replacen("ret;", "ret; //\0", 1).as_bytes(),
    );
    let path = folder.file("s.toml", STORE.as_bytes());
    let run = Run::with(&["check", "--scenario", &path]);
    let line = 1 + STORE_PTX[..STORE_PTX.find("ret;").expect("an end")]
        .matches('\n')
        .count();
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{}", run.err);
    let said = format!("k.ptx`: line {line}: a NUL in the text\n");
    assert!(
        run.err.contains("s.toml: line 1: ") && run.err.ends_with(&said),
        "{}",
        run.err
    );
}

#[test]
fn a_finding_is_replayed_by_what_a_shell_reads_wherever_the_file_is() {
    let folder = Folder::new("check-it's $(here)");
    folder.file("k.ptx", access("st.global.u32 [%x+64], 7;").as_bytes());
    let path = folder.file("s.toml", SHARED.replace("MAPPED", "").as_bytes());
    let run = Run::with(&["check", "--seeds", "1", "--scenario", &path]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    let replay = run
        .out
        .lines()
        .find_map(|line| line.trim().strip_prefix("replay: slabfence "));
    let script = format!("printf '%s\\n' {}", replay.expect("a command"));
    let echo = std::process::Command::new("bash")
        .args(["-c", &script])
        .output();
    let words = String::from_utf8(echo.expect("a shell").stdout).expect("text");
    let words: Vec<&str> = words.lines().collect();
    assert_eq!(words, ["check", "--scenario", &path, "--seed", "0"]);
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
        "line 9: unknown field `sleep`, expected one of `rank`, `stream`, `times`, `launch`, `replay`, `fill`, `copy`, `record`, `wait`",
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
        "check-s16",
        "grid = 1",
        "grid = [1, 1]",
        "line 11: expected a number or three, like 4 or [2, 1, 1]",
    );
    refused(
        "check-s17",
        "owner = 0\n",
        "owner = 0\ntag = \"flag\"\nwriter = \"foo\"\n",
        "line 8: a writer is a rank or \"lines\"",
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
        "line 8: a step has one of `launch`, `replay`, `fill`, `copy`, `record` and `wait`",
    );
    refused(
        "check-s14",
        "owner = 0\n",
        "owner = 0\ntag = \"signals\"\nwriter = 0\n",
        "line 8: a `writer` goes with the tags `flag`, `packets` and `staging`",
    );
    refused(
        "check-s15",
        "owner = 0\n",
        "owner = 0\n[[buffer.part]]\nname = \"p\"\noffset = 4\nsize = 5\n",
        "line 10: 5 bytes from 4 on in a buffer of 8",
    );
    let near = [
        ("flags", "flag"),
        ("Flag", "flag"),
        ("epoc", "epoch"),
        (" ticket", "ticket"),
        ("packet", "packets"),
        ("dat", "data"),
    ];
    for (number, (tag, kind)) in near.iter().enumerate() {
        refused(
            &format!("check-near-{number}"),
            "owner = 0\n",
            &format!("owner = 0\ntag = \"{tag}\"\n"),
            &format!(
                "line 7: the tag `{tag}` is nearly `{kind}`, whose rules do not hold for it; say `{kind}`, or name the memory by other words"
            ),
        );
    }
    refused(
        "check-s8",
        "{ words = [7, 0] }",
        "\"unwritten\"",
        "line 16: nothing can be expected of unwritten bytes",
    );
}
