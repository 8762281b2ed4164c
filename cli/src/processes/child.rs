//! A process that is one rank of a run. It does what a rank's thread does, and tells its outcome to the process that
//! started it, as lines of JSON on its standard output.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
use slabfence::group::{Bootstrap, BootstrapError, Rank, UnixBootstrap};

use super::Role;
use crate::failure::{Failure, RankError};
use crate::ranks::words_of;

/// How long the ranks of a run may take to come together.
const MEETING: Duration = Duration::from_secs(60);
/// The run's name in its folder, where there is no other.
const JOB: &str = "slabfence";

/// What a rank tells.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub enum Word<T> {
    /// All ranks have met: the folder is needed no more.
    Met,
    /// It is done.
    Results(T),
    /// It has failed.
    Failed(RankError),
}

/// Runs `body` as the rank that the role says, and tells what comes of it. The body gets what brings it together with the
/// other ranks, to be called when everything is there that needs no other rank.
pub fn become_rank<T: Serialize>(
    role: &Role,
    body: impl FnOnce(&Meeting<'_>) -> Result<T, RankError>,
) -> ExitCode {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        die_with_parent(role.parent)?;
        body(&Meeting { role })
    }));
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

/// Where a rank meets the others.
#[derive(Debug)]
pub struct Meeting<'a> {
    role: &'a Role,
}

impl Meeting<'_> {
    /// The rank.
    pub fn rank(&self) -> Rank {
        Rank(self.role.as_rank)
    }

    /// Waits for the others of a group of `world`.
    pub fn join(&self, world: u32) -> Result<Arc<dyn Bootstrap>, RankError> {
        let until = Instant::now() + MEETING;
        let joined = UnixBootstrap::join(&self.role.meet, JOB, self.rank(), world, until);
        let bootstrap = joined.map_err(|error| RankError::from(&error))?;
        tell(&Word::<()>::Met)
            .map_err(|error| RankError::fault(format!("nobody listens: {error}")))?;
        Ok(Arc::new(WithoutFolder(bootstrap)))
    }
}

/// The ranks of a run are of one network namespace: their later sockets need no file, and the folder can go.
struct WithoutFolder(UnixBootstrap);

impl Bootstrap for WithoutFolder {
    fn all_gather(&self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, BootstrapError> {
        self.0.all_gather(bytes, deadline)
    }
}

fn tell<T: Serialize>(word: &Word<T>) -> io::Result<()> {
    let mut line = serde_json::to_vec(word)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
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

impl<T> From<Word<T>> for Result<T, RankError> {
    fn from(word: Word<T>) -> Self {
        match word {
            Word::Results(results) => Ok(results),
            Word::Failed(error) => Err(error),
            Word::Met => Err(Failure::Fault("it ended early".to_owned()).into()),
        }
    }
}
