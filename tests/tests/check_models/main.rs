//! The memory model and the detector are two implementations of one thing: where the model says that a litmus test has a
//! race, the detector finds it in kernels that do the same, and nowhere else.

mod kernel;
mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use kernel::Unfit;
use slabfence_emu_model::Rules;
use slabfence_emu_model::litmus::{Bounds, Litmus, Suite, explore};

/// Tests whose weak access the detector takes for a race with a strong write that its thread has read, though PTX orders the
/// two: that a write was observed it does not keep.
const STRICTER: [&str; 3] = [
    "shapes/observed.litmus",
    "shapes/observed-passed-on.litmus",
    "shapes/observed-chain.litmus",
];

/// Tests without a race of which not all schedules are run: some end in a deadlock or in a loop of polls, of others there are
/// too many.
const SAMPLED: [&str; 13] = [
    "shapes/bar-two.litmus",
    "shapes/bar-counted.litmus",
    "shapes/coww.litmus",
    "shapes/corr-two-readers.litmus",
    "shapes/lock.litmus",
    "protocol/push-one-flag.litmus",
    "protocol/line-first.litmus",
    "protocol/line-first-unchecked.litmus",
    "protocol/line-last.litmus",
    "protocol/line-last-unchecked.litmus",
    "protocol/packet-owner-scrub.litmus",
    "protocol/rank-missing.litmus",
    "protocol/poison.litmus",
];

/// What became of a suite's files.
#[derive(Debug, Default, PartialEq)]
struct Tally {
    compared: usize,
    unfit: BTreeMap<Unfit, usize>,
    sampled: Vec<String>,
    stricter: Vec<String>,
    different: Vec<String>,
}

/// Compares what the model and the detector say of all files of a suite.
fn compare(csv: &Path, rules: Rules) -> Tally {
    let suite = Suite::read(csv).unwrap_or_else(|error| panic!("{error}"));
    let mut tally = Tally::default();
    for file in suite.expectations.into_iter().map(|one| one.file) {
        let litmus = Litmus::read(&suite.folder.join(&file));
        let litmus = litmus.unwrap_or_else(|error| panic!("{error}"));
        let seen = match run::observe(&litmus, rules.kernel_boundary) {
            Ok(seen) => seen,
            Err(unfit) => {
                *tally.unfit.entry(unfit).or_default() += 1;
                continue;
            }
        };
        tally.compared += 1;
        let model = explore(&litmus, rules, true, Bounds::default());
        let races = model.races.expect("they were looked for");
        let races: BTreeSet<usize> = races.iter().map(|race| race.location).collect();
        // Interleavings are executions of the model, so what they come to is what it comes to.
        let reached = |values: &Vec<i64>| model.finals.contains_key(values);
        let same_ends =
            seen.finals.iter().all(reached) && (!seen.stuck || model.stuck == Some(true));
        match seen.races == races {
            _ if !same_ends || !seen.others.is_empty() || !model.complete => {
                tally.different.push(format!("{file}: {seen:?}"));
            }
            true if races.is_empty() && !seen.complete => tally.sampled.push(file),
            true => {}
            false if races.is_empty() && STRICTER.contains(&&*file) => tally.stricter.push(file),
            false => tally
                .different
                .push(format!("{file}: not {races:?}, but {seen:?}")),
        }
    }
    tally
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn own() -> PathBuf {
    root().join("testdata/litmus/slabfence/expected.csv")
}

/// What comes of the project's own files, under either assumption.
fn expected() -> Tally {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    Tally {
        compared: 138,
        unfit: BTreeMap::from([(Unfit::Host, 8), (Unfit::Edges, 1)]),
        sampled: names(&SAMPLED),
        stricter: names(&STRICTER),
        different: Vec::new(),
    }
}

/// Dat3M's tests, which are no part of this repository, where they lie in a folder `shared/litmus` in or beside it, or in
/// the one that `SLABFENCE_LITMUS` names: then they must be there.
fn dat3m() -> Option<PathBuf> {
    const CSV: &str = "dat3m/PTXv6_0-expected.csv";
    let root = root().canonicalize().expect("the repository");
    let beside = || root.ancestors().map(|folder| folder.join("shared/litmus"));
    if let Some(named) = std::env::var_os("SLABFENCE_LITMUS").map(PathBuf::from) {
        let csv = named.join(CSV);
        assert!(csv.is_file(), "SLABFENCE_LITMUS: no {}", csv.display());
        return Some(csv);
    }
    beside()
        .map(|folder| folder.join(CSV))
        .find(|csv| csv.is_file())
}

#[test]
fn the_detector_finds_races_where_the_model_has_them_and_nowhere_else() {
    assert_eq!(compare(&own(), Rules::ASSUMED), expected());
}

#[test]
fn so_it_does_without_the_assumption_on_kernel_boundaries() {
    assert_eq!(compare(&own(), Rules::PTX), expected());
}

#[test]
fn where_dat3m_is_at_hand_its_tests_race_in_the_detector_as_they_do_in_the_model() {
    let Some(csv) = dat3m() else {
        let mut err = std::io::stderr().lock();
        writeln!(err, "\nNOTHING WAS COMPARED of Dat3M's litmus tests.\n")
            .expect("standard error takes it");
        return;
    };
    let tally = compare(&csv, Rules::ASSUMED);
    assert_eq!(tally.different, Vec::<String>::new());
    assert_eq!(tally.stricter, Vec::<String>::new());
    let unfit = BTreeMap::from([(Unfit::Barrier, 6), (Unfit::Update, 4)]);
    assert_eq!((tally.compared, tally.unfit), (125, unfit));
}

#[test]
fn the_page_says_what_is_compared() {
    let page = root().join("docs/memory-model.md");
    let text = std::fs::read_to_string(page).expect("the page");
    let Tally {
        compared,
        unfit,
        sampled,
        stricter,
        ..
    } = expected();
    let files = compared + unfit.values().sum::<usize>();
    let said = format!(
        "Of our {files} tests {compared} are compared, {} of them by some schedules only.",
        sampled.len()
    );
    assert!(text.contains(&said), "{said}");
    for file in stricter {
        let name = file.trim_end_matches(".litmus");
        assert!(text.contains(&format!("`{name}`")), "{name}");
    }
}
