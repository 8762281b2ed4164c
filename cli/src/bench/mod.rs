//! `slabfence bench`: times of single collectives on a real driver.

mod args;
mod data;
mod inputs;
mod peers;
mod plot;
mod rank;
mod report;
mod series;
mod times;

use std::path::Path;
use std::sync::Arc;

use slabfence::channel::Contract;
use slabfence::layout::Transport;

pub use args::BenchArgs;
use args::Operation;
use data::Shape;
use peers::{Call, Peers};
pub use rank::Measured;
use rank::{Case, OPERATIONS, Plan};
use report::{Report, Row};
use series::{Summary, of_the_last, over_ranks};

use crate::decode::TransportName;
use crate::driver::{self, Opened, Wish};
use crate::failure::{Failure, RankError};
use crate::files;
use crate::processes::{self, child::Meeting};
use crate::ranks::{self, on_threads};

/// Bytes of an element (bf16).
const ELEMENT: usize = 2;
/// Options that name files.
const JSON_FILE: &str = "--json-file";
const SVG: &str = "--svg";
/// Bytes of a row of the floor, the fewest that an operation takes.
const FLOOR_ROW: usize = 16;

/// Runs the command.
pub fn run(args: &BenchArgs) -> Result<Report, Failure> {
    if args.batch.contains(&0) || args.replays == 0 {
        return Err(Failure::Use(
            "--batch and --replays: must be at least 1".to_owned(),
        ));
    }
    ranks::check(args.ranks)?;
    let json = args.json_file.as_deref().map(|path| (JSON_FILE, path));
    let svg = args.svg.as_deref().map(|path| (SVG, path));
    files::check(&json.into_iter().chain(svg).collect::<Vec<_>>(), &[])?;
    let opened = open(args)?;
    opened.refuse_shared(args.threads)?;
    let emulated = opened.driver.is_emulated();
    if args.svg.is_some() && emulated {
        return Err(Failure::Use(
            "--svg: nothing is timed on the emulated machine, so there is nothing to draw"
                .to_owned(),
        ));
    }
    if args.peers.is_some() && emulated {
        return Err(Failure::Use(
            "--peers: nothing is timed on the emulated machine, so there is nothing to compare"
                .to_owned(),
        ));
    }
    if args.peers.is_some() && opened.shares_devices() {
        return Err(Failure::Use(
            "--peers: other libraries have one rank a device, so there is nothing to compare"
                .to_owned(),
        ));
    }
    let report = measured(args, &opened);
    let mut report = opened.close(report)?;
    if let Some(program) = &args.peers {
        report.compare_with(compared(args, program, report.ranks)?);
    }
    if let Some(path) = &args.json_file {
        let json = serde_json::json!(report).to_string();
        store(JSON_FILE, path, &json)?;
    }
    if let Some(path) = &args.svg {
        let svg = plot::draw(&report).ok_or_else(|| {
            Failure::Use("--svg: nothing was timed, so there is nothing to draw".to_owned())
        })?;
        store(SVG, path, &svg)?;
    }
    Ok(report)
}

fn store(option: &str, path: &Path, text: &str) -> Result<(), Failure> {
    let stored = files::store(path, text.as_bytes());
    stored.map_err(|error| Failure::Fault(format!("{option} {}: {error}", path.display())))
}

/// Takes part in another process's run as one of its ranks. Results by transport and case.
pub fn take_part(args: &BenchArgs, meeting: &Meeting<'_>) -> Result<Vec<Vec<Measured>>, RankError> {
    let opened = open(args)?;
    let done = part(args, &opened, meeting);
    opened.close(done)
}

fn part(
    args: &BenchArgs,
    opened: &Opened,
    meeting: &Meeting<'_>,
) -> Result<Vec<Vec<Measured>>, RankError> {
    let plans = plans(args, opened);
    let me = meeting.rank();
    let bootstrap = meeting.join(opened.places.len() as u32)?;
    let ordinal = opened.places[me.index()];
    rank::run(&plans, &opened.driver, bootstrap, me, ordinal)
        .map_err(|error| RankError::from(&error))
}

fn open(args: &BenchArgs) -> Result<Opened, Failure> {
    driver::open(&Wish {
        choice: args.driver,
        profile: args.profile,
        devices: None,
        ranks: args.ranks,
        heads: args.heads as usize,
        oversubscribe: args.oversubscribe,
    })
}

/// What to do for each transport.
fn plans(args: &BenchArgs, opened: &Opened) -> Vec<Plan> {
    let world = opened.places.len();
    let transports = args.transport.iter();
    let plan = |&transport: &TransportName| Plan {
        world,
        cases: cases(args, world),
        contract: contract(args, transport.into()),
        shares_queues: opened.shares_devices() && !opened.driver.is_emulated(),
        seed: args.seed,
        replays: if opened.driver.is_emulated() {
            0
        } else {
            args.replays
        },
    };
    transports.map(plan).collect()
}

fn measured(args: &BenchArgs, opened: &Opened) -> Result<Report, Failure> {
    let world = opened.places.len();
    if !(args.heads as usize).is_multiple_of(world) {
        return Err(Failure::Use(format!(
            "{} heads cannot be divided among {world} ranks",
            args.heads
        )));
    }
    let emulated = opened.driver.is_emulated();
    let ranks = match args.threads {
        true => {
            let plans = plans(args, opened);
            on_threads(&opened.places, |member, ordinal| {
                let me = member.rank();
                rank::run(&plans, &opened.driver, Arc::new(member), me, ordinal)
            })
        }
        false => processes::run::<Vec<Vec<Measured>>>(world)?,
    };
    let ranks = ranks.map_err(|errors| Failure::of_ranks(&errors, world))?;
    let mut rows = Vec::new();
    for (index, transport) in args.transport.iter().enumerate() {
        for (place, case) in cases(args, world).iter().enumerate() {
            let of_ranks: Vec<&Measured> = ranks.iter().map(|rank| &rank[index][place]).collect();
            rows.push(row(case, transport.name(), &of_ranks));
        }
    }
    Ok(Report {
        schema: 1,
        driver: opened.describe(),
        emulated,
        devices: opened.devices.clone(),
        ranks: world,
        processes: !args.threads,
        shared: opened.shares_devices(),
        shape: [args.heads, args.query_dim, args.value_dim],
        operations_in_graph: OPERATIONS,
        replays: args.replays,
        ok: rows.iter().all(|row| row.right),
        rows,
        peers: Peers::default(),
    })
}

fn compared(args: &BenchArgs, program: &Path, ranks: usize) -> Result<Peers, Failure> {
    // Under a name that nobody can have laid a link under, and gone with its owner.
    let scratch = tempfile::Builder::new()
        .suffix(".safetensors")
        .tempfile()
        .map_err(|error| Failure::Fault(format!("no file for the inputs of --peers: {error}")))?;
    inputs::write(scratch.path(), &cases(args, ranks), args.seed)?;
    peers::run(&Call {
        program,
        inputs: scratch.path(),
        ranks,
        operations: OPERATIONS,
        replays: args.replays,
    })
}

fn cases(args: &BenchArgs, world: usize) -> Vec<Case> {
    let case = |operation: Operation, batch: u32| Case {
        operation,
        shape: Shape {
            world,
            batch: batch as usize,
            heads: args.heads as usize,
            dim: match operation {
                Operation::Gather => args.query_dim as usize,
                Operation::Reduce => args.value_dim as usize,
                Operation::Floor => FLOOR_ROW / ELEMENT,
            },
        },
    };
    let operations = args.op.iter();
    let asked = operations.flat_map(|&op| args.batch.iter().map(move |&batch| case(op, batch)));
    [case(Operation::Floor, 1)]
        .into_iter()
        .chain(asked)
        .collect()
}

fn contract(args: &BenchArgs, transport: Transport) -> Contract {
    let largest = args.batch.iter().copied().max().unwrap_or(1);
    let contract = Contract {
        max_channels: 2,
        transport,
        oversubscribe: args.oversubscribe,
        ..Contract::new(args.heads, args.query_dim, args.value_dim, largest)
    };
    Contract {
        max_grid: args.max_grid.unwrap_or(contract.max_grid),
        ..contract
    }
}

fn row(case: &Case, transport: &'static str, ranks: &[&Measured]) -> Row {
    let times = |of: fn(&[Vec<f64>]) -> Option<Summary>, pick: fn(&Measured) -> &Vec<f64>| {
        let series: Vec<Vec<f64>> = ranks.iter().map(|rank| pick(rank).clone()).collect();
        of(&series)
    };
    Row {
        operation: case.operation.name(),
        transport,
        batch: case.shape.batch,
        bytes: case.shape.own() * ELEMENT,
        right: ranks.iter().all(|rank| rank.right),
        graph: times(over_ranks, |rank| &rank.graph),
        alone: times(of_the_last, |rank| &rank.alone),
        blocking: times(over_ranks, |rank| &rank.blocking),
    }
}
