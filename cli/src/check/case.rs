//! One scenario of one collective, by one transport, in one world: many seeds on a machine of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use slabfence::driver::Driver;
use slabfence_emu::held::{End, Patience, Plan, Policy, Run};
use slabfence_emu::{Machine, Profile};

use super::kernels::Pair;
use super::scenario::{Phase, Scenario};
use super::seat::{Seat, contract};
use crate::failure::{Failure, RankError};
use crate::ranks;

/// The machine that everything is checked on unless another is asked for.
pub const PROFILE: &str = "h200-nvlink";

/// Machines with a lost device so far. Pools on one cannot be closed, so each keeps its machine's place in the process.
static LOST: AtomicUsize = AtomicUsize::new(0);
/// Machines that may be lost before no more cases are begun.
const MOST_LOST: usize = 3;

/// Whether places for machines are running out.
pub fn too_many_lost() -> bool {
    LOST.load(Ordering::Relaxed) >= MOST_LOST
}

/// What came of a case.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Runs that were made.
    pub runs: u64,
    /// The first run with something to tell.
    pub bad: Option<Run>,
}

/// The profile of a name.
pub fn profile(name: &str) -> Result<Profile, Failure> {
    let known = Profile::NAMES.join(", ");
    let unknown = || Failure::Use(format!("there is no profile `{name}`, only {known}"));
    Profile::named(name).ok_or_else(unknown)
}

/// A machine of this many devices, with its driver.
pub fn machine(devices: u32, profile: &Profile) -> Result<(Machine, Driver), Failure> {
    let fault = |words: String| Failure::Fault(format!("the emulated machine: {words}"));
    let machine =
        Machine::new(profile.clone(), devices).map_err(|error| fault(error.to_string()))?;
    let api = machine.api().map_err(|error| fault(error.to_string()))?;
    Ok((machine, Driver::from_api(api)?))
}

/// How seeds schedule.
pub const PLAN: Plan = Plan::new(Policy::Random);

/// Runs a case. `text` takes the place of shipped entries.
pub fn run(
    pair: Pair,
    world: u32,
    scenario: &Scenario,
    seeds: &[u64],
    text: Option<&str>,
    profile: &Profile,
) -> Result<Outcome, Failure> {
    let (machine, driver) = machine(world, profile)?;
    let contract = contract(pair.transport, world, scenario.channels.len());
    let ordinals: Vec<u32> = (0..world).collect();
    let seats = ranks::on_threads(&ordinals, |bootstrap, ordinal| {
        Seat::new(&driver, bootstrap, ordinal, &contract, scenario)
    });
    let mut seats = seats.map_err(|errors| Failure::of_ranks(&errors, world as usize))?;
    // Behind set-up, which tries the kernels itself and would wait for those that never end.
    if let Some(text) = text {
        let replaced = machine.replace_entries(text);
        replaced.map_err(|error| Failure::Use(error.to_string()))?;
    }
    let mut outcome = Outcome::default();
    for phase in &scenario.phases {
        let lost = explore(&machine, &mut seats, phase, seeds, &mut outcome)?;
        if lost {
            LOST.fetch_add(1, Ordering::Relaxed);
            return Ok(outcome);
        }
        if outcome.bad.is_some() {
            break;
        }
        if phase.fails {
            all(seats.iter_mut(), Seat::reset)?;
        }
    }
    let closed = all(seats, Seat::close);
    match outcome.bad {
        // What broken kernels leave may be in the way.
        Some(_) => Ok(outcome),
        None => closed.map(|()| outcome),
    }
}

/// Runs one phase by all seeds; whether a device is lost then.
fn explore(
    machine: &Machine,
    seats: &mut [Seat],
    phase: &Phase,
    seeds: &[u64],
    outcome: &mut Outcome,
) -> Result<bool, Failure> {
    let held_error = |error: slabfence_emu::held::HeldError| Failure::Fault(error.to_string());
    let mut held = machine.hold().map_err(held_error)?;
    for (seat, acts) in seats.iter_mut().zip(&phase.acts) {
        seat.enqueue(acts)?;
    }
    let timed = Plan {
        patience: Patience::Time,
        ..PLAN
    };
    let plan = if phase.fails { &timed } else { &PLAN };
    let seated = seats.iter().zip(&phase.acts);
    let explored = held.explore(plan, seeds.iter().copied(), |looked| {
        let mut seated = seated.clone();
        seated.try_for_each(|(seat, acts)| seat.check(phase, acts, looked))
    });
    let explored = explored.map_err(held_error)?;
    outcome.runs += explored.runs;
    let Some(bad) = explored.bad else {
        return Ok(false);
    };
    // Time ends every wait of the protocol, so that the devices are at rest and the pools can be closed.
    let end = match &bad.end {
        End::Deadlock(_) => held.run(&timed, bad.seed).map_err(held_error)?.end,
        end => end.clone(),
    };
    outcome.bad = Some(bad);
    Ok(end != End::Complete)
}

/// Calls something collective on all ranks, each on a thread of its own.
fn all<T: Send>(
    seats: impl IntoIterator<Item = T>,
    body: impl Fn(T) -> slabfence::Result<()> + Sync,
) -> Result<(), Failure> {
    let body = &body;
    let outcomes: Vec<Result<(), RankError>> = thread::scope(|scope| {
        let spawn = |seat| scope.spawn(move || body(seat));
        let threads: Vec<_> = seats.into_iter().map(spawn).collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(outcome) => outcome.map_err(|error| RankError::from(&error)),
            Err(panic) => Err(RankError::fault(ranks::words_of(panic))),
        });
        joined.collect()
    });
    let world = outcomes.len();
    match ranks::gather(outcomes) {
        Ok(_) => Ok(()),
        Err(errors) => Err(Failure::of_ranks(&errors, world)),
    }
}
