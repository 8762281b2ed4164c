//! What `slabfence check --scenario` finds of memory that ranks share.

use serde_json::Value;

use super::files::Folder;
use super::run::Run;

/// Two ranks; buffer `x` of rank 0 has 128 bytes. `MAPPED`, `OFFSET` and the steps are put in.
const SHARED: &str = r#"ptx = "k.ptx"
ranks = 2
[[buffer]]
name = "x"
size = 128
owner = 0
MAPPED
[[step]]
rank = 0
[step.launch]
kernel = "access"
grid = 1
block = 1
arguments = [{ at = { buffer = "x", offset = 64 } }]
"#;

/// A kernel of one pointer with this body.
fn access(body: &str) -> String {
    format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry access(.param .u64 x)\n{{\n\
         .reg .b64 %x, %y;\n.reg .b32 %v;\n.reg .pred %p;\nld.param.u64 %x, [x];\n{body}\nret;\n}}\n"
    )
}

/// Runs a scenario with its text; the exit status and what was found.
#[track_caller]
fn found(name: &str, scenario: &str, ptx: &str, more: &[&str]) -> (Option<i32>, Vec<Value>) {
    let folder = Folder::new(name);
    folder.file("k.ptx", ptx.as_bytes());
    let path = folder.file("s.toml", scenario.as_bytes());
    let args = ["check", "--seeds", "3", "--json", "--scenario", &path];
    let run = Run::with(&[&args[..], more].concat());
    let report: Value = serde_json::from_str(&run.out)
        .unwrap_or_else(|_| panic!("no report: {}\n{}", run.out, run.err));
    let list = report["checks"][0]["findings"].as_array().cloned();
    (run.code, list.unwrap_or_else(|| panic!("{}", run.err)))
}

/// The rules of findings, in order.
fn rules(found: &[Value]) -> Vec<&str> {
    let rule = |one: &'_ Value| one["rule"].as_str().map(str::len).is_some();
    assert!(found.iter().all(rule), "{found:?}");
    found
        .iter()
        .filter_map(|one| one["rule"].as_str())
        .collect()
}

fn on_shared(name: &str, mapped: &str, body: &str) -> (Option<i32>, Vec<Value>) {
    found(name, &SHARED.replace("MAPPED", mapped), &access(body), &[])
}

#[test]
fn an_atomic_of_one_gpu_on_a_buffer_that_others_map_is_found_at_its_owner() {
    let mapped = "mapped = [1]";
    for atomic in [
        "atom.relaxed.gpu.global.add.u32 %v, [%x], 1;",
        "atom.global.add.u32 %v, [%x], 1;",
    ] {
        let (code, list) = on_shared("scenario-gpu", mapped, atomic);
        assert_eq!(code, Some(1));
        assert_eq!(rules(&list), ["gpu-scope-peer-atomic"], "{atomic}");
        assert_eq!(list[0]["detail"], "device 1 has it too");
        assert_eq!(list[0]["region"]["name"], "buffer `x`");
        assert_eq!(
            on_shared("scenario-alone", "", atomic),
            (Some(0), Vec::new())
        );
    }
    let system = "atom.relaxed.sys.global.add.u32 %v, [%x], 1;";
    assert_eq!(
        on_shared("scenario-sys", mapped, system),
        (Some(0), Vec::new())
    );
}

#[test]
fn a_store_behind_a_buffer_that_others_map_is_out_of_bounds() {
    let store = |offset| format!("st.global.u32 [%x+{offset}], 7;");
    for (offset, past) in [(64, 0), (192, 128), (8192, 8128)] {
        let (code, list) = on_shared("scenario-behind", "mapped = [1]", &store(offset));
        assert_eq!(code, Some(1));
        assert_eq!(rules(&list), ["out-of-bounds"]);
        let words = format!("{past} bytes past the end of buffer `x`");
        assert_eq!(list[0]["detail"], words.as_str());
    }
    let (code, list) = on_shared(
        "scenario-across",
        "mapped = [1]",
        "st.global.u64 [%x+60], %x;",
    );
    assert_eq!(
        (code, rules(&list)),
        (Some(1), vec!["fault"]),
        "it is not aligned"
    );
    let last = on_shared("scenario-last", "mapped = [1]", &store(60));
    assert_eq!(last, (Some(0), Vec::new()));
}

/// Two ranks; both map `flag` of rank 0, which has 256 bytes and `TAG`. Rank 0 waits there for what rank 1 should write.
const WAIT: &str = r#"ptx = "k.ptx"
ranks = 3
[[buffer]]
name = "flag"
size = 256
owner = 0
mapped = [1]
[[step]]
rank = 0
[step.launch]
kernel = "access"
grid = 1
block = 1
arguments = [{ at = { buffer = "flag", offset = 128 } }]
[[step]]
rank = 1
[step.launch]
kernel = "access"
grid = 1
block = 1
arguments = [{ at = { buffer = "flag", offset = 128 } }]
"#;

#[test]
fn a_deadlock_tells_who_waits_for_what_and_who_maps_the_word() {
    let poll =
        access("LOOP: ld.acquire.sys.global.u32 %v, [%x+8]; setp.ne.u32 %p, %v, 7; @%p bra LOOP;");
    let (code, list) = found("scenario-wait", WAIT, &poll, &[]);
    assert_eq!((code, rules(&list)), (Some(1), vec!["deadlock"]));
    let waits = list[0]["waits"].as_array().expect("a list");
    let of = |wait: &Value| {
        (
            wait["rank"].as_u64(),
            wait["kernel"].clone(),
            wait["on"].clone(),
        )
    };
    let both = [0, 1].map(|rank| (Some(rank), "access".into(), "poll".into()));
    assert_eq!(waits.iter().map(of).collect::<Vec<_>>(), both);
    for wait in waits {
        assert_eq!(wait["cta"], serde_json::json!([0, 0, 0]));
        assert_eq!(
            (wait["warp"].as_u64(), &wait["lanes"]),
            (Some(0), &serde_json::json!([0]))
        );
        let poll = &wait["polls"][0];
        assert_eq!(poll["ptx_line"], 10);
        assert_eq!(
            (&poll["region"], poll["offset"].as_u64()),
            (&"buffer `flag`".into(), Some(136))
        );
        let values = ["expected", "seen", "current"].map(|key| poll[key].as_u64());
        assert_eq!(values, [Some(7), Some(0), Some(0)]);
        let writers = poll["writers"].as_array().expect("a list");
        let ranks: Vec<_> = writers.iter().map(|one| one["rank"].as_u64()).collect();
        assert_eq!(ranks, [Some(0), Some(1)], "rank 2 does not map it");
        assert_eq!(writers[1]["operations"][0]["kernel"], "access");
        assert_eq!(poll["last_writer"], Value::Null);
    }
}

#[test]
fn findings_of_a_scenario_tell_ranks_and_a_fault_is_found_once() {
    let (code, list) = on_shared("scenario-fault", "", "st.global.u32 [%x+64], 7;");
    assert_eq!((code, rules(&list)), (Some(1), vec!["out-of-bounds"]));
    assert_eq!(list[0]["later"]["rank"], 0);
    assert_eq!(list[0]["detail"], "0 bytes past the end of buffer `x`");
    // Rank 0 has no right to what rank 1 has.
    let theirs = SHARED.replace("owner = 0", "owner = 1");
    let store = access("st.global.u32 [%x], 7;");
    let (code, list) = found(
        "scenario-theirs",
        &theirs.replace("MAPPED", ""),
        &store,
        &[],
    );
    assert_eq!((code, rules(&list)), (Some(1), vec!["wrong-region"]));
    assert_eq!(list[0]["detail"], "the device has no right to buffer `x`");
    for key in ["wrong", "repair"] {
        let words = list[0][key].as_str().expect("words");
        assert!(!words.contains("library"), "{words}");
    }
}

#[test]
fn a_race_of_scopes_is_repaired_by_scopes() {
    let scenario = WAIT.replace("ranks = 3", "ranks = 2");
    let add = access("atom.relaxed.gpu.global.add.u32 %v, [%x], 1;");
    let (code, list) = found("scenario-scopes", &scenario, &add, &[]);
    assert_eq!(code, Some(1));
    let race = list
        .iter()
        .find(|one| one["rule"] == "race")
        .expect("a race");
    assert_eq!(
        (&race["earlier"]["rank"], &race["later"]["rank"]),
        (&0.into(), &1.into())
    );
    let repair = race["repair"].as_str().expect("words");
    assert!(repair.starts_with("Give both accesses a scope"), "{repair}");
    let system = access("atom.relaxed.sys.global.add.u32 %v, [%x], 1;");
    assert_eq!(
        found("scenario-right", &scenario, &system, &[]),
        (Some(0), Vec::new())
    );
}

#[test]
fn an_atomic_on_a_peer_is_found_where_links_carry_none() {
    let body = "atom.relaxed.sys.global.add.u32 %v, [%x], 1;";
    let theirs = WAIT
        .replace("rank = 0\n[step", "rank = 1\n[step")
        .replace("ranks = 3", "ranks = 2");
    let on = |profile: &str, more: &[&str]| {
        let scenario = format!("{profile}{theirs}");
        found("scenario-profile", &scenario, &access(body), more)
    };
    assert_eq!(on("", &[]), (Some(0), Vec::new()));
    assert_eq!(
        on("profile = \"h200-nvlink\"\n", &[]),
        (Some(0), Vec::new())
    );
    let pcie = "profile = \"sm120-pcie\"\n";
    for (profile, more, replays) in [
        (pcie, &[][..], false),
        ("", &["--profile", "sm120-pcie"][..], true),
    ] {
        let (code, list) = on(profile, more);
        assert_eq!((code, rules(&list)), (Some(1), vec!["peer-atomic"]));
        assert_eq!(
            list[0]["detail"],
            "device 1 has no atomics on memory of device 0"
        );
        let replay = list[0]["replay"].as_str().expect("a command");
        assert_eq!(
            replay.ends_with(" --profile sm120-pcie"),
            replays,
            "{replay}"
        );
    }
    assert_eq!(
        on(pcie, &["--profile", "h200-nvlink"]),
        (Some(0), Vec::new())
    );
    let own = theirs.replace("owner = 0\nmapped = [1]", "owner = 1\nmapped = [0]");
    let own = found("scenario-own", &format!("{pcie}{own}"), &access(body), &[]);
    assert_eq!(own, (Some(0), Vec::new()), "its own memory");
}

/// Two streams of one rank, each with a kernel that counts up a word.
const STREAMS: &str = r#"ptx = "k.ptx"
ranks = 1
[[buffer]]
name = "x"
size = 8
owner = 0
[[step]]
rank = 0
stream = 0
[step.launch]
kernel = "access"
grid = 1
block = 1
arguments = [{ buffer = "x" }]
EVENT
[[step]]
rank = 0
stream = 1
[step.launch]
kernel = "access"
grid = 1
block = 1
arguments = [{ buffer = "x" }]
[[expect]]
buffer = "x"
contents = { words = [2] }
"#;

#[test]
fn an_event_orders_two_streams_of_a_rank() {
    let count = access("ld.global.u32 %v, [%x]; add.u32 %v, %v, 1; st.global.u32 [%x], %v;");
    let with = |event: &str| {
        found(
            "scenario-event",
            &STREAMS.replace("EVENT", event),
            &count,
            &[],
        )
    };
    let event =
        "[[step]]\nrank = 0\nrecord = \"one\"\n[[step]]\nrank = 0\nstream = 1\nwait = \"one\"";
    assert_eq!(with(event), (Some(0), Vec::new()));
    // Recorded before the kernel, or waited for by a stream that has nothing.
    let elsewhere = event.replace("stream = 1", "stream = 2");
    for missing in ["", &elsewhere] {
        let (code, list) = with(missing);
        assert_eq!(code, Some(1));
        assert!(rules(&list).contains(&"race"), "{list:?}");
    }
}

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
        "tag = \"flags\"",
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
