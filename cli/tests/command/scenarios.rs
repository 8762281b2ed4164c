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
