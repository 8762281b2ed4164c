//! `slabfence bench`: times of single collectives on a real driver.

mod args;
mod data;
mod plot;
mod rank;
mod report;
mod series;

use std::fs;

use slabfence::channel::Contract;
use slabfence::layout::Transport;

pub use args::BenchArgs;
use args::Operation;
use data::Shape;
use rank::{Case, Measured, OPERATIONS, Plan};
use report::{Report, Row};
use series::over_ranks;

use crate::driver::{self, Opened, Wish};
use crate::failure::Failure;
use crate::ranks::on_threads;

/// Bytes of an element (bf16).
const ELEMENT: usize = 2;

/// Runs the command.
pub fn run(args: &BenchArgs) -> Result<Report, Failure> {
    if args.batch.contains(&0) || args.replays == 0 {
        return Err(Failure::Use(
            "--batch and --replays: must be at least 1".to_owned(),
        ));
    }
    let opened = driver::open(&Wish {
        choice: args.driver,
        profile: args.profile,
        devices: None,
        ranks: args.ranks,
        heads: args.heads as usize,
        oversubscribe: false,
    })?;
    let report = measured(args, &opened);
    let report = opened.close(report)?;
    if let Some(path) = &args.svg {
        let svg = plot::draw(&report).ok_or_else(|| {
            Failure::Use("--svg: nothing was timed, so there is nothing to draw".to_owned())
        })?;
        fs::write(path, svg)
            .map_err(|error| Failure::Use(format!("--svg {}: {error}", path.display())))?;
    }
    Ok(report)
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
    let mut rows = Vec::new();
    for &transport in &args.transport {
        let plan = Plan {
            cases: cases(args, world),
            contract: contract(args, transport.into()),
            seed: args.seed,
            replays: if emulated { 0 } else { args.replays },
        };
        let ranks = on_threads(&opened.places, |member, ordinal| {
            rank::run(&plan, &opened.driver, member, (ordinal, world as u32))
        });
        let ranks = ranks.map_err(|errors| Failure::of_ranks(&errors, world))?;
        let row = |(index, case): (usize, &Case)| {
            let of_ranks: Vec<&Measured> = ranks.iter().map(|rank| &rank[index]).collect();
            row(case, transport.name(), &of_ranks)
        };
        rows.extend(plan.cases.iter().enumerate().map(row));
    }
    Ok(Report {
        schema: 1,
        driver: opened.describe(),
        emulated,
        devices: opened.devices.clone(),
        ranks: world,
        shape: [args.heads, args.query_dim, args.value_dim],
        operations_in_graph: OPERATIONS,
        replays: args.replays,
        ok: rows.iter().all(|row| row.right),
        rows,
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
                Operation::Gather => args.query_dim,
                Operation::Reduce => args.value_dim,
            } as usize,
        },
    };
    let operations = args.op.iter();
    operations
        .flat_map(|&op| args.batch.iter().map(move |&batch| case(op, batch)))
        .collect()
}

fn contract(args: &BenchArgs, transport: Transport) -> Contract {
    let largest = args.batch.iter().copied().max().unwrap_or(1);
    let contract = Contract {
        max_channels: 2,
        transport,
        ..Contract::new(args.heads, args.query_dim, args.value_dim, largest)
    };
    Contract {
        max_grid: args.max_grid.unwrap_or(contract.max_grid),
        ..contract
    }
}

fn row(case: &Case, transport: &'static str, ranks: &[&Measured]) -> Row {
    let times = |pick: fn(&Measured) -> &Vec<f64>| {
        let series: Vec<Vec<f64>> = ranks.iter().map(|rank| pick(rank).clone()).collect();
        over_ranks(&series)
    };
    Row {
        operation: case.operation.name(),
        transport,
        batch: case.shape.batch,
        bytes: case.shape.own() * ELEMENT,
        right: ranks.iter().all(|rank| rank.right),
        graph: times(|rank| &rank.graph),
        blocking: times(|rank| &rank.blocking),
    }
}
