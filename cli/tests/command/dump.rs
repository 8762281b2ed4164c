//! `--dump-graph`: the graph of a three-layer decode, and the page that shows it.

use std::collections::HashMap;
use std::path::Path;

use slabfence::driver::Work;
use slabfence::graph::{Dump, Place};

use crate::files::Folder;
use crate::run::Run;

/// Between these lines of the page lies the dump.
const BEGIN: &str =
    "<!-- generated: decode --ranks 2 --layers 3 --replays 1 --dump-graph -->\n```text\n";
const END: &str = "```\n<!-- end of generated text -->";

/// The dump of a small run in one of the forms.
fn dumped(folder: &Folder, name: &str) -> String {
    let path = folder.path(name);
    let run = Run::decode(&[
        "--ranks",
        "2",
        "--layers",
        "3",
        "--replays",
        "1",
        "--batch",
        "1,2",
        "--dump-graph",
        &path,
    ]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    std::fs::read_to_string(path).expect("the dump")
}

#[test]
fn three_layers_are_seven_collectives_and_three_attentions_in_a_chain() {
    let folder = Folder::new("dump-json");
    let dump = Dump::from_json(&dumped(&folder, "graph.json")).expect("a dump");
    assert_eq!(folder.names(), ["graph.json"]);
    let nodes = &dump.contents.nodes;
    let blocks: Vec<_> = nodes
        .iter()
        .map(|node| {
            let Work::Kernel(kernel) = &node.work else {
                panic!("{node:?}")
            };
            let params = kernel.params.as_ref().expect("parameters");
            params[0].block().expect("a block of ours").name
        })
        .collect();
    let layer = ["GatherParams", "AttentionParams", "ReduceParams"];
    let expected = [layer.as_slice(), &layer, &layer, &layer[..1]].concat();
    assert_eq!(blocks, expected);
    let edges = dump.contents.edges.iter();
    let edges: Vec<_> = edges
        .map(|edge| (edge.from, edge.to, edge.kind.0))
        .collect();
    let chain: Vec<_> = (0..9).map(|node| (node, node + 1, 0)).collect();
    assert_eq!(edges, chain);
    for (address, place) in &dump.places {
        assert!(place.is_live(), "{address:#x}: {place}");
        if let Place::Pool { range, .. } = place {
            let largest = "decode.graph.2";
            assert!(
                range.channel.as_deref().is_none_or(|name| name == largest),
                "{place}"
            );
        }
    }
}

#[test]
fn the_form_follows_the_names_ending() {
    let folder = Folder::new("dump-dot");
    let dot = dumped(&folder, "graph.dot");
    assert!(dot.starts_with("digraph slabfence {\n"), "{dot}");
    assert_eq!(dot.matches(" -> ").count(), 9);
    for name in ["graph.svg", "graph"] {
        let path = folder.path(name);
        Run::refused(
            &["--dump-graph", &path],
            "the name must end in .txt, .json or .dot",
        );
    }
    let nowhere = folder.path("absent/graph.txt");
    Run::refused(&["--dump-graph", &nowhere], "there is no folder");
}

/// Addresses differ from run to run: each becomes a number in order of its first appearance.
fn numbered(text: &str) -> String {
    let mut numbers = HashMap::new();
    let mut pieces = text.split("0x");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let digits = piece.bytes().take_while(u8::is_ascii_hexdigit).count();
        let (word, rest) = piece.split_at(digits);
        // Shorter words are values, longer ones hashes: both are the same in every run.
        if (11..=13).contains(&digits) {
            let next = numbers.len() + 1;
            let number = numbers.entry(word).or_insert(next);
            out.push_str(&format!("ADDRESS-{number}{rest}"));
        } else {
            out.push_str(&format!("0x{piece}"));
        }
    }
    out
}

/// `SLABFENCE_WRITE_DOCS=1 cargo test -p slabfence-cli` writes the page anew.
#[test]
fn the_page_shows_the_dump_of_three_layers() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/graph-dump.md");
    let folder = Folder::new("dump-page");
    let path = folder.path("graph.txt");
    let run = Run::decode(&[
        "--ranks",
        "2",
        "--layers",
        "3",
        "--replays",
        "1",
        "--dump-graph",
        &path,
    ]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    let dump = numbered(&std::fs::read_to_string(path).expect("the dump"));
    let text = std::fs::read_to_string(&page).expect("the page");
    let (before, rest) = text.split_once(BEGIN).expect("the place of the dump");
    let (shown, after) = rest.split_once(END).expect("the end of the dump");
    if std::env::var_os("SLABFENCE_WRITE_DOCS").is_some() {
        let text = format!("{before}{BEGIN}{dump}{END}{after}");
        std::fs::write(&page, text).expect("the page can be written");
    } else {
        assert_eq!(
            shown, dump,
            "docs/graph-dump.md is old: run SLABFENCE_WRITE_DOCS=1 cargo test -p slabfence-cli the_page"
        );
    }
}

#[test]
fn a_dump_is_printed_in_every_form_and_anything_else_is_refused() {
    let folder = Folder::new("dump-print");
    let json = dumped(&folder, "graph.json");
    let dump = Dump::from_json(&json).expect("a dump");
    let path = folder.path("graph.json");
    let printed = |format: &str| {
        let run = Run::with(&["graph", "dump", &path, "--format", format]);
        assert_eq!(run.code, Some(0), "{}", run.err);
        run.out
    };
    assert_eq!(printed("text").trim_end(), dump.to_string().trim_end());
    assert_eq!(printed("dot").trim_end(), dump.to_dot().trim_end());
    assert_eq!(printed("json").trim_end(), json.trim_end());
    let missing = Run::with(&["graph", "dump", &folder.path("none.json")]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.contains("none.json"), "{}", missing.err);
    std::fs::write(&path, json.replacen("\"schema\": 1", "\"schema\": 99", 1)).expect("a file");
    let other = Run::with(&["graph", "dump", &path]);
    assert_eq!(other.code, Some(2), "{}", other.out);
    assert!(other.err.contains("99"), "{}", other.err);
}
