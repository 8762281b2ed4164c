//! Retiring channels: their ranges go back to the pool, and a later channel begins there above all that they have seen.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use crate::error::{Error, Result};

use super::pool::{Pool, settle};
use super::prepare::{check_names, compare_names, names_message};
use super::rewind::{self, Steps};
use super::shared::{Phase, Shared, State};

/// The collective call that takes channels away, and its steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub name: &'static str,
    pub drain: &'static str,
    pub names: &'static str,
    pub held: &'static str,
    pub steps: Steps,
}

const RETIRE: Call = Call {
    name: "retire",
    drain: "retire: drain",
    names: "retire: names",
    held: "retire: held",
    steps: Steps {
        operation: "Pool::retire",
        epochs: "retire: epochs",
        rewrite: "retire: rewrite",
    },
};

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
        take_away(&self.shared, RETIRE, |state| named(state, names))
    }
}

/// The channels that a caller names.
fn named(state: &State, names: &[impl AsRef<str>]) -> Result<BTreeSet<String>, String> {
    let wanted = check_names(names)?;
    match wanted.iter().find(|name| !state.lanes.contains_key(*name)) {
        Some(name) => {
            let known: Vec<&String> = state.lanes.keys().collect();
            Err(format!(
                "channel '{name}' is not prepared (prepared: {known:?})"
            ))
        }
        None => Ok(wanted),
    }
}

/// Takes the channels away that `choose` gives, the same on all ranks, once all are at rest. Its words are this rank's
/// reason to refuse.
pub(super) fn take_away(
    shared: &Shared,
    call: Call,
    choose: impl FnOnce(&State) -> Result<BTreeSet<String>, String>,
) -> Result<()> {
    let _turn = shared.turn()?;
    {
        let mut state = shared.write()?;
        state.phase.require_open(call.steps.operation)?;
        state.phase = Phase::Busy(call.name);
    }
    let done = begin(shared, call, choose).and_then(|begun| match begun {
        Begun::Refused(error) => Ok(Err(error)),
        Begun::Ready(lanes) => finish(shared, call.steps, &lanes).map(Ok),
    });
    let (phase, result) = match done {
        Ok(result) => (Phase::Open, result),
        Err(error) => {
            let words = format!("its {} failed: {error}", call.name);
            (Phase::Broken(words), Err(error))
        }
    };
    shared.write()?.phase = phase;
    result
}

/// What the steps came to that change nothing.
enum Begun {
    /// All ranks know why not.
    Refused(Error),
    /// The channels, by name.
    Ready(Vec<String>),
}

fn begin(
    shared: &Shared,
    call: Call,
    choose: impl FnOnce(&State) -> Result<BTreeSet<String>, String>,
) -> Result<Begun> {
    match steps(shared, call, choose) {
        Ok(names) => Ok(Begun::Ready(names)),
        Err(error @ (Error::Setup { .. } | Error::Busy { .. })) => Ok(Begun::Refused(error)),
        // Somebody may have gone on.
        Err(error) => Err(error),
    }
}

fn steps(
    shared: &Shared,
    call: Call,
    choose: impl FnOnce(&State) -> Result<BTreeSet<String>, String>,
) -> Result<Vec<String>> {
    let group = &shared.group;
    let operation = call.steps.operation;
    group.agree(call.drain, shared.drain())?;
    let (known, wanted): (Vec<String>, _) = {
        let state = shared.read()?;
        (state.lanes.keys().cloned().collect(), choose(&state))
    };
    let wanted = wanted.map_err(|what| Error::Argument { operation, what });
    let message = wanted.as_ref().map(|wanted| names_message(wanted, &known));
    let messages = group.share_ref(call.names, message)?;
    settle(call.names, compare_names(&messages))?;
    let wanted: Vec<String> = wanted?.into_iter().collect();
    shared.released_by_all(call.held, operation, |lane| wanted.contains(&lane.name))?;
    Ok(wanted)
}

fn finish(shared: &Shared, steps: Steps, names: &[String]) -> Result<()> {
    let lanes: Vec<_> = {
        let state = shared.read()?;
        let lanes = names.iter().filter_map(|name| state.lanes.get(name));
        lanes.cloned().collect()
    };
    let indices: Vec<usize> = lanes.iter().map(|lane| lane.index).collect();
    let forget = || {
        let mut all = indices.iter();
        shared.forget(|page| all.try_for_each(|&index| page.forget(index)))
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
