//! Retiring channels: their ranges go back to the pool, and a later channel begins there above all that they have seen.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use crate::driver;
use crate::error::{Error, Result};
use crate::group::Ended;

use super::pool::{Pool, settle};
use super::prepare::{check_names, compare_names, names_message};
use super::rewind::{self, Steps};
use super::shared::{Phase, Shared};

/// How long a graph that was destroyed may take to let go of its channel.
const GRAPH_PATIENCE: Duration = Duration::from_secs(1);
const OPERATION: &str = "Pool::retire";

impl Pool {
    /// Takes the channels with these names away on all ranks, and gives their ranges to channels that are prepared later.
    /// Every rank calls this, with the same names in any order, and destroys every graph that uses one of them before; no rank
    /// enqueues or captures meanwhile. A channel that has failed may be retired: others of the pool stay as they are.
    ///
    /// Handles of a retired channel refuse every operation, also when a channel of the same name is prepared again.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] with the ranks on which graphs or capture scopes hold a channel, [`Error::Setup`] of a step up to `retire:
    /// names`: nothing was changed anywhere, and every rank may call again. After another error the pool can only be closed.
    pub fn retire(&self, names: &[impl AsRef<str>]) -> Result<()> {
        let shared = &self.shared;
        let _turn = shared.turn()?;
        {
            let mut state = shared.write()?;
            state.phase.require_open(OPERATION)?;
            state.phase = Phase::Busy("retire");
        }
        let done = begin(shared, names).and_then(|begun| match begun {
            Begun::Refused(error) => Ok(Err(error)),
            Begun::Ready(lanes) => finish(shared, &lanes).map(Ok),
        });
        let (phase, result) = match done {
            Ok(result) => (Phase::Open, result),
            Err(error) => {
                let words = format!("its retirement failed: {error}");
                (Phase::Broken(words), Err(error))
            }
        };
        shared.write()?.phase = phase;
        result
    }
}

/// What the steps came to that change nothing.
enum Begun {
    /// All ranks know why not.
    Refused(Error),
    /// The channels, by name.
    Ready(Vec<String>),
}

fn begin(shared: &Shared, names: &[impl AsRef<str>]) -> Result<Begun> {
    match steps(shared, names) {
        Ok(names) => Ok(Begun::Ready(names)),
        Err(error @ (Error::Setup { .. } | Error::Busy { .. })) => Ok(Begun::Refused(error)),
        // Somebody may have gone on.
        Err(error) => Err(error),
    }
}

fn steps(shared: &Shared, names: &[impl AsRef<str>]) -> Result<Vec<String>> {
    let group = &shared.group;
    group.agree("retire: drain", shared.drain())?;
    let known: Vec<String> = shared.read()?.lanes.keys().cloned().collect();
    let wanted = check_names(names)
        .and_then(
            |wanted| match wanted.iter().find(|name| !known.contains(name)) {
                Some(name) => Err(format!(
                    "channel '{name}' is not prepared (prepared: {known:?})"
                )),
                None => Ok(wanted),
            },
        )
        .map_err(|what| Error::Argument {
            operation: OPERATION,
            what,
        });
    let message = wanted.as_ref().map(|wanted| names_message(wanted, &known));
    let messages = group.share_ref("retire: names", message)?;
    settle("retire: names", compare_names(&messages))?;
    let wanted: Vec<String> = wanted?.into_iter().collect();
    let free = let_go(shared, &wanted);
    let agreed = group.conclude("retire: held", &free);
    agreed.map_err(|ended| match ended {
        Ended::Failed(Error::Setup { failures, .. }) => Error::Busy {
            operation: OPERATION,
            holders: failures,
        },
        // Ranks in other steps hold nothing.
        ended => ended.into(),
    })?;
    Ok(wanted)
}

/// Waits until no graph of this rank holds one of the channels: the driver tells of a destroyed graph from a thread of its
/// own, some time later.
fn let_go(shared: &Shared, names: &[String]) -> Result<()> {
    let until = Instant::now() + GRAPH_PATIENCE.min(shared.group.timeout() / 4);
    loop {
        driver::drop_released();
        let held = shared.held(|lane| names.contains(&lane.name))?;
        match held {
            None => return Ok(()),
            Some(_) if Instant::now() < until => thread::sleep(Duration::from_millis(1)),
            Some(words) => {
                return Err(Error::Refused {
                    operation: OPERATION,
                    why: words,
                });
            }
        }
    }
}

fn finish(shared: &Shared, names: &[String]) -> Result<()> {
    let lanes: Vec<_> = {
        let state = shared.read()?;
        let lanes = names.iter().filter_map(|name| state.lanes.get(name));
        lanes.cloned().collect()
    };
    let indices: Vec<usize> = lanes.iter().map(|lane| lane.index).collect();
    let steps = Steps {
        operation: OPERATION,
        epochs: "retire: epochs",
        rewrite: "retire: rewrite",
    };
    let forget = || {
        indices
            .iter()
            .try_for_each(|&index| shared.page.forget(index))
    };
    let epochs = rewind::rewind(shared, steps, &indices, 0, forget)?;
    let mut state = shared.write()?;
    for (lane, epoch) in lanes.iter().zip(epochs) {
        lane.retired.store(true, Ordering::Release);
        state.lanes.remove(&lane.name);
        state.first_epochs.insert(lane.index, epoch);
    }
    Ok(())
}
