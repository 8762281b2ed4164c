//! The lists of `docs/memory-model.md`.

mod common;

use std::collections::BTreeSet;
use std::fmt::Write;

use common::{DAT3M, own, root};
use slabfence_emu_model::litmus::{KNOWN, Reason, Suite};

const BEGIN: &str = "<!-- begin: differences. SLABFENCE_WRITE_DOCS=1 cargo test -p slabfence-emu-model writes them. -->\n";
const END: &str = "<!-- end: differences -->\n";

fn table() -> String {
    let own = Suite::read(&own("expected.csv"))
        .expect("our expectations")
        .expectations;
    let is_own = |file: &str| own.iter().any(|expectation| expectation.file == file);
    let differences = KNOWN.iter().filter(|(file, _)| is_own(file)).count();
    let (dat3m, agree) = DAT3M;
    let mut text = format!(
        "| suite | tests | agree | forbidden and reached | allowed and not reached | skipped |\n|---|---|---|---|---|---|\n\
         | Dat3M, PTX 6.0 | {dat3m} | {agree} | 0 | {} | 0 |\n\
         | our own | {} | {} | 0 | {differences} | 0 |\n\n\
         What PTX allows and the model does not reach:\n\n| tests | reason |\n|---|---|\n",
        dat3m - agree,
        own.len(),
        own.len() - differences,
    );
    let reasons: BTreeSet<Reason> = KNOWN.iter().map(|(_, reason)| *reason).collect();
    for reason in reasons {
        let files = KNOWN.iter().filter(|(_, other)| *other == reason);
        let files: Vec<String> = files
            .map(|(file, _)| format!("`{}`", file.trim_end_matches(".litmus")))
            .collect();
        writeln!(text, "| {} | {reason} |", files.join(", ")).expect("text grows");
    }
    text
}

#[test]
fn the_page_lists_what_the_model_does_not_reach() {
    let page = root().join("docs/memory-model.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let (before, rest) = text.split_once(BEGIN).expect("the place of the lists");
    let (shown, after) = rest.split_once(END).expect("the end of the lists");
    let table = table();
    if std::env::var_os("SLABFENCE_WRITE_DOCS").is_some() {
        std::fs::write(&page, format!("{before}{BEGIN}{table}{END}{after}"))
            .expect("the page can be written");
    } else {
        assert_eq!(
            shown, table,
            "docs/memory-model.md is old: run SLABFENCE_WRITE_DOCS=1 cargo test -p slabfence-emu-model the_page"
        );
    }
}
