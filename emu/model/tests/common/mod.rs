//! Suites of litmus tests, run.

#![allow(dead_code, reason = "each test uses a part")]

use std::path::{Path, PathBuf};

use slabfence_emu_model::Rules;
use slabfence_emu_model::litmus::{Bounds, Judged, Judgement, Suite};

/// Tests of Dat3M's `PTXv6_0-expected.csv`, and how many of them agree.
pub const DAT3M: (usize, usize) = (135, 122);

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The project's own suite: one of its files of expectations.
pub fn own(csv: &str) -> PathBuf {
    root().join("testdata/litmus/slabfence").join(csv)
}

/// Judges all of a suite.
pub fn judge(csv: &Path, rules: Rules) -> Vec<Judged> {
    let suite = Suite::read(csv).unwrap_or_else(|error| panic!("{error}"));
    let judge = |expectation| suite.judge(expectation, rules, Bounds::default());
    let judged = suite.expectations.iter().map(judge);
    judged
        .map(|one| one.unwrap_or_else(|error| panic!("{error}")))
        .collect()
}

/// The files whose judgement is one of `wanted`, in the suite's order.
pub fn files(judged: &[Judged], wanted: impl Fn(&Judgement) -> bool) -> Vec<&str> {
    let chosen = judged.iter().filter(|one| wanted(&one.judgement));
    chosen.map(|one| one.expectation.file.as_str()).collect()
}
