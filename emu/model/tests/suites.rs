//! The model against litmus tests: the project's own, and the published ones of Dat3M where they are at hand.

mod common;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use common::{DAT3M, files, judge, own, root};
use slabfence_emu_model::Rules;
use slabfence_emu_model::litmus::{Judgement, KNOWN, Suite};

fn known_of(is_chosen: impl Fn(&str) -> bool) -> BTreeSet<&'static str> {
    let names = KNOWN.iter().map(|(name, _)| *name);
    names.filter(|name| is_chosen(name)).collect()
}

fn is_own(name: &str) -> bool {
    name.starts_with("shapes/") || name.starts_with("protocol/")
}

#[test]
fn our_own_tests_have_the_expected_verdicts() {
    let judged = judge(&own("expected.csv"), Rules::ASSUMED);
    let rejected = files(&judged, |judgement| !judgement.is_accepted());
    assert_eq!(rejected, Vec::<&str>::new());
    let missed = files(&judged, |judgement| {
        matches!(judgement, Judgement::Misses(_))
    });
    assert_eq!(
        missed.into_iter().collect::<BTreeSet<_>>(),
        known_of(is_own)
    );
    assert_eq!(
        files(&judged, |judgement| matches!(
            judgement,
            Judgement::Skipped(_)
        )),
        Vec::<&str>::new()
    );
}

#[test]
fn without_the_assumption_on_kernel_boundaries_the_protocol_races() {
    let csv = own("expected-without-kernel-boundary.csv");
    let judged = judge(&csv, Rules::PTX);
    let different = files(&judged, |judgement| *judgement != Judgement::Agrees);
    assert_eq!(different, Vec::<&str>::new());
    // The other position of the switch, on the same expectations.
    let judged = judge(&csv, Rules::ASSUMED);
    let different = files(&judged, |judgement| *judgement != Judgement::Agrees);
    let decided = [
        "protocol/reuse-entry.litmus",
        "protocol/boundary-read.litmus",
        "protocol/boundary-write.litmus",
        "protocol/boundary-fence.litmus",
        "protocol/boundary-release.litmus",
    ];
    assert_eq!(different, decided);
}

#[test]
fn every_one_of_our_files_has_an_expectation() {
    let suite = Suite::read(&own("expected.csv")).expect("our expectations");
    let listed: BTreeSet<String> = suite.expectations.iter().map(|e| e.file.clone()).collect();
    let mut present = BTreeSet::new();
    for folder in ["shapes", "protocol"] {
        for entry in std::fs::read_dir(own(folder)).expect("our tests") {
            let name = entry.expect("an entry").file_name();
            present.insert(format!(
                "{folder}/{}",
                name.to_str().expect("a name of text")
            ));
        }
    }
    assert_eq!(present, listed);
    for expectation in &suite.expectations {
        let judges_all = expectation.race.is_some() && expectation.stuck.is_some();
        assert!(
            judges_all,
            "{}: no verdict on races or stuck",
            expectation.file
        );
    }
}

/// Names the folder in which Dat3M's tests lie: then they must be there.
const NAMED: &str = "SLABFENCE_LITMUS";

/// The expectations of Dat3M's tests, which are not part of this repository. They lie in the folder that `named` says, or
/// else in a folder `shared/litmus` in one of `places`, or nowhere.
fn dat3m(named: Option<PathBuf>, places: &Path) -> Result<Option<PathBuf>, String> {
    const CSV: &str = "dat3m/PTXv6_0-expected.csv";
    let Some(folder) = named else {
        let places = places
            .ancestors()
            .map(|folder| folder.join("shared/litmus").join(CSV));
        return Ok(places.into_iter().find(|path| path.is_file()));
    };
    let csv = folder.join(CSV);
    match csv.is_file() {
        true => Ok(Some(csv)),
        false => Err(format!("{NAMED}={}: it has no {CSV}", folder.display())),
    }
}

/// Standard error itself: what a test prints is shown only if it fails.
fn say(words: &str) {
    let mut err = std::io::stderr().lock();
    writeln!(err, "\n{words}\n").expect("standard error takes it");
}

#[test]
fn a_named_folder_without_tests_is_an_error_and_no_folder_none() {
    let empty = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-litmus-tests");
    std::fs::create_dir_all(&empty).expect("a folder for the test");
    for folder in [&empty, &empty.join("absent")] {
        let words = format!(
            "SLABFENCE_LITMUS={}: it has no dat3m/PTXv6_0-expected.csv",
            folder.display()
        );
        assert_eq!(dat3m(Some(folder.clone()), &root()), Err(words));
    }
    // A relative path has no ancestors beyond the test's own folder.
    assert_eq!(dat3m(None, Path::new("no-litmus-tests")), Ok(None));
    let csv = empty.join("shared/litmus/dat3m/PTXv6_0-expected.csv");
    std::fs::create_dir_all(csv.parent().expect("a folder")).expect("folders for the test");
    std::fs::write(&csv, "").expect("a file of the test");
    let found = dat3m(Some(empty.join("shared/litmus")), Path::new("elsewhere"));
    let beside = dat3m(None, &empty.join("in/a/checkout"));
    std::fs::remove_dir_all(&empty).expect("the folder of the test");
    assert_eq!((found, beside), (Ok(Some(csv.clone())), Ok(Some(csv))));
}

#[test]
fn where_dat3m_is_at_hand_its_tests_agree_but_for_the_known_ones() {
    let root = root().canonicalize().expect("the repository");
    let named = std::env::var_os(NAMED).map(PathBuf::from);
    let Some(csv) = dat3m(named, &root).unwrap_or_else(|error| panic!("{error}")) else {
        say(&format!(
            "NOTHING WAS TESTED of Dat3M's litmus tests: there is no shared/litmus in or beside the repository. \
             {NAMED} names a folder that must be there."
        ));
        return;
    };
    let judged = judge(&csv, Rules::ASSUMED);
    let agreeing = files(&judged, |judgement| *judgement == Judgement::Agrees).len();
    assert_eq!((judged.len(), agreeing), DAT3M);
    let others = files(&judged, |judgement| *judgement != Judgement::Agrees);
    assert_eq!(
        others.into_iter().collect::<BTreeSet<_>>(),
        known_of(|name| !is_own(name))
    );
    // None is unsound: each of the others only misses, for a reason.
    let missed = files(&judged, |judgement| {
        matches!(judgement, Judgement::Misses(Some(_)))
    });
    assert_eq!(missed.len(), judged.len() - agreeing);
    // Their verdicts do not depend on the assumption: none of them has a kernel boundary.
    assert_eq!(judge(&csv, Rules::PTX), judged);
    let hang = |one: &&slabfence_emu_model::litmus::Judged| {
        let outcomes = one.outcomes.as_ref().expect("none is skipped");
        one.judgement == Judgement::Agrees && outcomes.finals.is_empty()
    };
    let hanging: Vec<&str> = judged
        .iter()
        .filter(hang)
        .map(|one| one.expectation.file.as_str())
        .collect();
    assert_eq!(
        hanging,
        [
            "Manual/PC-bar-sync-sync-3.litmus",
            "Manual/PC-bar-sync-sync-4.litmus",
            "Barrier/quorum1-hang.litmus",
            "Barrier/quorum2-hang.litmus",
            "Barrier/quorum3-fail.litmus",
            "Barrier/quorum4-fail.litmus",
        ]
    );
}
