//! `docs/checker.md` and the rules in code say the same.

use slabfence_emu_check::Rule;

const PAGE: &str = include_str!("../../../../docs/checker.md");

#[test]
fn every_rule_is_documented_with_its_sentence_and_repair() {
    let rows: Vec<_> = PAGE
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(str::to_owned)
        .collect();
    let rules: Vec<_> = Rule::ALL
        .iter()
        .map(|rule| format!("| `{rule}` | {} | {} |", rule.wrong(), rule.repair()))
        .collect();
    assert_eq!(rows, rules);
}

#[test]
fn names_are_kebab_case_and_sentences_end() {
    for rule in Rule::ALL {
        let kebab = |c: char| c.is_ascii_lowercase() || c == '-';
        assert!(rule.name().chars().all(kebab), "{rule}");
        for sentence in [rule.wrong(), rule.repair()] {
            assert!(sentence.ends_with('.'), "{rule}: {sentence}");
        }
    }
}
