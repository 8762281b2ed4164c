//! Every shipped kernel with each of the known bugs, and without.

use core::mem::offset_of;
use std::collections::{BTreeMap, BTreeSet};

use crate::support::machine::{End, Schedule, Stream, run};
use crate::support::memory::Memory;
use crate::support::shipped::Collective;
use crate::support::{checker, memory};
use slabfence::layout::{Cause, LocalBlock, started_warps};
use slabfence_emu_mutants::{EQUIVALENT, Entry, Family, MUTATIONS, Scenario, mutation, shipped};

/// Seeds within which every bug must be found.
const SEEDS: u64 = 20;
/// Epoch of a fresh channel's first operation.
const EARLIER: u64 = 2;

/// All entries of a family, or of the one that makes the other operation with the same transport.
fn entries(family: Family) -> Vec<Entry> {
    let entries = shipped().unwrap().into_iter();
    entries.filter(|entry| entry.family == family).collect()
}

fn world(entry: &Entry) -> u32 {
    match entry.name.rsplit_once("_w") {
        Some((_, "4")) => 3,
        Some((_, "16")) => 5,
        _ => 2,
    }
}

/// An operation whose rows are those of two CTAs.
fn collective(entry: &Entry, world: u32) -> Collective {
    Collective {
        ptx: entry.text.clone(),
        batch: 3,
        heads: 8,
        ..Collective::new(entry.family.image(), entry.name, world)
    }
}

/// What a scenario runs.
struct Play {
    scenario: Scenario,
    all: Collective,
    epoch: u64,
    streams: Vec<Stream>,
    /// Whether regions of signals say which slot they belong to.
    labelled: bool,
}

impl Play {
    /// `plant` makes the texts.
    fn new(scenario: Scenario, entry: &Entry, plant: impl Fn(&Entry) -> Entry) -> Play {
        let world = world(entry);
        let mut all = collective(&plant(entry), world);
        all.grids = match scenario {
            Scenario::Single | Scenario::Mismatch => vec![2],
            Scenario::EqualLowHalves | Scenario::Tripped => vec![2; 2],
            Scenario::Reuse => vec![2; 4],
            Scenario::Grids => vec![2, 1, 2, 1, 2],
            Scenario::HighEpochs => vec![2; 4],
        };
        let epoch = match scenario {
            Scenario::HighEpochs => (1 << 31) - 2,
            Scenario::EqualLowHalves => EARLIER + (1 << 32),
            _ => EARLIER,
        };
        let mut streams = all.streams();
        if differ(scenario) {
            let family = match entry.family {
                Family::GatherPush => Family::ReducePush,
                Family::GatherPull => Family::ReducePull,
                Family::ReducePush => Family::GatherPush,
                Family::ReducePull => Family::GatherPull,
            };
            let fits =
                |other: &Entry| other.family < Family::ReducePush || self::world(other) >= world;
            let other = entries(family).into_iter().find(fits).unwrap();
            let mut others = collective(&plant(&other), world);
            others.tag = !all.tag;
            others.grids = all.grids.iter().map(|_| 1).collect();
            streams.truncate(1);
            streams.extend(others.streams().into_iter().skip(1));
        }
        Play {
            scenario,
            all,
            epoch,
            streams,
            labelled: true,
        }
    }

    /// Names of all that is found under a seed, with the reports.
    fn run(&self, seed: u64) -> (BTreeSet<&'static str>, String) {
        let mut regions = self.all.regions();
        let signals = regions.iter_mut().filter(|region| region.kind.is_signal());
        if !self.labelled {
            signals.for_each(|region| region.slot = None);
        }
        let mut memory = memory(&regions);
        for rank in 0..self.all.world {
            Collective::begin_at(&memory, rank, self.epoch);
            let running = self.warps_that_run(rank);
            Collective::say_that_warps_run(&memory, rank, running, self.epoch);
            if self.scenario == Scenario::EqualLowHalves {
                (EARLIER..EARLIER + 2).for_each(|epoch| self.all.leave(&memory, rank, epoch));
            }
        }
        let schedule = Schedule {
            fuel: 100,
            ..Schedule::of(seed)
        };
        let checker = checker(self.all.options.clone(), &regions);
        let outcome = run(&mut memory, checker, &self.streams, schedule);
        let mut text = outcome.text();
        let mut found: BTreeSet<_> = outcome
            .rules()
            .into_iter()
            .map(|rule| rule.name())
            .collect();
        match &outcome.end {
            End::Done => found.extend(self.afterwards(&memory)),
            End::Stuck => _ = found.insert(slabfence_emu_check::Rule::Deadlock.name()),
            End::Fault(fault, finding) => {
                found.insert(
                    finding
                        .as_ref()
                        .map_or("fault", |finding| finding.rule.name()),
                );
                text += &fault.to_string();
            }
        }
        (found, text)
    }

    /// How many warps of earlier operations run, as the counters of a rank say.
    fn warps_that_run(&self, rank: u32) -> u64 {
        u64::from(self.scenario == Scenario::Tripped && rank == 0)
    }

    /// What is wrong with the counters and verdicts that the kernels left.
    fn afterwards(&self, memory: &Memory) -> BTreeSet<&'static str> {
        let mut found = BTreeSet::new();
        for rank in 0..self.all.world {
            let local = Collective::base(rank);
            let word = |offset: usize| memory.get(local + offset as u64);
            let started = started_warps(word(offset_of!(LocalBlock, started)));
            let retired = word(offset_of!(LocalBlock, retired));
            if started != retired + self.warps_that_run(rank) {
                found.insert("counters");
            }
            if fails(self.scenario) != (word(offset_of!(LocalBlock, status)) != 0) {
                found.insert("verdict");
            }
            let reported = memory.get(Collective::last_cause(rank)) as u32;
            if self.scenario == Scenario::Tripped && reported != Cause::Skipped as u32 {
                found.insert("verdict");
            }
        }
        found
    }
}

/// Whether the ranks are in different operations.
fn differ(scenario: Scenario) -> bool {
    scenario == Scenario::Mismatch
}

/// Whether every rank must end with a verdict.
fn fails(scenario: Scenario) -> bool {
    matches!(scenario, Scenario::Mismatch | Scenario::Tripped)
}

/// Every bug of every entry of a family is found.
fn found(family: Family) {
    for entry in entries(family) {
        for mutation in MUTATIONS {
            let play = Play::new(mutation.scenario, &entry, |entry| Entry {
                text: mutation.plant(entry).unwrap(),
                ..entry.clone()
            });
            let mut all = BTreeSet::new();
            let seed = (0..SEEDS).find(|&seed| {
                let (found, _) = play.run(seed);
                let expected = mutation.rules.iter().any(|rule| found.contains(rule));
                all.extend(found);
                expected
            });
            assert!(
                seed.is_some(),
                "`{}` of `{}` is not found in {SEEDS} seeds, only {all:?}",
                mutation.name,
                entry.name
            );
        }
    }
}

/// Every entry of a family is clean where its mutants are not.
fn clean(family: Family) {
    for entry in entries(family) {
        clean_entry(&entry);
    }
}

fn clean_entry(entry: &Entry) {
    let mut played = BTreeSet::new();
    for mutation in MUTATIONS {
        let right = |entry: &Entry| {
            mutation
                .counterpart(entry)
                .unwrap()
                .unwrap_or_else(|| entry.clone())
        };
        if !played.insert((mutation.scenario, right(entry).text)) {
            continue;
        }
        clean_play(&Play::new(mutation.scenario, entry, right), entry.name);
    }
    assert_eq!(played.len(), 7, "{}: every scenario once", entry.name);
}

fn clean_play(play: &Play, name: &str) {
    for seed in 0..SEEDS {
        let (found, text) = play.run(seed);
        assert!(
            found.is_empty(),
            "{name}, {:?}, seed {seed}: {found:?}\n{text}",
            play.scenario
        );
    }
}

#[test]
fn what_looks_like_a_bug_and_is_none_is_clean_in_every_form_of_the_kernels() {
    // Of element types one: no signal depends on them.
    let forms: BTreeMap<_, _> = shipped()
        .unwrap()
        .into_iter()
        .map(|entry| ((entry.family, world(&entry)), entry))
        .collect();
    assert_eq!(forms.len(), 8);
    for mutation in EQUIVALENT {
        for entry in forms.values().cloned() {
            let play = Play::new(mutation.scenario, &entry, |entry| Entry {
                text: mutation.plant(entry).unwrap(),
                ..entry.clone()
            });
            clean_play(&play, &format!("`{}` of `{}`", mutation.name, entry.name));
        }
    }
}

#[test]
fn signals_that_stay_in_a_slot_are_found_by_who_uses_them_where_no_slot_is_named() {
    let mutation = mutation("signal-slot-frozen").unwrap();
    for family in Family::ALL {
        let entry = entries(family).remove(0);
        let unlabelled = |plant: &dyn Fn(&Entry) -> String| Play {
            labelled: false,
            ..Play::new(mutation.scenario, &entry, |entry| Entry {
                text: plant(entry),
                ..entry.clone()
            })
        };
        let mutant = unlabelled(&|entry| mutation.plant(entry).unwrap());
        let mut all = BTreeSet::new();
        for seed in 0..SEEDS {
            let (found, text) = mutant.run(seed);
            assert!(!found.is_empty(), "{}: {seed}", entry.name);
            assert!(!found.contains("wrong-slot"), "{text}");
            all.extend(found);
        }
        assert!(
            all.contains("unordered-overwrite"),
            "{}: {all:?}",
            entry.name
        );
        clean_play(&unlabelled(&|entry| entry.text.clone()), entry.name);
    }
}

#[test]
fn every_bug_of_pushing_gathers_is_found() {
    found(Family::GatherPush);
}

#[test]
fn every_bug_of_pulling_gathers_is_found() {
    found(Family::GatherPull);
}

#[test]
fn every_bug_of_pushing_reductions_is_found() {
    found(Family::ReducePush);
}

#[test]
fn every_bug_of_pulling_reductions_is_found() {
    found(Family::ReducePull);
}

#[test]
fn pushing_gathers_are_clean_where_their_mutants_are_not() {
    clean(Family::GatherPush);
}

#[test]
fn pulling_gathers_are_clean_where_their_mutants_are_not() {
    clean(Family::GatherPull);
}

#[test]
fn pushing_reductions_are_clean_where_their_mutants_are_not() {
    clean(Family::ReducePush);
}

#[test]
fn pulling_reductions_are_clean_where_their_mutants_are_not() {
    clean(Family::ReducePull);
}
