//! What `slabfence check --scenario` finds of memory that ranks share.

use serde_json::Value;

use super::files::Folder;
use super::run::Run;
use super::scenario_waits::WAIT;

/// Two ranks; buffer `x` of rank 0 has 128 bytes. `MAPPED`, `OFFSET` and the steps are put in.
pub const SHARED: &str = r#"ptx = "k.ptx"
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
pub fn access(body: &str) -> String {
    format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry access(.param .u64 x)\n{{\n\
         .reg .b64 %x, %y;\n.reg .b32 %v;\n.reg .pred %p;\nld.param.u64 %x, [x];\n{body}\nret;\n}}\n"
    )
}

/// Runs a scenario with its text; the exit status and what was found.
#[track_caller]
pub fn found(name: &str, scenario: &str, ptx: &str, more: &[&str]) -> (Option<i32>, Vec<Value>) {
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
pub fn rules(found: &[Value]) -> Vec<&str> {
    let rule = |one: &'_ Value| one["rule"].as_str().map(str::len).is_some();
    assert!(found.iter().all(rule), "{found:?}");
    found
        .iter()
        .filter_map(|one| one["rule"].as_str())
        .collect()
}

pub fn on_shared(name: &str, mapped: &str, body: &str) -> (Option<i32>, Vec<Value>) {
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
    assert_eq!((code, rules(&list)), (Some(1), vec!["misaligned"]));
    let last = on_shared("scenario-last", "mapped = [1]", &store(60));
    assert_eq!(last, (Some(0), Vec::new()));
}

#[test]
fn an_access_across_the_end_of_a_buffer_is_out_of_bounds_whoever_has_it() {
    let across = |mapped: &str, offset: u32| {
        let body = format!("st.global.u64 [%x+{offset}], %x;");
        let scenario = SHARED.replace("MAPPED", mapped).replace("128", "124");
        found("scenario-end", &scenario, &access(&body), &[])
    };
    for mapped in ["", "mapped = [1]"] {
        assert_eq!(across(mapped, 48), (Some(0), Vec::new()), "{mapped}");
        let (code, list) = across(mapped, 56);
        assert_eq!(
            (code, rules(&list)),
            (Some(1), vec!["out-of-bounds"]),
            "{mapped}"
        );
        assert_eq!(list[0]["detail"], "4 bytes of it are left", "{mapped}");
        assert_eq!(list[0]["region"]["offset"], 120, "{mapped}");
    }
}

#[test]
fn an_access_in_no_memory_is_told_by_what_is_near() {
    let parts = "[[buffer.part]]\nname = \"rows\"\noffset = 32\nsize = 64";
    for mapped in ["", "mapped = [1]\n"] {
        let near = |body: &str| {
            let (code, list) = on_shared("scenario-near", &format!("{mapped}{parts}"), body);
            assert_eq!((code, list.len()), (Some(1), 1), "{list:?}");
            let words = list[0]["detail"].as_str().expect("words");
            (rules(&list)[0].to_owned(), words.to_owned())
        };
        let rows = "`rows` of buffer `x`";
        let found = |rule: &str, words: String| (rule.to_owned(), words);
        let before = near("st.global.u32 [%x+-40], 7;");
        assert_eq!(
            before,
            found("out-of-bounds", format!("8 bytes before {rows}"))
        );
        let behind = near("st.global.u32 [%x+36], 7;");
        assert_eq!(
            behind,
            found("out-of-bounds", format!("4 bytes past the end of {rows}"))
        );
        let null = near("mov.u64 %y, 64; st.global.u32 [%y], 7;");
        assert_eq!(
            null,
            found("out-of-bounds", "nothing is at 0x40".to_owned())
        );
    }
    let body = "st.global.u32 [%x+1022], 7;";
    let (_, list) = on_shared("scenario-odd-far", "", body);
    assert_eq!(rules(&list), ["misaligned"]);
    let words = "the address (958 bytes past the end of buffer `x`) is no multiple of 4";
    assert_eq!(list[0]["detail"], words);
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
    let (code, list) = on_shared("scenario-odd", "", "st.global.u32 [%x+6], 7;");
    assert_eq!((code, rules(&list)), (Some(1), vec!["misaligned"]));
    let region = serde_json::json!({ "name": "buffer `x`", "offset": 70 });
    assert_eq!(list[0]["region"], region);
    assert_eq!(list[0]["detail"], "the address is no multiple of 4");
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
