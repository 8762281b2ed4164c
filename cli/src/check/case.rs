//! One scenario of one collective, by one transport, in one world, or one scene of a kernel of one rank: many seeds on a
//! machine of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use slabfence::driver::{Device, Driver};
use slabfence::layout::Cause;
use slabfence_emu::held::{End, HeldError, Looked, Patience, Plan, Run};
use slabfence_emu::{Machine, MachineError, Profile};

use super::kernels::Way;
use super::local::{Scene, Stand};
use super::scenario::{Ending, Phase, Scenario};
use super::seat::{Seat, contract};
use super::settings::Settings;
use crate::failure::{Failure, RankError};
use crate::ranks;

/// The machine that everything is checked on unless another is asked for.
pub const PROFILE: &str = "h200-nvlink";
/// Of memory, bytes. The real 2 MiB would be filled and looked at for the few kilobytes that a rank needs of each kind.
const GRANULARITY: u64 = 64 << 10;

/// What comes behind a phase follows its run of this seed, whichever seeds were asked for: only then does a seed alone give
/// the same run again.
const SETTLED: u64 = 0;

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
    /// Readers of words that the detector had no room to remember.
    pub forgotten: u64,
    /// Warps beyond those that it tells apart.
    pub crowded: u64,
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
    let profile = Profile {
        granularity: GRANULARITY,
        ..profile.clone()
    };
    let none = |error: MachineError| match error {
        // Nothing was found: whoever runs this must give it more.
        MachineError::Host(_) => Failure::Use(format!("the emulated machine: {error}")),
        _ => fault(error.to_string()),
    };
    let machine = Machine::new(profile, devices).map_err(none)?;
    let api = machine.api().map_err(|error| fault(error.to_string()))?;
    Ok((machine, Driver::from_api(api)?))
}

/// Runs a scenario of a collective.
pub fn run(
    way: Way,
    world: u32,
    scenario: &Scenario,
    settings: &Settings,
) -> Result<Outcome, Failure> {
    let (machine, driver) = machine(world, &settings.profile()?)?;
    let contract = contract(way, world, scenario.channels.len());
    let ordinals: Vec<u32> = (0..world).collect();
    let seats = ranks::on_threads(&ordinals, |bootstrap, ordinal| {
        Seat::new(&driver, bootstrap, ordinal, &contract, scenario)
    });
    let mut seats = seats.map_err(|errors| Failure::of_ranks(&errors, world as usize))?;
    // Behind set-up, which tries the kernels itself and would wait for those that never end.
    replace(&machine, settings)?;
    let mut outcome = Outcome::default();
    for (number, phase) in scenario.phases.iter().enumerate() {
        let last = number + 1 == scenario.phases.len();
        let lost = explore(&machine, &mut seats, phase, settings, last, &mut outcome)?;
        if lost {
            LOST.fetch_add(1, Ordering::Relaxed);
            return Ok(outcome);
        }
        if outcome.bad.is_some() {
            break;
        }
        match phase.ending {
            Ending::Right => {}
            Ending::Retired => all(seats.iter_mut(), |seat| seat.reuse(scenario))?,
            Ending::Raised(epoch) => all(seats.iter_mut(), |seat| seat.reset_above(epoch))?,
            Ending::Away | Ending::Tripped | Ending::Mismatch => {
                all(seats.iter_mut(), |seat| seat.reset_above(0))?
            }
        }
    }
    let closed = all(seats, Seat::close);
    match outcome.bad {
        // What broken kernels leave may be in the way.
        Some(_) => Ok(outcome),
        None => closed.map(|()| outcome),
    }
}

/// Runs a scene.
pub fn run_alone(scene: Scene, settings: &Settings) -> Result<Outcome, Failure> {
    let (machine, driver) = machine(1, &settings.profile()?)?;
    let mut stand = Stand::new(&Device::open(&driver, 0)?, scene)?;
    replace(&machine, settings)?;
    let mut held = machine.hold().map_err(held_error)?;
    stand.enqueue()?;
    let seeds = settings.seeds.iter().copied();
    let explored = held.explore(&settings.plan(), seeds, |looked| stand.check(looked));
    let explored = explored.map_err(held_error)?;
    Ok(Outcome {
        runs: explored.runs,
        forgotten: explored.forgotten,
        crowded: explored.crowded,
        bad: explored.bad,
    })
}

/// Lets somebody's entries take the place of shipped ones.
fn replace(machine: &Machine, settings: &Settings) -> Result<(), Failure> {
    let Some(text) = settings.text() else {
        return Ok(());
    };
    let replaced = machine.replace_entries(text);
    replaced.map_err(|error| Failure::Use(error.to_string()))?;
    Ok(())
}

fn held_error(error: HeldError) -> Failure {
    Failure::Fault(error.to_string())
}

/// Runs one phase by all seeds, and unless it is the last by the one that the next follows; whether a device is lost then.
fn explore(
    machine: &Machine,
    seats: &mut [Seat],
    phase: &Phase,
    settings: &Settings,
    last: bool,
    outcome: &mut Outcome,
) -> Result<bool, Failure> {
    let mut held = machine.hold().map_err(held_error)?;
    let seeds = &settings.seeds;
    for (seat, acts) in seats.iter_mut().zip(&phase.acts) {
        seat.enqueue(acts)?;
    }
    let plan = settings.plan();
    let timed = Plan {
        patience: Patience::Time,
        ..plan.clone()
    };
    // Rows of another operation that lie in the slot are no fault of the kernel: before tags are compared it may read them.
    let blind = Plan {
        detect: false,
        ..plan.clone()
    };
    let plan = match phase.ending {
        Ending::Right | Ending::Retired | Ending::Raised(_) | Ending::Tripped => &plan,
        Ending::Away => &timed,
        Ending::Mismatch => &blind,
    };
    let seated = seats.iter().zip(&phase.acts);
    let mut check = |looked: &Looked<'_>| {
        let mut seated = seated.clone();
        seated.try_for_each(|(seat, acts)| seat.check(phase, acts, looked))?;
        if phase.ending == Ending::Mismatch {
            let causes: Result<Vec<_>, _> = seats.iter().map(Seat::cause).collect();
            if !causes?.contains(&Some(Cause::TagMismatch)) {
                return Err("no rank has seen that tags differ".to_owned());
            }
        }
        Ok(())
    };
    let explored = held.explore(plan, seeds.iter().copied(), &mut check);
    let explored = explored.map_err(held_error)?;
    outcome.runs += explored.runs;
    outcome.forgotten += explored.forgotten;
    outcome.crowded += explored.crowded;
    let mut bad = explored.bad;
    if bad.is_none() && !last && seeds.last() != Some(&SETTLED) {
        let settled = held.explore(plan, [SETTLED], check).map_err(held_error)?;
        bad = settled.bad;
    }
    let Some(bad) = bad else {
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

#[cfg(test)]
mod tests {
    use slabfence_emu_mutants::shipped;

    use super::super::kernels::Collective;
    use super::super::scenario::scenarios;
    use super::*;

    /// A gather that is right in the phase of small epochs, in which every warp leaves the time in a word that no reset
    /// touches, and in the next one counts to what it finds there and looks at the epoch with an ordinary load.
    fn late_bug() -> String {
        const BUG: &str = "
{
	.reg .pred %late, %more;
	.reg .b64 %local, %word, %seen;
	ld.param.u64 %local, [sf_gather_push_param_0+96];
	ld.relaxed.gpu.global.u64 %word, [%local];
	setp.ge.u64 %late, %word, 5;
	@%late bra LATE;
	mov.u64 %word, %clock64;
	st.relaxed.gpu.global.u64 [%local+512], %word;
	bra ON;
LATE:
	ld.global.u64 %seen, [%local];
	ld.relaxed.gpu.global.u64 %word, [%local+512];
	and.b64 %word, %word, 63;
AGAIN:
	setp.ne.u64 %more, %word, 0;
	sub.s64 %word, %word, 1;
	@%more bra AGAIN;
ON:
";
        let entries = shipped().expect("the shipped entries");
        let gather = entries.iter().find(|entry| entry.name == "sf_gather_push");
        let text = &gather.expect("a shipped entry").text;
        text.replacen("\n{\n", BUG, 1)
    }

    #[test]
    fn what_is_found_behind_a_reset_is_found_again_by_its_seed_alone() {
        let all = scenarios(Collective::Gather, 2);
        let scenario = all.iter().find(|one| one.name == "poison-and-reset");
        let scenario = scenario.expect("a scenario of two phases");
        let run = |seeds: &[u64]| {
            let settings = Settings {
                seeds: seeds.to_vec(),
                ptx: Some(("late.ptx".into(), late_bug())),
                profile: None,
                kernel_boundary: true,
                resident: None,
            };
            let outcome = run(Way::Push, 2, scenario, &settings).expect("a machine");
            let bad = outcome.bad.expect("an ordinary load of the epoch");
            let rules: Vec<String> = bad.findings.iter().map(|f| f.rule.to_string()).collect();
            assert!(rules.iter().all(|rule| rule == "weak-signal"), "{rules:?}");
            // All seeds of the first phase come before the second.
            assert_eq!(outcome.runs, seeds.len() as u64 + 1);
            (bad.seed, bad.executed, bad.elapsed, bad.visible, bad.trace)
        };
        let alone = run(&[3]);
        assert_eq!(alone.0, 3);
        assert_eq!(run(&[3, 4, 5]), alone);
        assert_eq!(run(&[3, 4, 0]), alone);
    }
}
