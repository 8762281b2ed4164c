//! `slabfence check`: kernels under seeded schedules, with the detector of the emulated machine.

mod aside;
mod case;
mod finding;
mod foreign;
mod kernels;
mod local;
mod matrix;
mod replace;
mod report;
mod scenario;
mod seat;
mod settings;
mod wait;

use std::path::PathBuf;

use clap::{Args, builder::PossibleValuesParser, builder::TypedValueParser};
use kernels::{Op, Pair, Way};
use report::Report;
use settings::Settings;
use slabfence_emu::Profile;

use crate::failure::Failure;

/// Worlds of the matrix.
const WORLDS: [u32; 4] = [2, 3, 4, 8];
/// Most seeds of a run; more come in several, by `--seed`.
const MOST_SEEDS: u64 = 1_000_000;

/// Runs kernels on the emulated machine under seeded schedules, and finds races, stale words, memory that is not theirs,
/// deadlocks and wrong results.
///
/// Runs the shipped kernels in every scenario of docs/checker.md. Ends with 0 if nothing is found, with 1 if something
/// is, and with 2 on wrong use.
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// Which operation.
    #[arg(long, default_value = "all", value_parser = or_all::<Op>(), value_name = "NAME")]
    pub op: Choice<Op>,

    /// Which transport. Operations of one rank have none and are run if none is chosen, or if they are named.
    #[arg(long, default_value = "all", value_parser = or_all::<Way>(), value_name = "NAME")]
    pub transport: Choice<Way>,

    /// How many ranks collectives have; all of 2, 3, 4 and 8 if not given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=16))]
    pub world: Option<u32>,

    /// Seeds of each scenario, from 0 up.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=MOST_SEEDS))]
    pub seeds: u64,

    /// Runs this seed alone.
    #[arg(long, conflicts_with = "seeds")]
    pub seed: Option<u64>,

    /// A PTX file whose entries take the place of shipped ones of the same name.
    #[arg(long, value_name = "FILE")]
    pub ptx: Option<PathBuf>,

    /// Does without the assumption that a kernel begins behind what ended before it, as seen from any device
    /// (docs/memory-model.md).
    #[arg(long)]
    pub without_kernel_boundary: bool,

    /// Most CTAs that a device has resident at once; as many as it has room for if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub resident: Option<u32>,

    /// A file that says what kernels of others do on which ranks (docs/scenarios.md); it is run in place of the collectives.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["op", "transport", "world", "ptx"])]
    pub scenario: Option<PathBuf>,

    /// The machine; h200-nvlink, or what the scenario says, if not given.
    #[arg(long, value_parser = PossibleValuesParser::new(Profile::NAMES), value_name = "NAME")]
    pub profile: Option<String>,

    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// One of several, or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice<T>(Option<T>);

fn or_all<T: clap::ValueEnum + Send + Sync + 'static>() -> impl TypedValueParser<Value = Choice<T>>
{
    let names = T::value_variants()
        .iter()
        .filter_map(clap::ValueEnum::to_possible_value);
    let all = std::iter::once(clap::builder::PossibleValue::new("all"));
    PossibleValuesParser::new(names.chain(all)).map(|name| Choice(T::from_str(&name, false).ok()))
}

/// Runs the command.
pub fn run(args: &CheckArgs) -> Result<Report, Failure> {
    let seeds: Vec<u64> = match args.seed {
        Some(seed) => vec![seed],
        None => (0..args.seeds).collect(),
    };
    let mut settings = Settings {
        seeds,
        ptx: None,
        profile: args.profile.clone(),
        kernel_boundary: !args.without_kernel_boundary,
        resident: args.resident,
    };
    if let Some(path) = &args.scenario {
        return foreign::run(path, &settings);
    }
    let pairs = Pair::chosen(args.op.0, args.transport.0);
    let worlds = args
        .world
        .map_or_else(|| WORLDS.to_vec(), |world| vec![world]);
    let profile = settings.profile()?;
    if let Some(path) = &args.ptx {
        let text = replace::read(path, &pairs, &worlds, &profile)?;
        settings.ptx = Some((path.clone(), text));
    }
    matrix::run(&pairs, &worlds, &settings)
}
