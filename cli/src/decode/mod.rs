//! `slabfence decode`: the collectives of a decode step on attention data, checked against the data's own outputs.

mod args;
mod bits;
mod child;
mod element;
mod extents;
mod input;
mod memory;
mod model;
mod output;
mod processes;
mod rank;
mod reference;
mod report;
mod setup;
mod shard;
mod step;
mod text;
mod time;
mod workload;

use std::sync::Arc;
use std::thread;

use slabfence::group::ThreadBootstrap;

pub use args::DecodeArgs;
use rank::BatchResult;
pub use report::Report;
use setup::Setup;
use workload::Workload;

use crate::driver::{self, Opened, Wish};
use crate::failure::{Failure, RankError};

/// Ranks of a group.
const RANKS: std::ops::RangeInclusive<u32> = 2..=16;

/// Becomes a rank of another process's run, if this process was started as one.
pub use child::{become_rank, is_rank};

/// Runs the command.
pub fn run(args: &DecodeArgs) -> Result<Report, Failure> {
    check(args)?;
    let data = workload(args)?;
    let opened = open(args, &data)?;
    let report = checked(args, &data, &opened);
    match (report, opened.left_over()) {
        (report, None) => report,
        (Ok(_), Some(live)) => Err(Failure::Fault(format!(
            "the run ended and left something behind on the emulated machine: {live:?}"
        ))),
        (Err(failure), Some(live)) => {
            log::error!("left behind on the emulated machine: {live:?}");
            Err(failure)
        }
    }
}

fn open(args: &DecodeArgs, data: &Workload) -> Result<Opened, Failure> {
    driver::open(&Wish {
        choice: args.driver,
        profile: args.profile,
        devices: args.devices,
        ranks: args.ranks,
        heads: data.heads,
        oversubscribe: args.oversubscribe,
    })
}

/// Refuses numbers that nothing can be done with.
fn check(args: &DecodeArgs) -> Result<(), Failure> {
    if let Some(ranks) = args.ranks.filter(|ranks| !RANKS.contains(ranks)) {
        return Err(Failure::Use(format!(
            "--ranks {ranks}: a group has 2 to 16 ranks"
        )));
    }
    let counts = [
        ("--context", args.context),
        ("--layers", args.layers),
        ("--replays", args.replays),
        ("--devices", args.devices.unwrap_or(1) as usize),
        (
            "--batch",
            args.batch.iter().copied().min().unwrap_or(0) as usize,
        ),
    ];
    match counts.iter().find(|(_, count)| *count == 0) {
        Some((name, _)) => Err(Failure::Use(format!("{name}: must be at least 1"))),
        None => args.output.as_deref().map_or(Ok(()), output::check),
    }
}

fn workload(args: &DecodeArgs) -> Result<Workload, Failure> {
    match args.model {
        Some(model) => {
            let batch = args.batch.iter().copied().max().unwrap_or(1) as usize;
            Ok(model.workload(args.dtype, batch, args.context, args.layers, args.seed))
        }
        None if args.input.is_empty() => input::built_in(),
        None => input::from_files(&args.input),
    }
}

fn checked(args: &DecodeArgs, data: &Workload, opened: &Opened) -> Result<Report, Failure> {
    let emulated = opened.driver.is_emulated();
    let setup = Setup::new(args, data, opened.places.len(), emulated)?;
    let results = match args.threads {
        true => on_threads(&setup, opened),
        false => processes::run(setup.ranks)?,
    };
    let results = results.map_err(|errors| Failure::of_ranks(&errors, setup.ranks))?;
    if let Some(path) = &args.output {
        output::write(path, &setup, &results)?;
    }
    Ok(Report::new(&setup, opened, &results, args))
}

/// What came of every rank: results by rank, then by batch size; or the errors of the ranks that failed.
type Outcomes = Result<Vec<Vec<BatchResult>>, Vec<(usize, RankError)>>;

/// Runs every rank as a thread.
fn on_threads(setup: &Setup<'_>, opened: &Opened) -> Outcomes {
    let members = ThreadBootstrap::world(setup.ranks as u32);
    let outcomes: Vec<Result<Vec<BatchResult>, RankError>> = thread::scope(|scope| {
        let spawn = |(member, &ordinal): (ThreadBootstrap, &u32)| {
            let me = member.rank();
            scope.spawn(move || rank::run(setup, &opened.driver, Arc::new(member), me, ordinal))
        };
        let ranks: Vec<_> = members.into_iter().zip(&opened.places).map(spawn).collect();
        let joined = ranks.into_iter().map(|rank| match rank.join() {
            Ok(outcome) => outcome.map_err(|error| RankError::from(&error)),
            Err(panic) => Err(RankError::fault(format!(
                "it panicked: {}",
                words_of(panic)
            ))),
        });
        joined.collect()
    });
    gather(outcomes)
}

fn gather(outcomes: Vec<Result<Vec<BatchResult>, RankError>>) -> Outcomes {
    let (mut results, mut errors) = (Vec::new(), Vec::new());
    for (rank, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(result) => results.push(result),
            Err(error) => errors.push((rank, error)),
        }
    }
    if errors.is_empty() {
        return Ok(results);
    }
    Err(errors)
}

fn words_of(panic: Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast::<String>().map(|words| *words);
    text.or_else(|panic| panic.downcast::<&str>().map(|words| (*words).to_owned()))
        .unwrap_or_else(|_| "no words".to_owned())
}
