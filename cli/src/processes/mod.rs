//! Ranks as processes: this program, started once a rank with the same arguments and its [`Role`]. See [`child`] for their
//! side.

pub mod child;
mod folder;
mod stale;

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::de::DeserializeOwned;

use child::Word;
pub use child::become_rank;
use folder::Folder;

use crate::failure::{Failure, RankError};
use crate::ranks::{Outcomes, gather};

/// How long ranks may take to end by themselves once one has failed. Whoever waits for it on the host knows at once;
/// whoever waits in an operation is killed then.
const GRACE: Duration = Duration::from_secs(10);

/// A rank's place in the run of the process that started it.
#[derive(Debug, Clone, Args)]
#[group(requires_all = ["as_rank", "meet", "parent"])]
pub struct Role {
    /// Its rank.
    #[arg(long, hide = true, required = false)]
    pub as_rank: u32,
    /// Folder in which the ranks meet.
    #[arg(long, hide = true, required = false)]
    pub meet: PathBuf,
    /// Process that started it.
    #[arg(long, hide = true, required = false)]
    pub parent: u32,
}

/// What came from a rank: a word, or `None` at its end.
type Event<T> = (usize, Option<Word<T>>);

/// Runs every rank as a process.
pub fn run<T: DeserializeOwned + Send + 'static>(ranks: usize) -> Result<Outcomes<T>, Failure> {
    let mut folder = Folder::new()?;
    let (mut processes, events) = start(ranks, &folder.path())?;
    Ok(gather(processes.watch(&events, &mut folder)))
}

fn start<T: DeserializeOwned + Send + 'static>(
    ranks: usize,
    folder: &Path,
) -> Result<(Processes, Receiver<Event<T>>), Failure> {
    let failed =
        |error: std::io::Error| Failure::Fault(format!("a rank cannot be started: {error}"));
    let (sender, events) = mpsc::channel();
    // Those that were started are killed if a later one cannot be.
    let mut processes = Processes(Vec::new());
    for rank in 0..ranks {
        // This program as it is, even where its file has been replaced meanwhile. By this thread, which lives as long as
        // the run: the kernel takes its end for the parent's.
        let mut child = Command::new("/proc/self/exe")
            .args(std::env::args_os().skip(1))
            .args(["--as-rank", &rank.to_string()])
            .args(["--parent", &std::process::id().to_string()])
            .arg("--meet")
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let out = child.stdout.take();
        processes.0.push(child);
        let sender = sender.clone();
        thread::Builder::new()
            .name(format!("rank-{rank}"))
            .spawn(move || listen(rank, out, &sender))
            .map_err(failed)?;
    }
    Ok((processes, events))
}

/// Hands on what a rank says, and that it has ended. The receiver is gone only when nobody is interested any more.
fn listen<T: DeserializeOwned>(rank: usize, out: Option<ChildStdout>, events: &Sender<Event<T>>) {
    for line in out.into_iter().flat_map(|out| BufReader::new(out).lines()) {
        let Ok(line) = line else { break };
        let word = serde_json::from_str(&line).unwrap_or_else(|error| {
            Word::Failed(RankError::fault(format!("it said {line:?}: {error}")))
        });
        if events.send((rank, Some(word))).is_err() {
            return;
        }
    }
    let _ = events.send((rank, None));
}

/// The ranks' processes. Those that still run at the drop are killed.
#[derive(Debug)]
struct Processes(Vec<Child>);

impl Processes {
    /// Waits for all to end, and ends those that hang after another has failed.
    fn watch<T>(
        &mut self,
        events: &Receiver<Event<T>>,
        folder: &mut Folder,
    ) -> Vec<Result<T, RankError>> {
        let mut outcomes: Vec<Option<Result<T, RankError>>> = self.0.iter().map(|_| None).collect();
        let mut running = self.0.len();
        let mut until: Option<Instant> = None;
        let mut killed = false;
        while running > 0 {
            let event = match until.filter(|_| !killed) {
                Some(until) => events.recv_timeout(until.saturating_duration_since(Instant::now())),
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match event {
                Ok((_, Some(Word::Met))) => folder.remove(),
                Ok((rank, Some(word))) => outcomes[rank] = Some(word.into()),
                Ok((rank, None)) => {
                    running -= 1;
                    let how = self.0[rank].wait();
                    let outcome = outcomes[rank].get_or_insert_with(|| {
                        Err(RankError::fault(match (how, killed) {
                            (_, true) => format!("it did not end within {GRACE:?} after another rank had failed, and was killed"),
                            (Ok(status), _) => ending(status),
                            (Err(error), _) => format!("its end cannot be told: {error}"),
                        }))
                    });
                    if outcome.is_err() {
                        until.get_or_insert_with(|| Instant::now() + GRACE);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    killed = true;
                    self.kill();
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let silent = || Err(RankError::fault("nothing was heard of it".to_owned()));
        outcomes
            .into_iter()
            .map(|outcome| outcome.unwrap_or_else(silent))
            .collect()
    }

    fn kill(&mut self) {
        for child in &mut self.0 {
            // Whoever has ended cannot be killed, and need not be.
            let _ = child.kill();
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.kill();
        for child in &mut self.0 {
            let _ = child.wait();
        }
    }
}

fn ending(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("it was killed by signal {signal}"),
        None => format!("it ended without a result ({status})"),
    }
}
