//! Shipped kernels with known bugs, run by ranks that go through the library.

use std::collections::BTreeSet;
use std::mem::offset_of;

use crate::held::{Seat, close, compare, reset_above, seats};
use crate::probe::machine;
use crate::shape::Shape;
use slabfence::channel::Contract;
use slabfence::health::Health;
use slabfence::layout::{Cause, DType, LocalBlock, Transport, started_warps};
use slabfence_emu::held::{End, Looked, Patience, Plan, Policy, Run};
use slabfence_emu_mutants::{
    EQUIVALENT, Entry, Family, MUTATIONS, Mutation, Scenario, mutation, shipped,
};

/// Seeds within which every bug must be found.
const SEEDS: u64 = 20;
/// Heads of a rank.
const HEADS: u32 = 2;
/// Gather and reduce-scatter of two CTAs or more, then of one.
const SHAPES: [Shape; 4] = [
    Shape::gather(DType::Bf16, 12, HEADS, 256),
    Shape::gather(DType::Bf16, 2, HEADS, 256),
    Shape::reduce(DType::Bf16, 12, HEADS, 256),
    Shape::reduce(DType::Bf16, 2, HEADS, 256),
];

/// The entries that so many ranks run.
fn entries(pushes: bool, world: u32) -> Vec<Entry> {
    let reduces = match world {
        ..=2 => "_bf16_w2",
        3..=4 => "_bf16_w4",
        _ => "_bf16_w16",
    };
    let used = |entry: &Entry| {
        let gathers = matches!(entry.family, Family::GatherPush | Family::GatherPull);
        entry.family.pushes() == pushes && (gathers || entry.name.ends_with(reduces))
    };
    shipped().unwrap().into_iter().filter(used).collect()
}

/// What rank `rank` enqueues: indices of shapes.
fn operations(scenario: Scenario, family: Family, rank: usize) -> Vec<usize> {
    let reduces = matches!(family, Family::ReducePush | Family::ReducePull);
    let large = if reduces { 2 } else { 0 };
    let small = large + 1;
    let other = 3 - large;
    match scenario {
        Scenario::Single => vec![large],
        Scenario::EqualLowHalves | Scenario::Tripped => vec![large; 2],
        Scenario::Reuse => vec![large; 4],
        Scenario::Grids => vec![large, small, large, small, large],
        Scenario::HighEpochs => vec![large; 4],
        Scenario::Mismatch => vec![if rank == 0 { large } else { other }],
    }
}

/// Whether every rank must end with a verdict.
fn fails(scenario: Scenario) -> bool {
    matches!(scenario, Scenario::Mismatch | Scenario::Tripped)
}

/// How many warps of earlier operations run, as the counters of a rank say.
fn warps_that_run(scenario: Scenario, rank: usize) -> u64 {
    u64::from(scenario == Scenario::Tripped && rank == 0)
}

fn check(scenario: Scenario, seats: &[Seat], looked: &Looked<'_>) -> Result<(), String> {
    for (rank, seat) in seats.iter().enumerate() {
        let retired = seat.retired().start;
        let started = retired - offset_of!(LocalBlock, retired) as u64
            + offset_of!(LocalBlock, started) as u64;
        let word = |address| {
            let mut bytes = [0; 8];
            let read = looked.read(address, &mut bytes);
            read.then_some(u64::from_le_bytes(bytes))
        };
        let started = word(started).map(started_warps);
        let running = warps_that_run(scenario, rank);
        let expected = word(retired).map(|retired| retired.wrapping_add(running));
        if started.is_none() || started != expected {
            return Err("counters".to_owned());
        }
    }
    if !fails(scenario) {
        return compare(seats);
    }
    let right = seats.iter().all(|seat| {
        let failed = matches!(seat.pool.health(), Ok(Health::Failed));
        let last = seat.last_cause(looked);
        failed && (scenario != Scenario::Tripped || last == Some(Cause::Skipped))
    });
    if right {
        Ok(())
    } else {
        Err("verdict".to_owned())
    }
}

fn names(run: &Run) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = run
        .findings
        .iter()
        .map(|finding| finding.rule.to_string())
        .collect();
    match &run.end {
        End::Complete => {}
        End::Deadlock(_) => _ = found.insert("deadlock".to_owned()),
        End::Fault(words) => _ = found.insert(format!("fault: {words}")),
        End::Unfinished(_) => _ = found.insert("unfinished".to_owned()),
    }
    found.extend(run.wrong.clone());
    found
}

/// Who runs what.
#[derive(Clone, Copy, Debug)]
struct Case {
    policy: Policy,
    family: Family,
    world: u32,
}

/// The first run of kernels with something to find.
fn explore(case: Case, scenario: Scenario, texts: &[String]) -> Option<Run> {
    let Case {
        policy,
        family,
        world,
    } = case;
    let transport = if family.pushes() {
        Transport::Push
    } else {
        Transport::Pull
    };
    let (machine, driver) = machine(world);
    let contract = Contract {
        transport,
        ..Contract::new(HEADS * world, 256, 256, 12)
    };
    let epoch = match scenario {
        Scenario::HighEpochs => (1 << 31) - 2,
        _ => 2,
    };
    let seats = seats(&driver, world, &contract, &SHAPES, 6, epoch);
    let mut rounds = 0;
    if scenario == Scenario::EqualLowHalves {
        rounds = 2;
        for (round, index) in (0..).zip(operations(scenario, family, 0)) {
            seats.iter().for_each(|seat| seat.eager(round, index));
        }
        reset_above(&seats, epoch + (1 << 32));
    }
    for (rank, seat) in seats.iter().enumerate() {
        seat.say_that_warps_run(warps_that_run(scenario, rank));
    }
    // Behind set-up, which tries the kernels itself.
    for text in texts {
        machine.replace_entries(text).unwrap();
    }
    let mut held = machine.hold().unwrap();
    for (rank, seat) in seats.iter().enumerate() {
        for (round, index) in (rounds..).zip(operations(scenario, family, rank)) {
            seat.eager(round, index);
        }
    }
    let plan = Plan::new(policy);
    let look = |looked: &Looked<'_>| check(scenario, &seats, looked);
    let bad = held.explore(&plan, 0..SEEDS, look).unwrap().bad;
    // Time ends every wait, so that the devices are at rest and the pools can be closed.
    let end = bad.as_ref().map_or(End::Complete, |bad| match bad.end {
        End::Deadlock(_) => {
            held.run(
                &Plan {
                    patience: Patience::Time,
                    ..plan
                },
                bad.seed,
            )
            .unwrap()
            .end
        }
        ref end => end.clone(),
    });
    drop(held);
    // A device that is lost takes the machine's place in this process with it.
    if end == End::Complete {
        close(seats);
    }
    bad
}

/// Plants every bug in what two ranks run of a family, and runs the same without, by a policy.
///
/// # Panics
///
/// When a bug is not found, or something is found without: these are tests.
pub fn every_bug_is_found_and_nothing_else(policy: Policy, family: Family) {
    let case = Case {
        policy,
        family,
        world: 2,
    };
    let entries = entries(family.pushes(), case.world);
    let mut played = BTreeSet::new();
    for mutation in MUTATIONS {
        let right = |entry: &Entry| {
            let counterpart = mutation.counterpart(entry).expect("a place for the bug");
            counterpart.unwrap_or_else(|| entry.clone()).text
        };
        let right: Vec<String> = entries.iter().map(right).collect();
        if played.insert((mutation.scenario, right.clone())) {
            let bad = explore(case, mutation.scenario, &right);
            assert!(bad.is_none(), "{:?}: {bad:?}", mutation.scenario);
        }
        is_found(case, mutation, &entries);
    }
    assert_eq!(played.len(), 7, "every scenario once");
    for change in EQUIVALENT {
        let text = |entry| change.plant(entry).expect("a place for the change");
        let texts: Vec<String> = entries.iter().map(text).collect();
        for scenario in [Scenario::Reuse, change.scenario] {
            let bad = explore(case, scenario, &texts);
            assert!(bad.is_none(), "`{}`: {bad:?}", change.name);
        }
    }
}

/// Plants some bugs in what more ranks run of a family. `slabfence check` runs as many ranks without.
///
/// # Panics
///
/// When a bug is not found, or there is none of such a name: these are tests.
pub fn these_bugs_are_found(names: &[&str], family: Family, world: u32) {
    let case = Case {
        policy: Policy::Random,
        family,
        world,
    };
    let entries = entries(family.pushes(), world);
    for name in names {
        is_found(case, mutation(name).expect("a known bug"), &entries);
    }
}

fn is_found(case: Case, mutation: &Mutation, entries: &[Entry]) {
    let wrong = |entry| mutation.plant(entry).expect("a place for the bug");
    let wrong: Vec<String> = entries.iter().map(wrong).collect();
    let bad = explore(case, mutation.scenario, &wrong);
    let found = bad.as_ref().map(names).unwrap_or_default();
    let expected = mutation.rules.iter().any(|&rule| found.contains(rule));
    assert!(
        expected,
        "`{}` is not found in {SEEDS} seeds of {case:?}, only {found:?}",
        mutation.name
    );
}
