//! What `slabfence check --scenario` holds fills and copies to, and how it names them.

use std::process::Command;

use serde_json::Value;

use super::files::Folder;
use super::run::Run;
use super::scenarios::{access, found, rules};

/// Two ranks, and memory of each kind of right. The step is put in as line 51.
const RIGHTS: &str = r#"ptx = "k.ptx"
ranks = 2
[[buffer]]
name = "own"
size = 64
owner = 0
[[buffer]]
name = "row"
size = 64
owner = 1
mapped = [0]
tag = "staging"
writer = 1
[[buffer]]
name = "lines"
size = 512
owner = 0
mapped = [1]
tag = "flag"
writer = "lines"
[[buffer]]
name = "epoch"
size = 8
owner = 1
mapped = [0]
tag = "epoch"
[[buffer]]
name = "parts"
size = 256
owner = 0
mapped = [1]
[[buffer.part]]
name = "flags"
offset = 64
size = 32
tag = "flag"
[[buffer.part]]
name = "mine"
offset = 96
size = 32
tag = "staging"
writer = 0
[[buffer.part]]
name = "theirs"
offset = 128
size = 32
tag = "staging"
writer = 1
[[step]]
rank = RANK
STEP
"#;

fn fill(buffer: &str, offset: u64, size: u64) -> String {
    format!(
        "fill = {{ to = {{ buffer = \"{buffer}\", offset = {offset} }}, size = {size}, byte = 1 }}"
    )
}

fn copy(from: (&str, u64), to: (&str, u64), size: u64) -> String {
    let at = |(buffer, offset)| format!("{{ buffer = \"{buffer}\", offset = {offset} }}");
    let (from, to) = (at(from), at(to));
    format!("copy = {{ from = {from}, to = {to}, size = {size} }}")
}

/// Runs a step of a rank alone; the exit status and what is said of the file.
fn step(name: &str, rank: u32, step: &str) -> (Option<i32>, String) {
    let folder = Folder::new(name);
    folder.file("k.ptx", access("").as_bytes());
    let text = RIGHTS
        .replace("RANK", &rank.to_string())
        .replace("STEP", step);
    let path = folder.file("s.toml", text.as_bytes());
    let run = Run::with(&["check", "--seeds", "1", "--scenario", &path]);
    (run.code, run.err.replace(&folder.path(""), ""))
}

#[test]
fn steps_have_the_rights_that_kernels_have() {
    let may = [
        (0, fill("own", 0, 64)),
        (0, fill("own", 64, 0)),
        // Who may not write there may read.
        (0, copy(("row", 0), ("own", 0), 64)),
        (1, fill("row", 8, 56)),
        (0, fill("lines", 256, 128)),
        (1, fill("lines", 128, 128)),
        (0, copy(("epoch", 0), ("own", 0), 8)),
        (1, fill("epoch", 0, 8)),
        (1, fill("parts", 64, 32)),
        (0, fill("parts", 96, 32)),
        (1, copy(("parts", 96), ("row", 0), 64)),
        (0, copy(("own", 0), ("own", 32), 32)),
        (0, copy(("own", 32), ("own", 0), 32)),
    ];
    for (rank, what) in may {
        let said = step("steps-may", rank, &what);
        assert_eq!(said, (Some(0), String::new()), "{rank}: {what}");
    }
    let apart = "which is for something else: each needs a step of its own";
    let may_not = [
        (1, fill("own", 0, 8), "buffer `own` is not mapped for rank 1".to_owned()),
        (1, copy(("own", 0), ("row", 0), 8), "buffer `own` is not mapped for rank 1".to_owned()),
        (1, copy(("row", 0), ("own", 0), 8), "buffer `own` is not mapped for rank 1".to_owned()),
        (0, fill("row", 8, 4), "rank 0 writes to byte 8 of buffer `row` (staging), where rank 1 alone may".to_owned()),
        (0, copy(("own", 0), ("row", 0), 8), "rank 0 writes to byte 0 of buffer `row` (staging), where rank 1 alone may".to_owned()),
        (0, fill("lines", 256, 129), "rank 0 writes to byte 384 of buffer `lines` (flag), where rank 1 alone may".to_owned()),
        (0, fill("epoch", 0, 8), "rank 0 writes to byte 0 of buffer `epoch` (epoch), where rank 1 alone may".to_owned()),
        (0, fill("parts", 60, 8), "byte 60 of buffer `parts` is in no part of it".to_owned()),
        (0, copy(("parts", 130), ("own", 0), 40), "byte 160 of buffer `parts` is in no part of it".to_owned()),
        (0, fill("parts", 88, 16), format!("it begins in `flags` of buffer `parts` (flag) and runs on into `mine` of buffer `parts` (staging), {apart}")),
        (0, copy(("parts", 64), ("own", 0), 48), format!("it begins in `flags` of buffer `parts` (flag) and runs on into `mine` of buffer `parts` (staging), {apart}")),
        (0, fill("parts", 96, 33), "rank 0 writes to byte 0 of `theirs` of buffer `parts` (staging), where rank 1 alone may".to_owned()),
        (0, copy(("own", 0), ("own", 31), 32), "32 bytes from 0 on and from 31 on overlap, and a copy of a stream does not say what becomes of those".to_owned()),
        (0, copy(("own", 16), ("own", 16), 1), "1 bytes from 16 on and from 16 on overlap, and a copy of a stream does not say what becomes of those".to_owned()),
    ];
    for (rank, what, words) in may_not {
        let said = step("steps-may-not", rank, &what);
        let words = format!("slabfence: s.toml: line 51: {words}\n");
        assert_eq!(said, (Some(2), words), "{rank}: {what}");
    }
}

/// One rank; buffer `new` of 32 bytes was never written. `STEPS` come before a kernel that gets 32 bytes of zeros.
const COPIES: &str = r#"ptx = "k.ptx"
ranks = 1
[[buffer]]
name = "new"
size = 32
owner = 0
initial = "unwritten"
[[buffer]]
name = "old"
size = 32
owner = 0
[[buffer]]
name = "between"
size = 32
owner = 0
STEPS
[[step]]
rank = 0
[step.launch]
kernel = "access"
grid = 1
block = 1
arguments = [{ buffer = "old" }]
"#;

#[test]
fn a_copy_of_what_nobody_has_written_leaves_nothing_that_may_be_read() {
    let on = |steps: &[String], offset: u64| {
        let steps: Vec<String> = steps
            .iter()
            .map(|step| format!("[[step]]\nrank = 0\n{step}"))
            .collect();
        let text = COPIES.replace("STEPS", &steps.join("\n"));
        let load = access(&format!("ld.global.u16 %v, [%x+{offset}];"));
        let (_, list) = found("steps-unwritten", &text, &load, &[]);
        rules(&list).first().map(|rule| rule.to_string())
    };
    let uninitialised = Some("uninitialised".to_owned());
    let there = copy(("new", 0), ("old", 8), 16);
    let chain = [
        copy(("new", 0), ("between", 0), 32),
        copy(("between", 8), ("old", 8), 16),
    ];
    for steps in [std::slice::from_ref(&there), &chain] {
        let found = [6, 8, 22, 24].map(|offset| on(steps, offset));
        let wanted = [None, uninitialised.clone(), uninitialised.clone(), None];
        assert_eq!(found, wanted, "{steps:?}");
    }
    // What was written there before and is copied along may be read, and so may what is written afterwards.
    let partly = [fill("new", 6, 4), there.clone()];
    let found = [8, 14, 16, 18, 20].map(|offset| on(&partly, offset).is_some());
    assert_eq!(found, [true, false, false, true, true]);
    let over = [there, fill("old", 8, 8)];
    assert_eq!(
        [8, 16].map(|offset| on(&over, offset)),
        [None, uninitialised]
    );
}

/// One rank that fills on another stream than its kernel's.
const TWO: &str = r#"ptx = "k.ptx"
ranks = 1
[[buffer]]
name = "x"
size = 128
owner = 0
TAG
[[step]]
rank = 0
record = "begin"
[[step]]
rank = 0
times = 2
[step.launch]
kernel = "access"
grid = 1
block = 1
arguments = [{ buffer = "x" }]
[[step]]
rank = 0
stream = STREAM
fill = { to = { buffer = "x", offset = 0 }, size = 64, byte = 0 }
"#;

#[test]
fn what_a_step_does_is_found_with_its_line() {
    let two = |tag: &str, stream: &str, body: &str| {
        let text = TWO.replace("TAG\n", tag).replace("STREAM", stream);
        found("steps-line", &text, &access(body), &[])
    };
    let sides = |one: &Value| ["earlier", "later"].map(|side| one[side]["access"].clone());
    let has = |one: &Value, words: &str| sides(one).iter().any(|side| *side == words);
    let (code, list) = two("", "1", "st.global.u32 [%x], 7;");
    assert_eq!((code, rules(&list)), (Some(1), vec!["race"]));
    assert!(
        has(&list[0], "copy or fill to it (the `fill` in line 21)"),
        "{list:?}"
    );
    assert_eq!(
        two("", "0", "st.global.u32 [%x], 7;"),
        (Some(0), Vec::new())
    );
}

#[test]
fn names_of_a_file_do_nothing_to_a_terminal() {
    let folder = Folder::new("steps-names");
    let store = "st.global.u32 [%x], 7;";
    folder.file("k.ptx", access(store).as_bytes());
    let text = TWO
        .replace("TAG\n", "tag = \"two\\nlines \\u001b[2J\"\n")
        .replace("STREAM", "1")
        .replace("\"x\"", "\"x\\u001b[31m\\r\"");
    let check = |text: &str| {
        let path = folder.file("s.toml", text.as_bytes());
        Run::with(&["check", "--seeds", "3", "--scenario", &path])
    };
    let run = check(&text);
    assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
    let name = "race at buffer `x\\u{1b}[31m\\r` (two\\nlines \\u{1b}[2J), + 0: ";
    assert!(run.out.contains(name), "{}", run.out);
    let odd = |c: char| c.is_control() && c != '\n';
    assert!(!run.out.contains(odd), "{:?}", run.out);
    let gone = "[[expect]]\nbuffer = \"y\\n\\u001b[1m\"\ncontents = { words = [] }\n";
    let missing = [
        (
            format!("{text}{gone}"),
            "line 24: there is no buffer `y\\n\\u{1b}[1m`",
        ),
        (
            text.replace("\"k.ptx\"", "\"k\\u001b.ptx\""),
            "k\\u{1b}.ptx",
        ),
        (
            text.replace("[[step]]", "\"a\\u001b\" = 1\n[[step]]"),
            "unknown field `a\\u{1b}`",
        ),
    ];
    for (text, words) in missing {
        let run = check(&text);
        assert_eq!(run.code, Some(2), "{}", run.out);
        assert!(run.err.contains(words), "{}", run.err);
        assert_eq!(run.err.find(odd), None, "{:?}", run.err);
        assert_eq!(run.err.lines().count(), 1, "{:?}", run.err);
    }
}

#[test]
fn a_host_that_gives_no_machine_is_told_apart_from_what_is_found() {
    let folder = Folder::new("steps-room");
    folder.file("k.ptx", access("").as_bytes());
    let text = TWO.replace("TAG\n", "").replace("STREAM", "1");
    let path = folder.file("s.toml", text.as_bytes());
    // Kilobytes of addresses: enough for the program, and not for a machine.
    let script = "ulimit -v 4000000; exec \"$0\" check --scenario \"$1\"";
    let shell = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_slabfence"), &path])
        .output()
        .expect("a shell");
    let err = String::from_utf8(shell.stderr).expect("text");
    assert_eq!(
        (shell.status.code(), shell.stdout.len()),
        (Some(2), 0),
        "{err}"
    );
    let words =
        "slabfence: the emulated machine: the host refused what an emulated machine needs: ";
    assert!(err.starts_with(words) && err.lines().count() == 1, "{err}");
}
