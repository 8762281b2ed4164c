//! `slabfence decode`: the collectives of a decode step on attention data, checked against the data's own outputs.

mod args;
mod bits;
mod dump;
mod element;
mod extents;
mod input;
mod memory;
mod model;
mod output;
mod rank;
pub mod reference;
mod report;
mod setup;
mod shard;
mod stages;
mod step;
mod text;
mod time;
mod workload;

use std::sync::Arc;

pub use args::{DecodeArgs, TransportName};
use model::Model;
pub use rank::BatchResult;
pub use report::Report;
use setup::Setup;
use slabfence::status::{self, StatusServer};
use workload::Workload;

use crate::driver::{self, Opened, Wish};
use crate::failure::{Failure, RankError};
use crate::files;
use crate::processes::{self, child::Meeting};
use crate::ranks::{self, on_threads};

/// Takes part in another process's run as one of its ranks.
pub fn take_part(args: &DecodeArgs, meeting: &Meeting<'_>) -> Result<Vec<BatchResult>, RankError> {
    let data = workload(args)?;
    let opened = open(args, &data)?;
    let done = part(args, &data, &opened, meeting);
    opened.close(done)
}

fn part(
    args: &DecodeArgs,
    data: &Workload,
    opened: &Opened,
    meeting: &Meeting<'_>,
) -> Result<Vec<BatchResult>, RankError> {
    let ranks = opened.places.len();
    let _server = serve(args)?;
    let setup = Setup::new(args, data, ranks, opened.driver.is_emulated())?;
    let bootstrap = meeting.join(ranks as u32)?;
    let me = meeting.rank();
    let ordinal = opened.places[me.index()];
    let results = rank::run(&setup, &opened.driver, bootstrap, me, ordinal);
    let mut results = results.map_err(|error| RankError::from(&error))?;
    if args.output.is_none() {
        // Nobody will look at them.
        for batch in &mut results {
            batch.outputs = Vec::new();
            batch.expected = Vec::new();
        }
    }
    Ok(results)
}

/// Runs the command.
pub fn run(args: &DecodeArgs) -> Result<Report, Failure> {
    check(args)?;
    let data = workload(args)?;
    let opened = open(args, &data)?;
    let report = checked(args, &data, &opened);
    opened.close(report)
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

/// Lets `slabfence status` see this process's pools, if that was asked for.
fn serve(args: &DecodeArgs) -> Result<Option<StatusServer>, Failure> {
    let server = args.status.as_deref().map(status::serve);
    Ok(server.transpose()?)
}

/// Refuses numbers that nothing can be done with.
fn check(args: &DecodeArgs) -> Result<(), Failure> {
    ranks::check(args.ranks)?;
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
        None => {
            if let Some(path) = &args.dump_graph {
                dump::check(path)?;
            }
            let dump = args.dump_graph.as_deref().map(|path| (dump::OPTION, path));
            let output = args.output.as_deref().map(|path| ("--output", path));
            let outputs: Vec<_> = dump.into_iter().chain(output).collect();
            files::check(&outputs, &args.input)
        }
    }
}

fn workload(args: &DecodeArgs) -> Result<Workload, Failure> {
    let batch = args.batch.iter().copied().max().unwrap_or(1) as usize;
    match args.model {
        Some(model) => {
            fits(args, model, batch)?;
            Ok(model.workload(args.dtype, batch, args.context, args.layers, args.seed))
        }
        None if args.input.is_empty() => input::built_in(),
        None => input::from_files(&args.input),
    }
}

/// Refuses made data for which this machine has no memory: every process makes all of them, and has most of them once more
/// in a rank's memory.
fn fits(args: &DecodeArgs, model: Model, batch: usize) -> Result<(), Failure> {
    let processes = match args.threads {
        true => 1,
        false => u64::from(args.ranks.unwrap_or(driver::DEFAULT_RANKS)) + 1,
    };
    let memory = rustix::system::sysinfo();
    let most = memory.totalram as u64 * u64::from(memory.mem_unit) / 2 / processes;
    let bytes = |keys| model.bytes(args.dtype, batch, keys, args.layers);
    if bytes(args.context).is_some_and(|bytes| bytes <= most) {
        return Ok(());
    }
    let key = bytes(1).zip(bytes(0)).map(|(one, none)| (one - none, none));
    let keys = key.map_or(0, |(key, none)| most.saturating_sub(none) / key);
    Err(Failure::Use(format!(
        "--context {}, --batch {batch}: the made data do not fit half of this machine's memory, {processes} times (once a process); at most {keys} keys do",
        args.context
    )))
}

fn checked(args: &DecodeArgs, data: &Workload, opened: &Opened) -> Result<Report, Failure> {
    let emulated = opened.driver.is_emulated();
    opened.refuse_shared(args.threads)?;
    let setup = Setup::new(args, data, opened.places.len(), emulated)?;
    let results = match args.threads {
        true => {
            let _server = serve(args)?;
            on_threads(&opened.places, |member, ordinal| {
                let me = member.rank();
                rank::run(&setup, &opened.driver, Arc::new(member), me, ordinal)
            })
        }
        false => processes::run(setup.ranks)?,
    };
    let results = results.map_err(|errors| Failure::of_ranks(&errors, setup.ranks))?;
    if let Some(path) = &args.output {
        output::write(path, &setup, &results)?;
    }
    Ok(Report::new(&setup, opened, &results, args))
}
