//! `slabfence check` of kernels that take part in no protocol.

use serde_json::Value;

use super::files::Folder;
use super::run::Run;

fn image(name: &str) -> &'static str {
    slabfence_ptx::image(name).expect("a shipped image").ptx
}

/// Checks an operation with a text in place of what is shipped; the rules that find something, with the kernel.
fn found(name: &str, op: &str, text: &str) -> Vec<(String, String)> {
    let folder = Folder::new(name);
    let path = folder.file("k.ptx", text.as_bytes());
    let run = Run::with(&["check", "--op", op, "--ptx", &path, "--json"]);
    let report: Value =
        serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{}\n{}", run.out, run.err));
    let list = report["checks"][0]["findings"].as_array().cloned();
    let rules = list.expect("a list").into_iter().map(|one| {
        let replay = one["replay"].as_str().expect("a command");
        let again = format!("slabfence check --op {op} --seed {} --ptx ", one["seed"]);
        assert!(replay.starts_with(&again), "{replay}");
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (word(&one["rule"]), word(&one["later"]["kernel"]))
    });
    let rules: Vec<_> = rules.collect();
    assert_eq!(run.code, Some(i32::from(!rules.is_empty())), "{rules:?}");
    rules
}

/// The body of an entry: where it begins and ends in its text.
fn body(text: &str, entry: &str) -> std::ops::Range<usize> {
    let start = text.find(&format!(".visible .entry {entry}("));
    let start = start.expect("a shipped entry");
    start..start + text[start..].find("\n}\n").expect("its end")
}

/// A text with the `number`-th of these words in an entry replaced.
fn replaced(text: &str, entry: &str, from: &str, number: usize, to: &str) -> String {
    let body = body(text, entry);
    let mut places = text[body.clone()].match_indices(from);
    let at = body.start + places.nth(number).expect("so many").0;
    format!("{}{to}{}", &text[..at], &text[at + from.len()..])
}

#[test]
fn attention_and_the_clocks_are_clean() {
    for (op, scenes) in [("attention", 9), ("clock", 1)] {
        let run = Run::with(&["check", "--op", op, "--seeds", "3"]);
        assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
        let line = format!("ranks 1: {scenes} scenarios, {} runs", 3 * scenes);
        assert!(
            run.out.starts_with(op) && run.out.contains(&line),
            "{}",
            run.out
        );
    }
}

#[test]
fn a_barrier_of_attention_that_is_missing_is_found() {
    let text = image("attention");
    // In order: behind the query and what the last tile used, before and behind the warps' largest, before and behind
    // their sums. Before the largest the first one of the tile stands already.
    for (number, needed) in [true, false, true, true, true].into_iter().enumerate() {
        let text = replaced(text, "sf_attention_f32", "bar.sync \t0;", number, "");
        let found = found(&format!("check-barrier-{number}"), "attention", &text);
        let race = |(rule, kernel): &(String, String)| {
            rule == "shared-race" && kernel == "sf_attention_f32"
        };
        assert_eq!(found.iter().any(race), needed, "{number}: {found:?}");
        assert_eq!(found.is_empty(), !needed, "{number}: {found:?}");
    }
    for entry in ["sf_attention_f16", "sf_attention_bf16"] {
        let text = replaced(text, entry, "bar.sync \t0;", 4, "");
        let found = found(&format!("check-{entry}"), "attention", &text);
        let race = ("shared-race".to_owned(), entry.to_owned());
        assert!(found.contains(&race), "{found:?}");
    }
}

#[test]
fn a_row_past_the_end_of_attention_is_found() {
    let text = image("attention");
    for (entry, store) in [
        ("sf_attention_f32", "st.global.u32 [%rd286"),
        ("sf_attention_f16", "st.global.u16 [%rd286"),
        ("sf_attention_bf16", "st.global.u16 [%rd286"),
    ] {
        // As many bytes as the smallest output in f32 has.
        let text = replaced(text, entry, store, 0, &format!("{store}+72"));
        let found = found(&format!("check-row-{entry}"), "attention", &text);
        let outside = ("out-of-bounds".to_owned(), entry.to_owned());
        assert!(found.contains(&outside), "{found:?}");
    }
}

#[test]
fn a_wrong_value_of_attention_and_of_a_clock_is_found() {
    let plain = |rule: &str| vec![(rule.to_owned(), String::new())];
    let weighted = "mul.rn.f32 \t%f375, %f458, %f473;";
    let text = replaced(
        image("attention"),
        "sf_attention_f32",
        weighted,
        0,
        &weighted.replace("mul", "add"),
    );
    assert_eq!(
        found("check-value", "attention", &text),
        plain("wrong-result")
    );
    let clock = image("clock");
    let word = "st.relaxed.sys.global.u64 [%rd6], %rd5;";
    let text = replaced(clock, "sf_clock", word, 0, "");
    assert_eq!(found("check-clock", "clock", &text), plain("wrong-result"));
}
