//! The model against litmus tests: the project's own, and the published ones of Dat3M where they are at hand.

mod common;

use std::collections::BTreeSet;
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

/// Dat3M's tests are not part of this repository: they lie in a folder `shared` in it or beside it, or nowhere.
fn dat3m() -> Option<PathBuf> {
    let root = root().canonicalize().expect("the repository");
    let places = root
        .ancestors()
        .map(|folder| folder.join("shared/litmus/dat3m/PTXv6_0-expected.csv"));
    places.into_iter().find(|path| Path::exists(path))
}

#[test]
fn where_dat3m_is_at_hand_its_tests_agree_but_for_the_known_ones() {
    let Some(csv) = dat3m() else {
        eprintln!("no shared/litmus/dat3m in or beside the repository: not run");
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
