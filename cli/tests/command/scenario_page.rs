//! `docs/scenarios.md` shows its examples as they are, with what the command prints.

use std::fmt::Write;
use std::path::Path;

use super::run::Run;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../");

#[track_caller]
fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join(path)).unwrap_or_else(|_| panic!("{path}"))
}

/// The lines of a kernel from the store of its row to the load of the peer's, by number.
fn excerpt(ptx: &str) -> String {
    let lines: Vec<&str> = ptx.lines().collect();
    let find = |word: &str| lines.iter().position(|line| line.contains(word));
    let (from, to) = (find("[%own], %x;"), find("[%peer];"));
    let (from, to) = (
        from.expect("the store of the row"),
        to.expect("a load of the peer's row"),
    );
    let mut shown = String::new();
    for (number, line) in (from + 1..).zip(&lines[from..=to]) {
        let line = match line.strip_prefix('\t') {
            Some(instruction) => format!("    {}", instruction.replace(" \t", " ")),
            None => line.to_string(),
        };
        let _ = writeln!(shown, "{number:>3} {line}");
    }
    shown
}

/// What is printed, with the time it took left open and paths from the root.
fn printed(out: &str) -> String {
    let out = out.replace(ROOT, "");
    let (before, rest) = out.split_once(" runs, ").expect("the runs");
    let (_, after) = rest.split_once(" s: ").expect("the time");
    format!("{before} runs, 0.1 s: {after}")
}

/// The part of the page about an example.
fn shown(name: &str, ptx: &str, code: i32) -> String {
    let path = format!("testdata/scenarios/{name}.toml");
    let run = Run::with(&["check", "--scenario", &format!("{ROOT}{path}")]);
    assert_eq!(run.code, Some(code), "{}\n{}", run.out, run.err);
    format!(
        "\n`{path}`:\n\n```toml\n{}```\n\nFrom `testdata/protocols/{ptx}.ptx`, with its lines:\n\n```ptx\n{}```\n\n`slabfence check --scenario {path}` ends with {code} and prints:\n\n```text\n{}\n```\n\n",
        read(&path),
        excerpt(&read(&format!("testdata/protocols/{ptx}.ptx"))),
        printed(run.out.trim_end()).trim_end(),
    )
}

/// `SLABFENCE_WRITE_DOCS=1 cargo test -p slabfence-cli` writes the page anew.
#[test]
fn the_page_of_scenarios_shows_the_examples_as_they_are() {
    let page = Path::new(ROOT).join("docs/scenarios.md");
    let mut text = read("docs/scenarios.md");
    for (name, code) in [
        ("pairwise_barrier", 1),
        ("pairwise_barrier_repaired", 0),
        ("device_counter", 1),
    ] {
        let begin = format!(
            "<!-- begin: {name}. SLABFENCE_WRITE_DOCS=1 cargo test -p slabfence-cli writes it. -->\n"
        );
        let end = format!("<!-- end: {name} -->");
        let (before, rest) = text.split_once(&begin).expect("the place of the example");
        let (old, after) = rest.split_once(&end).expect("its end");
        let now = shown(name, name, code);
        if std::env::var_os("SLABFENCE_WRITE_DOCS").is_some() {
            text = format!("{before}{begin}{now}{end}{after}");
        } else {
            assert_eq!(
                old, now,
                "docs/scenarios.md is old: run SLABFENCE_WRITE_DOCS=1 cargo test -p slabfence-cli the_page"
            );
        }
    }
    if std::env::var_os("SLABFENCE_WRITE_DOCS").is_some() {
        std::fs::write(&page, text).expect("the page can be written");
    }
}
