//! What scenario files put into memory: addresses, arguments of every width, fills and copies.

use super::files::Folder;
use super::run::Run;
use super::scenarios::{found, rules};

/// Two ranks. Each takes the address of the other's row from a table in its own memory, loads a word behind the row's
/// start and stores it.
const TABLE: &str = r#"ptx = "k.ptx"
ranks = 2
[[buffer]]
name = "table0"
size = 16
owner = 0
initial = { addresses = [{ buffer = "row0" }, { at = { buffer = "row1", offset = 4 } }] }
[[buffer]]
name = "table1"
size = 16
owner = 1
mapped = [0]
initial = { addresses = [{ buffer = "row1" }, { at = { buffer = "row0", offset = 4 } }] }
[[buffer]]
name = "row0"
size = 8
owner = 0
mapped = [1]
initial = { words = [1, 2] }
[[buffer]]
name = "row1"
size = 8
owner = 1
MAPPED
initial = { words = [3, 4] }
[[buffer]]
name = "out0"
size = 4
owner = 0
[[buffer]]
name = "out1"
size = 4
owner = 1
[[step]]
rank = 0
[step.launch]
kernel = "follow"
grid = 1
block = 1
arguments = [{ buffer = "table0" }, { buffer = "out0" }]
[[step]]
rank = 1
[step.launch]
kernel = "follow"
grid = 1
block = 1
arguments = [{ buffer = "table1" }, { buffer = "out1" }]
[[expect]]
buffer = "out0"
contents = { words = [4] }
[[expect]]
buffer = "out1"
contents = { words = [2] }
"#;

const FOLLOW: &str = ".version 7.0
.target sm_80
.address_size 64
.visible .entry follow(.param .u64 table, .param .u64 out)
{
    .reg .b64 %table, %out, %row;
    .reg .b32 %word;
    ld.param.u64 %table, [table];
    ld.param.u64 %out, [out];
    ld.global.u64 %row, [%table+8];
    ld.global.u32 %word, [%row];
    st.global.u32 [%out], %word;
    ret;
}
";

#[test]
fn a_kernel_may_take_addresses_of_peers_from_a_table() {
    let mapped = TABLE.replace("MAPPED", "mapped = [0]");
    let clean = found("memory-table", &mapped, FOLLOW, &[]);
    assert_eq!(clean, (Some(0), Vec::new()));
    let unmapped = TABLE.replace("MAPPED\n", "");
    let (code, list) = found("memory-unmapped", &unmapped, FOLLOW, &[]);
    assert_eq!((code, rules(&list)), (Some(1), vec!["wrong-region"]));
}

/// A rank that fills, copies and adds up.
const STEPS: &str = r#"ptx = "k.ptx"
ranks = 1
[[buffer]]
name = "from"
size = 8
owner = 0
initial = { words = [5, 6] }
[[buffer]]
name = "to"
size = 16
owner = 0
[[step]]
rank = 0
fill = { to = { buffer = "to", offset = 8 }, size = 4, byte = 255 }
[[step]]
rank = 0
copy = { from = { buffer = "from", offset = 4 }, to = { buffer = "to", offset = 12 }, size = 4 }
[[step]]
rank = 0
STREAM
[step.launch]
kernel = "add"
grid = 1
block = 1
arguments = [{ buffer = "to" }, { u8 = 200 }, { s8 = -1 }, { u16 = 65535 }, { s16 = -2 }, { f64 = 0.5 }]
[[expect]]
buffer = "to"
contents = { words = [65732, 1071644672, 4294967295, 6] }
"#;

/// Adds the integers into word 0 (200 - 1 + 65535 - 2), stores the upper half of the float to word 1, and loads word 3.
const ADD: &str = ".version 7.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 to, .param .u8 a, .param .s8 b, .param .u16 c, .param .s16 d, .param .f64 e)
{
    .reg .b64 %to, %e;
    .reg .b32 %sum, %next;
    ld.param.u64 %to, [to];
    ld.param.u8 %sum, [a];
    ld.param.s8 %next, [b];
    add.s32 %sum, %sum, %next;
    ld.param.u16 %next, [c];
    add.s32 %sum, %sum, %next;
    ld.param.s16 %next, [d];
    add.s32 %sum, %sum, %next;
    st.global.u32 [%to], %sum;
    ld.param.u64 %e, [e];
    shr.u64 %e, %e, 32;
    cvt.u32.u64 %next, %e;
    st.global.u32 [%to+4], %next;
    ld.global.u32 %next, [%to+12];
    ret;
}
";

#[test]
fn arguments_have_any_width_and_streams_fill_and_copy() {
    let one = STEPS.replace("STREAM\n", "");
    assert_eq!(found("memory-steps", &one, ADD, &[]), (Some(0), Vec::new()));
    // On another stream the kernel is in no order with the copy whose word it loads.
    let two = STEPS.replace("STREAM", "stream = 1");
    let (code, list) = found("memory-streams", &two, ADD, &[]);
    assert_eq!(code, Some(1));
    assert!(rules(&list).contains(&"race"), "{list:?}");
}

#[test]
fn memory_that_does_not_fit_is_refused_with_its_line() {
    let refused = |name: &str, this: &str, that: &str, said: &str| {
        let folder = Folder::new(name);
        folder.file("k.ptx", ADD.as_bytes());
        let text = STEPS.replace("STREAM\n", "");
        assert_eq!(text.matches(this).count(), 1, "{this}");
        let path = folder.file("s.toml", text.replace(this, that).as_bytes());
        let run = Run::with(&["check", "--scenario", &path]);
        let err = run.err.replace(&folder.path(""), "");
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{err}");
        assert_eq!(err, format!("slabfence: s.toml: {said}\n"));
    };
    refused(
        "memory-1",
        "initial = { words = [5, 6] }",
        "initial = { addresses = [{ buffer = \"to\" }, { buffer = \"to\" }] }",
        "line 7: 2 addresses for a buffer of 8",
    );
    refused(
        "memory-2",
        "initial = { words = [5, 6] }",
        "initial = { addresses = [{ at = { buffer = \"to\", offset = 17 } }] }",
        "line 7: offset 17 in a buffer of 16 bytes",
    );
    refused(
        "memory-3",
        "size = 4, byte",
        "size = 9, byte",
        "line 14: 9 bytes from 8 on in a buffer of 16",
    );
    refused(
        "memory-4",
        "offset = 4 }, to",
        "offset = 5 }, to",
        "line 17: 4 bytes from 5 on in a buffer of 8",
    );
    refused(
        "memory-5",
        "contents = { words = [65732, 1071644672, 4294967295, 6] }",
        "contents = { addresses = [] }",
        "line 27: addresses are not known, so they cannot be expected",
    );
    refused(
        "memory-6",
        "u8 = 200",
        "u8 = 256",
        "line 24: invalid value: integer `256`, expected u8",
    );
    refused(
        "memory-8",
        "u8 = 200",
        "f32 = 1e300",
        "line 24: 1e300 does not fit f32",
    );
    refused(
        "memory-9",
        "contents = { words = [65732, 1071644672, 4294967295, 6] }",
        "contents = { ascending = 4294967293 }",
        "line 27: words from 4294967293 on in 16 bytes do not fit 32 bits",
    );
    refused(
        "memory-7",
        "fill = {",
        "replay = \"g\"\nfill = {",
        "line 13: a step has one of `launch`, `replay`, `fill`, `copy`, `record` and `wait`",
    );
}

#[test]
fn what_the_checker_had_no_room_to_remember_is_told() {
    let text = STEPS[..STEPS.find("[[step]]").expect("steps")].to_owned()
        + "[[step]]\nrank = 0\n[step.launch]\nkernel = \"read\"\ngrid = BLOCKS\nblock = 1\narguments = [{ buffer = \"from\" }]\n";
    let ptx = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry read(.param .u64 from)\n{\n\
               .reg .b64 %from;\n.reg .b32 %word;\nld.param.u64 %from, [from];\n\
               ld.global.u32 %word, [%from];\nret;\n}\n";
    let folder = Folder::new("memory-limit");
    folder.file("k.ptx", ptx.as_bytes());
    let told = |blocks: &str| {
        let path = folder.file("s.toml", text.replace("BLOCKS", blocks).as_bytes());
        let run = Run::with(&["check", "--seeds", "1", "--scenario", &path]);
        assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
        run.out
    };
    let limit = "readers of words were more than the checker remembers";
    assert!(!told("256").contains(limit));
    assert!(
        told("260").contains(&format!("\n  4 {limit}")),
        "{}",
        told("260")
    );
    // Blocks that never touch a word have no readers: they are warps.
    let quick = folder.file(
        "k.ptx",
        ptx.replace("ld.global.u32 %word, [%from];\n", "")
            .as_bytes(),
    );
    assert!(quick.ends_with("k.ptx"));
    let crowd = told("4000");
    let warps = "warps at once were more than the checker tells apart";
    assert!(crowd.contains(warps) && !crowd.contains(limit), "{crowd}");
}
