//! `slabfence litmus`: the memory model against litmus tests.

mod report;

use std::path::PathBuf;

use clap::Args;
use report::{Report, suite_report, test_report};
use slabfence_emu_model::Rules;
use slabfence_emu_model::litmus::{Bounds, Litmus, Suite, SuiteError, explore};

use crate::failure::Failure;

/// Explores litmus tests of the PTX memory model exhaustively: all the tests of a file of expected verdicts, or one test.
///
/// Succeeds if no outcome that is forbidden is reached, and every other disagreement is a known one (docs/memory-model.md).
#[derive(Debug, Clone, Args)]
pub struct LitmusArgs {
    /// A file of expected verdicts, lines of `file,condition[,race[,stuck]]` with 0 or 1 each; or a .litmus file.
    pub path: PathBuf,

    /// Most states of a test; a verdict that needs more is reported as unknown, and fails.
    #[arg(long, default_value_t = Bounds::default().states)]
    pub states: usize,

    /// Do without the assumption that a retired kernel's accesses are performed before those of a later kernel of its stream,
    /// as seen from any GPU.
    #[arg(long)]
    pub without_kernel_boundary: bool,

    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl LitmusArgs {
    fn rules(&self) -> Rules {
        match self.without_kernel_boundary {
            true => Rules::PTX,
            false => Rules::ASSUMED,
        }
    }
}

/// Runs the command.
pub fn run(args: &LitmusArgs) -> Result<Report, Failure> {
    if args.states == 0 {
        return Err(Failure::Use("--states: must be at least 1".into()));
    }
    let bounds = Bounds {
        states: args.states,
    };
    let refused = |error: SuiteError| Failure::Use(error.to_string());
    if args.path.extension().is_some_and(|end| end == "litmus") {
        let litmus = Litmus::read(&args.path).map_err(refused)?;
        let outcomes = explore(&litmus, args.rules(), true, bounds);
        return Ok(Report::Test(test_report(&args.path, &litmus, &outcomes)));
    }
    let suite = Suite::read(&args.path).map_err(refused)?;
    let mut judged = Vec::new();
    for expectation in &suite.expectations {
        let one = suite.judge(expectation, args.rules(), bounds);
        judged.push(one.map_err(refused)?);
    }
    Ok(Report::Suite(suite_report(&args.path, &judged)))
}
