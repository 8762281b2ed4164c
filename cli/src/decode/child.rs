//! A process that is one rank of a run. It does what a rank's thread does, and tells its outcome to the process that
//! started it, as lines of JSON on its standard output.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
use slabfence::group::{Rank, UnixBootstrap};

use super::args::{DecodeArgs, Role};
use super::rank::{self, BatchResult};
use super::setup::Setup;
use super::{open, workload};
use crate::failure::{Failure, RankError};
use crate::ranks::words_of;

/// How long the ranks of a run may take to come together.
const MEETING: Duration = Duration::from_secs(60);
/// The run's name in its folder, where there is no other.
const JOB: &str = "decode";

/// What a rank tells.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub enum Word {
    /// All ranks have met: the folder is needed no more.
    Met,
    /// It is done; results by batch size.
    Results(Vec<BatchResult>),
    /// It has failed.
    Failed(RankError),
}

/// Whether this process was started as a rank of another one's run.
pub fn is_rank(args: &DecodeArgs) -> bool {
    args.role.is_some()
}

/// Runs as the rank that the arguments say.
pub fn become_rank(args: &DecodeArgs) -> ExitCode {
    let outcome = match &args.role {
        Some(role) => catch_unwind(AssertUnwindSafe(|| run(args, role))),
        None => return ExitCode::from(2),
    };
    let word = match outcome {
        Ok(Ok(results)) => Word::Results(results),
        Ok(Err(error)) => Word::Failed(error),
        Err(panic) => Word::Failed(RankError::fault(format!(
            "it panicked: {}",
            words_of(panic)
        ))),
    };
    match tell(&word) {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody listens any more.
        Err(_) => ExitCode::FAILURE,
    }
}

fn tell(word: &Word) -> io::Result<()> {
    let mut line = serde_json::to_vec(word)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

fn run(args: &DecodeArgs, role: &Role) -> Result<Vec<BatchResult>, RankError> {
    die_with_parent(role.parent)?;
    let data = workload(args)?;
    let opened = open(args, &data)?;
    let done = take_part(
        args,
        role,
        &Setup::new(
            args,
            &data,
            opened.places.len(),
            opened.driver.is_emulated(),
        )?,
        &opened,
    );
    opened.close(done)
}

fn take_part(
    args: &DecodeArgs,
    role: &Role,
    setup: &Setup<'_>,
    opened: &crate::driver::Opened,
) -> Result<Vec<BatchResult>, RankError> {
    let (me, world) = (Rank(role.as_rank), setup.ranks as u32);
    let own = |error: slabfence::Error| RankError::from(&error);
    let bootstrap = UnixBootstrap::join(&role.meet, JOB, me, world, Instant::now() + MEETING);
    let bootstrap = Arc::new(bootstrap.map_err(own)?);
    tell(&Word::Met).map_err(|error| RankError::fault(format!("nobody listens: {error}")))?;
    let ordinal = opened.places[me.index()];
    let mut results = rank::run(setup, &opened.driver, bootstrap, me, ordinal).map_err(own)?;
    if args.output.is_none() {
        // Nobody will look at them.
        for batch in &mut results {
            batch.outputs = Vec::new();
            batch.expected = Vec::new();
        }
    }
    Ok(results)
}

/// Has the kernel kill this process when the one that started it dies, however it does.
fn die_with_parent(parent: u32) -> Result<(), RankError> {
    let failed =
        |why: String| RankError::fault(format!("this rank cannot be tied to its run: {why}"));
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| failed(error.to_string()))?;
    // It may have died before.
    let now = getppid().map(|process| process.as_raw_nonzero().get().unsigned_abs());
    match now == Some(parent) {
        true => Ok(()),
        false => Err(failed(format!("process {parent} has ended"))),
    }
}

impl From<Word> for Result<Vec<BatchResult>, RankError> {
    fn from(word: Word) -> Self {
        match word {
            Word::Results(results) => Ok(results),
            Word::Failed(error) => Err(error),
            Word::Met => Err(Failure::Fault("it ended early".to_owned()).into()),
        }
    }
}
