//! Lines of the kernels' source in what `slabfence check` tells, where the PTX names them.

use serde_json::{Value, json};

use super::files::Folder;
use super::run::Run;

/// Rank 0 stores to `x`, and rank 1 loads it. Nothing orders the two.
const SCENARIO: &str = r#"ptx = "k.ptx"
ranks = 2
[[buffer]]
name = "x"
size = 128
owner = 0
mapped = [1]
[[step]]
rank = 0
[step.launch]
kernel = "put"
grid = 1
block = 1
arguments = [{ at = { buffer = "x", offset = 64 } }]
[[step]]
rank = 1
[step.launch]
kernel = "get"
grid = 1
block = 1
arguments = [{ at = { buffer = "x", offset = 64 } }]
"#;

/// `put` stores by a line of its own file, `get` loads by a line of a header that is inlined into the same file.
const PTX: &str = ".version 7.8
.target sm_80
.address_size 64
.visible .entry put(.param .u64 x)
{
.reg .b64 %x;
.loc 1 17 5
ld.param.u64 %x, [x];
.loc 1 18 9
st.global.u32 [%x], 7;
.loc 1 19 1
ret;
}
.visible .entry get(.param .u64 x)
{
.reg .b64 %x; .reg .b32 %v; .reg .pred %p;
.loc 1 30 5
ld.param.u64 %x, [x];
WAIT:
.loc 2 4 9, function_name $L__info_string0, inlined_at 1 31 3
ld.global.u32 %v, [%x];
.loc 1 32 1
ret;
}
.file 1 \"dir/pass on.cu\"
.file 2 \"memory.cuh\"
.section .debug_str {
$L__info_string0:
.b8 65,0
}
";

/// The line of PTX with this instruction, counted from 1.
fn line_of(ptx: &str, instruction: &str) -> usize {
    let found = ptx.lines().position(|line| line == instruction);
    found.expect("a line of the text") + 1
}

/// Checks a scenario; the report and the text.
fn check(name: &str, ptx: &str) -> (Value, String) {
    let folder = Folder::new(name);
    folder.file("k.ptx", ptx.as_bytes());
    let path = folder.file("s.toml", SCENARIO.as_bytes());
    let args = ["check", "--seed", "0", "--scenario", &path];
    let (text, data) = (
        Run::with(&args),
        Run::with(&[&args[..], &["--json"]].concat()),
    );
    assert_eq!((text.code, data.code), (Some(1), Some(1)), "{}", text.err);
    let report = serde_json::from_str(&data.out).expect("one JSON object");
    (report, text.out)
}

/// The kernel, PTX line and source line of both sides of the one race, by kernel.
fn sides(report: &Value) -> [Value; 2] {
    let findings = report["checks"][0]["findings"].as_array().expect("a list");
    let [race] = &findings[..] else {
        panic!("{findings:?}");
    };
    assert_eq!(
        (&race["rule"], &race["region"]["offset"]),
        (&json!("race"), &json!(64))
    );
    let mut sides = ["earlier", "later"].map(|side| {
        let side = &race[side];
        json!([side["kernel"], side["ptx_line"], side["source"]])
    });
    sides.sort_by_key(|side| side[0].as_str().map(str::to_owned));
    sides
}

const LOAD: &str = "ld.global.u32 %v, [%x];";
const STORE: &str = "st.global.u32 [%x], 7;";

#[test]
fn both_sides_of_a_finding_name_the_source_line_that_the_ptx_tells() {
    let (report, text) = check("source-both", PTX);
    let (load, store) = (line_of(PTX, LOAD), line_of(PTX, STORE));
    let expected = [
        json!(["get", load, "memory.cuh:4"]),
        json!(["put", store, "dir/pass on.cu:18"]),
    ];
    assert_eq!(sides(&report), expected);
    for words in [
        format!("`get` CTA 0 warp 0 lane 0, PTX line {load} (instruction 1), memory.cuh:4; last"),
        format!(
            "`put` CTA 0 warp 0 lane 0, PTX line {store} (instruction 1), dir/pass on.cu:18; last"
        ),
    ] {
        assert!(text.contains(&words), "no `{words}` in {text}");
    }
}

#[test]
fn an_instruction_without_a_source_line_has_none_and_the_other_side_keeps_its_own() {
    // Line 0 says that the instruction comes from no line.
    let ptx = PTX.replace(".loc 1 18 9", ".loc 1 0 0");
    let (report, text) = check("source-one", &ptx);
    let (load, store) = (line_of(&ptx, LOAD), line_of(&ptx, STORE));
    let expected = [
        json!(["get", load, "memory.cuh:4"]),
        json!(["put", store, null]),
    ];
    assert_eq!(sides(&report), expected);
    assert!(
        text.contains(&format!("PTX line {store} (instruction 1); last")),
        "{text}"
    );
    // No directive at all.
    let plain = |line: &&str| {
        ![".loc", ".file", ".section", "$L", ".b8", "}"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let bare: Vec<&str> = ptx.lines().filter(plain).collect();
    let bare = format!(
        "{}\n}}",
        bare.join("\n")
            .replace("ret;\n.visible", "ret;\n}\n.visible")
    );
    let (report, text) = check("source-none", &bare);
    let expected = [
        json!(["get", line_of(&bare, LOAD), null]),
        json!(["put", line_of(&bare, STORE), null]),
    ];
    assert_eq!(sides(&report), expected);
    assert!(!text.contains(".cu"), "{text}");
}

#[test]
fn a_waiter_names_its_source_line() {
    let poll = "ld.acquire.sys.global.u32 %v, [%x];\nsetp.ne.u32 %p, %v, 9;\n@%p bra WAIT;";
    let ptx = PTX
        .replace(LOAD, poll)
        .replace(STORE, "st.release.sys.global.u32 [%x], 8;");
    let wait = |name: &str, ptx: &str| {
        let (report, text) = check(name, ptx);
        let finding = &report["checks"][0]["findings"][0];
        assert_eq!(finding["rule"], "deadlock", "{text}");
        (finding["waits"][0]["source"].clone(), text)
    };
    let (source, text) = wait("source-wait", &ptx);
    assert_eq!(source, "memory.cuh:4");
    assert!(text.contains("memory.cuh:4"), "{text}");
    let (source, text) = wait("source-wait-none", &ptx.replace(".loc 2 4 9", ".loc 2 0 0"));
    assert_eq!(source, Value::Null);
    assert!(!text.contains("memory.cuh"), "{text}");
}
