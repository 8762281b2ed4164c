//! Every mutant is a whole text that runs, and differs from the shipped entry in as many places as stated.

use std::collections::BTreeSet;

use slabfence_emu_exec::Kernel;
use slabfence_emu_mutants::{
    EQUIVALENT, Entry, FAILING, Family, MUTATIONS, Mutation, mutation, shipped,
};
use slabfence_emu_ptx::Instruction;

fn entries() -> Vec<Entry> {
    shipped().expect("the shipped images in the expected form")
}

fn named(name: &str) -> &'static Mutation {
    mutation(name).expect("a mutation of this name")
}

#[test]
fn every_entry_of_the_collectives_is_there_alone_and_unchanged() {
    let entries = entries();
    let of = |family| {
        entries
            .iter()
            .filter(|entry| entry.family == family)
            .count()
    };
    assert_eq!(Family::ALL.map(of), [1, 1, 9, 9]);
    for entry in &entries {
        let image = slabfence_ptx::image(entry.family.image()).expect("an image");
        let alone = slabfence_emu_ptx::parse(&entry.text).expect("a text");
        let whole = slabfence_emu_ptx::parse(image.ptx).expect("a text");
        let [found] = alone.entries.as_slice() else {
            panic!(
                "{} entries in the text of {}",
                alone.entries.len(),
                entry.name
            );
        };
        let shipped = whole.entry(entry.name).expect("the entry");
        assert_eq!(
            (&found.params, found.body.len()),
            (&shipped.params, shipped.body.len())
        );
    }
}

/// Whether two bodies do the same, wherever their lines are.
fn same(one: &[Instruction], other: &[Instruction]) -> bool {
    let does = |inst: &Instruction, as_well: &Instruction| {
        inst.opcode == as_well.opcode
            && (inst.guard, &inst.modifiers, &inst.types)
                == (as_well.guard, &as_well.modifiers, &as_well.types)
            && inst.operands == as_well.operands
    };
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| does(one, other))
}

#[test]
fn every_mutant_of_every_entry_compiles_with_the_same_parameters_and_is_another_kernel() {
    for entry in entries() {
        let shipped = slabfence_emu_ptx::parse(&entry.text).expect("a text");
        let shipped = shipped.entry(entry.name).expect("the entry");
        for mutation in MUTATIONS.iter().chain(FAILING).chain(EQUIVALENT) {
            let text = mutation
                .plant(&entry)
                .unwrap_or_else(|error| panic!("{error}"));
            let module = slabfence_emu_ptx::parse(&text)
                .unwrap_or_else(|error| panic!("{} of {}: {error}", mutation.name, entry.name));
            let mutant = module.entry(entry.name).expect("the entry");
            assert_eq!(mutant.params, shipped.params);
            assert!(!same(&mutant.body, &shipped.body), "{}", mutation.name);
            let kernel = Kernel::compile(&module, entry.name);
            assert_eq!(
                kernel.map_err(|error| error.to_string()).err(),
                None,
                "{}",
                mutation.name
            );
        }
    }
}

#[test]
fn names_are_unique_and_each_mutation_says_what_finds_it() {
    let all = MUTATIONS.iter().chain(FAILING);
    let names: BTreeSet<_> = all.clone().map(|mutation| mutation.name).collect();
    assert_eq!(names.len(), MUTATIONS.len() + FAILING.len());
    for mutation in all {
        assert!(
            mutation
                .name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c == '-'),
            "{}",
            mutation.name
        );
        assert!(
            !mutation.rules.is_empty() && mutation.bug.ends_with('.'),
            "{}",
            mutation.name
        );
    }
}

#[test]
fn a_text_without_the_place_is_refused() {
    let mut entry = entries().remove(0);
    entry.text = entry
        .text
        .replace("ld.acquire.sys.global.u64", "ld.relaxed.sys.global.u64");
    let error = named("flag-poll-relaxed").plant(&entry).unwrap_err();
    assert_eq!(
        error.to_string(),
        "mutation `flag-poll-relaxed` of `sf_gather_push`: 0 places changed, 2 expected"
    );
}

#[test]
fn a_text_with_one_place_more_is_refused() {
    let mut entry = entries().remove(0);
    let store = entry
        .text
        .lines()
        .find(|line| line.contains("st.relaxed.sys.global.v2.u64"))
        .expect("a store")
        .to_owned();
    entry.text = entry.text.replacen(&store, &format!("{store}\n{store}"), 1);
    let error = named("entry-omitted").plant(&entry).unwrap_err();
    assert_eq!(error.message, "2 places changed, 1 expected");
}

#[test]
fn a_bug_that_is_there_cannot_be_planted_again() {
    for entry in entries()
        .into_iter()
        .filter(|entry| entry.name.contains("gather"))
    {
        for name in [
            "flag-poll-gpu",
            "barrier-before-flag",
            "ticket-relaxed",
            "entry-omitted",
            "slot-frozen",
        ] {
            let text = named(name).plant(&entry).expect("a mutant");
            assert!(
                named(name)
                    .plant(&Entry {
                        text,
                        ..entry.clone()
                    })
                    .is_err(),
                "{name}"
            );
        }
    }
}

#[test]
fn only_what_needs_other_signals_has_a_counterpart_besides_the_shipped_kernel() {
    for entry in entries() {
        let apart: Vec<_> = MUTATIONS
            .iter()
            .filter(|mutation| mutation.counterpart(&entry) != Ok(None))
            .collect();
        let names: Vec<_> = apart.iter().map(|mutation| mutation.name).collect();
        assert_eq!(names, ["entry-behind-data"]);
        let same = apart[0]
            .counterpart(&entry)
            .expect("a text")
            .is_some_and(|other| other.text == entry.text);
        let gathers = matches!(entry.family, Family::GatherPush | Family::GatherPull);
        assert_eq!(same, gathers, "{}", entry.name);
    }
}
