//! What `slabfence check --scenario` finds by the tags of memory.

use serde_json::Value;

use super::files::Folder;
use super::run::Run;
use super::scenario_waits::WAIT;
use super::scenarios::{SHARED, access, found, on_shared, rules};

#[test]
fn an_ordinary_load_of_a_flag_is_found() {
    let flag = "tag = \"flag\"";
    let (code, list) = on_shared("scenario-weak", flag, "ld.global.u32 %v, [%x];");
    assert_eq!((code, rules(&list)), (Some(1), vec!["weak-signal"]));
    assert_eq!(list[0]["region"]["name"], "buffer `x` (flag)");
    let strong = on_shared(
        "scenario-strong",
        flag,
        "ld.relaxed.sys.global.u32 %v, [%x];",
    );
    assert_eq!(strong, (Some(0), Vec::new()));
    let words = on_shared(
        "scenario-words",
        "tag = \"call flags\"",
        "ld.global.u32 %v, [%x];",
    );
    assert_eq!(words, (Some(0), Vec::new()), "other tags are words");
}

/// Parts of the buffer of [`SHARED`], whose pointer leads to the second.
const PARTS: &str = "[[buffer.part]]
name = \"flags\"
offset = 0
size = 64
tag = \"flag\"
[[buffer.part]]
name = \"rows\"
offset = 64
size = 32
tag = \"staging\"";

#[test]
fn an_access_to_another_part_of_the_same_buffer_is_found() {
    let store = |offset: i32| format!("st.relaxed.sys.global.u32 [%x+{offset}], 7;");
    assert_eq!(
        on_shared("scenario-part", PARTS, &store(28)),
        (Some(0), Vec::new())
    );
    let (code, list) = on_shared("scenario-other", PARTS, &store(-4));
    assert_eq!((code, rules(&list)), (Some(1), vec!["wrong-region"]));
    assert_eq!(list[0]["region"]["name"], "`flags` of buffer `x` (flag)");
    assert_eq!(list[0]["region"]["offset"], 60);
    let (code, list) = on_shared("scenario-none", PARTS, &store(32));
    assert_eq!((code, rules(&list)), (Some(1), vec!["out-of-bounds"]));
    let theirs = format!("{PARTS}\nwriter = 1");
    let (code, list) = on_shared("scenario-writer", &theirs, &store(0));
    assert_eq!((code, rules(&list)), (Some(1), vec!["wrong-region"]));
    assert_eq!(list[0]["detail"], "rank 0 stores where rank 1 alone may");
    // The second line is rank 1's.
    let lines = "tag = \"flag\"\nwriter = \"lines\"";
    let scenario = SHARED
        .replace("MAPPED", lines)
        .replace("size = 128", "size = 256");
    let second = access(&store(64));
    let (code, list) = found("scenario-lines", &scenario, &second, &[]);
    assert_eq!((code, rules(&list)), (Some(1), vec!["wrong-region"]));
    let first = found("scenario-line", &scenario, &access(&store(0)), &[]);
    assert_eq!(first, (Some(0), Vec::new()));
}

#[test]
fn unordered_stores_to_a_flag_and_a_relaxed_ticket_are_found() {
    let store = access("st.relaxed.sys.global.u32 [%x], 7;");
    assert_eq!(
        found("scenario-two", WAIT, &store, &[]),
        (Some(0), Vec::new())
    );
    let flag = WAIT.replace("mapped = [1]", "mapped = [1]\ntag = \"flag\"");
    let (code, list) = found("scenario-flag", &flag, &store, &[]);
    assert_eq!((code, rules(&list)), (Some(1), vec!["unordered-overwrite"]));
    let ticket = SHARED
        .replace("MAPPED", "tag = \"ticket\"")
        .replace("grid = 1", "grid = 2");
    let arrive = |order: &str| {
        let body = format!(
            "atom.{order}.gpu.global.add.u32 %v, [%x], 1; setp.ne.u32 %p, %v, 1; @%p bra DONE; st.relaxed.gpu.global.u32 [%x], 0; DONE:"
        );
        found("scenario-ticket", &ticket, &access(&body), &[])
    };
    let (code, list) = arrive("relaxed");
    assert_eq!((code, rules(&list)), (Some(1), vec!["unordered-overwrite"]));
    assert_eq!(arrive("acq_rel"), (Some(0), Vec::new()));
}

/// A rank with an epoch of 4 and memory of a kind.
const EPOCH: &str = r#"ptx = "k.ptx"
ranks = 1
[[buffer]]
name = "epoch"
size = 8
owner = 0
tag = "epoch"
initial = { words = [4] }
[[buffer]]
name = "x"
size = 8
owner = 0
KIND
[[step]]
rank = 0
times = 2
[step.launch]
kernel = "access"
grid = 1
block = 1
arguments = [{ buffer = "epoch" }, { buffer = "x" }]
"#;

/// A kernel that reads its epoch, does this with it and the other memory, and counts the epoch up.
fn with_epoch(body: &str) -> String {
    let text = access(&format!(
        "ld.param.u64 %e, [e];\nld.relaxed.gpu.global.u32 %n, [%e];\n{body}\nadd.u32 %n, %n, 1;\nst.relaxed.gpu.global.u32 [%e], %n;"
    ));
    text.replace("(.param .u64 x)", "(.param .u64 e, .param .u64 x)")
        .replace(".reg .b32 %v;", ".reg .b32 %v, %n;\n.reg .b64 %e;")
}

fn on_epoch(name: &str, kind: &str, body: &str) -> (Option<i32>, Vec<Value>) {
    found(name, &EPOCH.replace("KIND", kind), &with_epoch(body), &[])
}

#[test]
fn a_wait_that_ends_on_what_another_operation_left_is_found() {
    let flag = "tag = \"flag\"";
    let wait = "LOOP: ld.acquire.sys.global.u32 %v, [%x]; setp.lt.u32 %p, %v, %n; @%p bra LOOP;";
    let store = "st.release.sys.global.u32 [%x], %n;";
    let right = on_epoch("scenario-own", flag, &format!("{store} {wait}"));
    assert_eq!(right, (Some(0), Vec::new()));
    let there = format!("{flag}\ninitial = {{ words = [9] }}");
    let (code, list) = on_epoch("scenario-stale", &there, wait);
    assert_eq!((code, rules(&list)), (Some(1), vec!["stale-accept"]));
    let words = "an operation of epoch 4 took what was there before the run";
    assert_eq!(list[0]["detail"], words);
}

#[test]
fn a_packet_that_nobody_reads_is_found_when_it_is_overwritten() {
    let packets = "tag = \"packets\"";
    let store = "cvt.u64.u32 %y, %n; shl.b64 %y, %y, 32; st.relaxed.sys.global.u64 [%x], %y;";
    let (code, list) = on_epoch("scenario-lost", packets, store);
    assert_eq!((code, rules(&list)), (Some(1), vec!["packet-lost"]));
    let read = format!("{store} ld.relaxed.sys.global.u64 %y, [%x];");
    assert_eq!(
        on_epoch("scenario-read", packets, &read),
        (Some(0), Vec::new())
    );
}

#[test]
fn a_packet_that_nobody_reads_is_found_when_a_step_fills_it() {
    let store = "cvt.u64.u32 %y, %n; shl.b64 %y, %y, 32; st.relaxed.sys.global.u64 [%x], %y;";
    let fill =
        "[[step]]\nrank = 0\nfill = { to = { buffer = \"x\", offset = 4 }, size = 2, byte = 0 }\n";
    let on = |kind: &str, body: &str| {
        let kind = EPOCH
            .replace("KIND", kind)
            .replace("times = 2", "times = 1");
        found("scenario-filled", &(kind + fill), &with_epoch(body), &[])
    };
    let (code, list) = on("tag = \"packets\"", store);
    assert_eq!((code, rules(&list)), (Some(1), vec!["packet-lost"]));
    assert_eq!(list[0]["earlier"]["kernel"], "access");
    assert_eq!(
        list[0]["later"]["access"],
        "copy or fill to it (the `fill` in line 24)"
    );
    assert_eq!(list[0]["region"]["offset"], 0);
    let read = format!("{store} ld.relaxed.sys.global.u64 %y, [%x];");
    assert_eq!(on("tag = \"packets\"", &read), (Some(0), Vec::new()));
    assert_eq!(on("", store), (Some(0), Vec::new()), "no packets");
}

#[test]
fn the_slot_of_another_epoch_is_found() {
    let load = "ld.relaxed.sys.global.u32 %v, [%x];";
    let slot = |slot: u32| {
        let kind = format!("tag = \"staging\"\nslot = {slot}");
        let (code, list) = on_epoch("scenario-slot", &kind, load);
        assert_eq!((code, rules(&list)), (Some(1), vec!["wrong-slot"]));
        list[0]["detail"].as_str().expect("words").to_owned()
    };
    assert_eq!(slot(1), "an operation of epoch 4 uses slot A, not B");
    assert_eq!(slot(0), "an operation of epoch 5 uses slot B, not A");
}

#[test]
fn two_parts_of_a_buffer_have_two_names() {
    let folder = Folder::new("scenario-parts");
    folder.file("k.ptx", access("").as_bytes());
    let parts = PARTS.replace("rows", "flags");
    let scenario = SHARED.replace("MAPPED", &parts);
    let path = folder.file("s.toml", scenario.as_bytes());
    let run = Run::with(&["check", "--scenario", &path]);
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{}", run.err);
    let said = "line 8: two parts of the buffer have this name\n";
    assert!(run.err.ends_with(said), "{}", run.err);
}
