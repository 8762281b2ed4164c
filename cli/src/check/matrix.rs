//! All scenarios in all worlds, on as many threads as there are processors.

use std::io::{IsTerminal, Write};
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use super::case::{self, Outcome};
use super::finding::Found;
use super::kernels::{Pair, Way};
use super::local::{Scene, scenes};
use super::report::{Line, Report, Subject};
use super::scenario::{Scenario, scenarios};
use super::settings::Settings;
use crate::failure::Failure;

/// Machines that live at once; a process has places for eight.
const MOST_THREADS: usize = 4;
/// Cases with a finding after which a pair is given up: more of them tell little more.
const MOST_BAD: usize = 3;

/// What has a machine of its own.
enum Case {
    /// A scenario of a collective for ranks of a world.
    Ranks(Way, u32, Scenario),
    /// A scene of one rank.
    One(Scene),
}

impl Case {
    fn all(pair: Pair, worlds: &[u32]) -> Vec<Self> {
        let (Some(op), Some(way)) = (pair.op.collective(), pair.transport) else {
            return scenes(pair.op).into_iter().map(Self::One).collect();
        };
        let of = |&world: &u32| {
            let all = scenarios(op, world).into_iter();
            all.map(move |scenario| Self::Ranks(way, world, scenario))
        };
        worlds.iter().flat_map(of).collect()
    }

    fn world(&self) -> u32 {
        match self {
            Self::Ranks(_, world, _) => *world,
            Self::One(_) => 1,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Ranks(_, _, scenario) => scenario.name,
            Self::One(scene) => scene.name(),
        }
    }

    fn is_long(&self) -> bool {
        matches!(self, Self::Ranks(_, _, scenario) if scenario.is_long())
    }

    fn run(&self, settings: &Settings) -> Result<Outcome, Failure> {
        match self {
            Self::Ranks(way, world, scenario) => case::run(*way, *world, scenario, settings),
            Self::One(scene) => case::run_alone(*scene, settings),
        }
    }
}

/// Runs the matrix.
pub fn run(pairs: &[Pair], worlds: &[u32], settings: &Settings) -> Result<Report, Failure> {
    let mut lines = Vec::new();
    for &pair in pairs {
        lines.push(line(pair, pair.worlds(worlds), settings)?);
    }
    Ok(Report::new(&settings.seeds, lines))
}

/// One pair.
fn line(pair: Pair, worlds: &[u32], settings: &Settings) -> Result<Line, Failure> {
    let begin = Instant::now();
    let cases = Case::all(pair, worlds);
    // What is broken shows in the smallest world, in the plainest scenario. In the others those that take longest come
    // first, so that no thread is alone with one at the end.
    let mut order: Vec<usize> = (0..cases.len()).collect();
    order.sort_by_key(|&at| {
        let world = cases[at].world();
        let first = Some(&world) == worlds.first();
        (
            worlds.iter().position(|&of| of == world),
            !first && !cases[at].is_long(),
        )
    });
    let outcomes = spread(pair, &cases, &order, |case: &Case| case.run(settings));
    let profile = settings.profile()?;
    let mut line = Line::new(Subject::Pair(pair), worlds, profile.name);
    for (case, outcome) in cases.iter().zip(outcomes) {
        let Some(outcome) = outcome else {
            line.left_out += 1;
            continue;
        };
        let Outcome {
            runs,
            forgotten,
            crowded,
            bad,
        } = outcome.map_err(|failure| {
            let place = format!("{pair}, world {}, {}", case.world(), case.name());
            failure.at(&place)
        })?;
        line.cases += 1;
        line.runs += runs;
        line.forgotten += forgotten;
        line.crowded += crowded;
        for found in bad.iter().flat_map(Found::of) {
            line.add(case.world(), case.name(), found, settings);
        }
    }
    line.seconds = begin.elapsed().as_secs_f64();
    Ok(line)
}

/// Outcomes by case; `None` where a case was left out since enough others had failed. They are run in this order.
fn spread<T: Sync, F>(
    pair: Pair,
    cases: &[T],
    order: &[usize],
    run: F,
) -> Vec<Option<Result<Outcome, Failure>>>
where
    F: Fn(&T) -> Result<Outcome, Failure> + Sync,
{
    let (next, bad, done) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    let outcomes: Mutex<Vec<Option<_>>> = Mutex::new(cases.iter().map(|_| None).collect());
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let tells = std::io::stderr().is_terminal();
    let work = || {
        while bad.load(Ordering::Relaxed) < MOST_BAD && !case::too_many_lost() {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            let Some(&at) = order.get(turn) else { return };
            let outcome = run(&cases[at]);
            if outcome
                .as_ref()
                .map_or(true, |outcome| outcome.bad.is_some())
            {
                bad.fetch_add(1, Ordering::Relaxed);
            }
            let count = 1 + done.fetch_add(1, Ordering::Relaxed);
            if tells {
                // Only progress: whoever closed the terminal does without.
                let _ = write!(
                    std::io::stderr(),
                    "\r{pair}: {count} of {}\x1b[K\r",
                    cases.len()
                );
            }
            let mut outcomes = outcomes.lock().unwrap_or_else(|error| error.into_inner());
            outcomes[at] = Some(outcome);
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.min(MOST_THREADS) {
            scope.spawn(work);
        }
    });
    outcomes
        .into_inner()
        .unwrap_or_else(|error| error.into_inner())
}
