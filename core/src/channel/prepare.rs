//! Preparing channels: the one collective step before ranks use and capture them without another word to each other.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::group::Rank;
use crate::group::wire::{Reader, Writer};
use crate::hash::Fnv1a;

use super::agreement::Failures;
use super::announce::Teller;
use super::lane::Lane;
use super::memory::Memory;
use super::pool::{Pool, settle};
use super::shared::Phase;

/// Epoch of a channel's first operation. Zero and one are no epochs: zeroed lines never agree with anything.
pub(super) const FIRST_EPOCH: u64 = 2;
/// Longest channel name, in bytes.
const MAX_NAME: usize = 200;
/// The step after which the channels are there.
const LAST: &str = "prepare: initialise";

impl Pool {
    /// Prepares the channels with these names on all ranks. Every rank calls this, with the same names in any order;
    /// names that are prepared already stay as they are. No rank enqueues or captures on the pool's device meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] with every rank's reason: names that differ among ranks, more channels than the contract has room
    /// for, a device that does not come to rest. Then no channel was added on any rank. After another error of the last
    /// step, `prepare: initialise`, the others may have the channels and this rank has not: the pool can only be closed.
    pub fn prepare(&self, names: &[impl AsRef<str>]) -> Result<()> {
        let shared = &self.shared;
        let _turn = shared.turn()?;
        let before = {
            let mut state = shared.write()?;
            state.phase.require_open("Pool::prepare")?;
            std::mem::replace(&mut state.phase, Phase::Busy("prepare"))
        };
        let lanes = self.lanes_for(names);
        let decided = lanes.map(|lanes| (shared.group.verdict(LAST, &lanes), lanes));
        let mut state = shared.write()?;
        state.phase = match &decided {
            Ok((Err(error), _)) if !matches!(error, Error::Setup { .. }) => {
                Phase::Broken(format!("its preparation ended on this rank only: {error}"))
            }
            // Up to the last step nobody goes on without this rank, so nobody has a new channel.
            _ => before,
        };
        let (verdict, lanes) = decided?;
        verdict?;
        let mut names = Vec::new();
        for lane in lanes? {
            names.push(lane.name.clone());
            state.lanes.insert(lane.name.clone(), Arc::new(lane));
        }
        drop(state);
        for name in names {
            log::debug!("{}: prepared channel '{name}'", shared.group.speaker());
        }
        Ok(())
    }

    /// The channels to add, ready on this rank, once all ranks agree on the names.
    fn lanes_for(&self, names: &[impl AsRef<str>]) -> Result<Result<Vec<Lane>>> {
        let shared = &self.shared;
        let group = &shared.group;
        group.agree("prepare: drain", shared.drain())?;
        let wanted = check_names(names);
        let known: Vec<String> = shared.read()?.lanes.keys().cloned().collect();
        let message = wanted.as_ref().map(|wanted| names_message(wanted, &known));
        let message = message.map_err(|what| Error::Argument {
            operation: "Pool::prepare",
            what: what.clone(),
        });
        let messages = group.share("prepare: names", message)?;
        settle("prepare: names", compare_names(&messages))?;
        let new: Vec<String> = wanted
            .into_iter()
            .flatten()
            .filter(|name| !known.contains(name))
            .collect();
        let room = shared.contract.max_channels as usize;
        if known.len() + new.len() > room {
            return Err(Error::Refused {
                operation: "Pool::prepare",
                why: format!(
                    "{} channels are prepared and {} more wanted, the contract's max_channels is {room}",
                    known.len(),
                    new.len()
                ),
            });
        }
        let (taken, first_epochs) = {
            let state = shared.read()?;
            let taken = state.lanes.values().map(|lane| lane.index);
            (
                taken.collect::<BTreeSet<usize>>(),
                state.first_epochs.clone(),
            )
        };
        // The same on all ranks, as are the names in their order.
        let free = (0..room).filter(|index| !taken.contains(index));
        Ok(shared.with_memory("Pool::prepare", |memory| {
            let lane = |(index, name)| {
                let first = first_epochs.get(&index).copied();
                self.initialise(memory, index, name, first.unwrap_or(FIRST_EPOCH))
            };
            free.zip(new).map(lane).collect()
        }))
    }

    /// Brings the ranges of channel `index` to their first state, at epoch `first`.
    fn initialise(&self, memory: &Memory, index: usize, name: String, first: u64) -> Result<Lane> {
        let shared = &self.shared;
        // Zero would say "no channel".
        let channel = Fnv1a::new().text(&name).finish().max(1);
        let teller = Teller {
            driver: shared.device.driver(),
            cut: &shared.cut,
            index,
            channel,
        };
        teller.own(memory, shared.group.me())?;
        let mut peers = shared.peers.iter();
        peers.try_for_each(|peer| teller.imported(peer))?;
        memory.set_epoch(index, first, 0)?;
        let header = shared.source(memory).header(index, channel)?;
        Ok(Lane::new(index, name, header, first))
    }
}

/// What a rank tells the others: which names it wants and which it has.
pub(super) fn names_message(wanted: &BTreeSet<String>, known: &[String]) -> Vec<u8> {
    let all = wanted.iter().chain(known);
    let start = Writer::new()
        .word(wanted.len() as u64)
        .word(known.len() as u64);
    all.fold(start, |m, name| m.text(name)).finish()
}

/// Sorted and without doubles.
pub(super) fn check_names(names: &[impl AsRef<str>]) -> Result<BTreeSet<String>, String> {
    let names = names.iter().map(AsRef::as_ref);
    names
        .map(|name: &str| {
            if name.is_empty() || name.trim() != name {
                return Err(format!(
                    "channel name {name:?}; a name is not empty and neither begins nor ends with white space"
                ));
            }
            if name.len() > MAX_NAME {
                return Err(format!(
                    "a channel name of {} bytes; the longest is {MAX_NAME}",
                    name.len()
                ));
            }
            Ok(name.to_owned())
        })
        .collect()
}

fn read_names(message: &[u8]) -> Option<(Vec<String>, Vec<String>)> {
    let mut reader = Reader::new(message);
    let (wanted, known) = (reader.word()?, reader.word()?);
    let wanted = (0..wanted).map(|_| reader.text()).collect::<Option<_>>()?;
    let known = (0..known).map(|_| reader.text()).collect::<Option<_>>()?;
    reader.end((wanted, known))
}

/// Compares everyone's names with rank 0's. All ranks come to the same result.
pub(super) fn compare_names(messages: &[Vec<u8>]) -> Result<(), Failures> {
    let mut failures = Vec::new();
    let mut first = None;
    for (rank, message) in (0u32..).map(Rank).zip(messages) {
        let Some(here) = read_names(message) else {
            failures.push((rank, "its names are malformed".to_owned()));
            continue;
        };
        let there = first.get_or_insert_with(|| here.clone());
        for (what, mine, theirs) in [("wants", &here.0, &there.0), ("has", &here.1, &there.1)] {
            if mine != theirs {
                failures.push((
                    rank,
                    format!("it {what} {mine:?}, rank 0 {what} {theirs:?}"),
                ));
            }
        }
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(wanted: &[&str], known: &[&str]) -> Vec<u8> {
        let start = Writer::new()
            .word(wanted.len() as u64)
            .word(known.len() as u64);
        let all = wanted.iter().chain(known);
        all.fold(start, |m, name| m.text(name)).finish()
    }

    #[test]
    fn names_are_sorted_and_doubles_are_one() {
        let names = check_names(&["b", "a", "b"]).unwrap();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn names_that_cannot_be_told_apart_by_eye_are_refused() {
        for name in ["", " ", " a", "a\n"] {
            let words = check_names(&[name]).unwrap_err();
            assert!(words.contains(&format!("{name:?}")), "{words}");
        }
        assert!(check_names(&["x".repeat(MAX_NAME)]).is_ok());
        assert!(check_names(&["x".repeat(MAX_NAME + 1)]).is_err());
    }

    #[test]
    fn different_wishes_and_different_catalogues_name_the_rank() {
        let same = message(&["a"], &["b"]);
        assert_eq!(compare_names(&[same.clone(), same.clone()]), Ok(()));
        let failures = compare_names(&[same.clone(), message(&["c"], &[])]).unwrap_err();
        assert_eq!(
            failures,
            [
                (Rank(1), r#"it wants ["c"], rank 0 wants ["a"]"#.to_owned()),
                (Rank(1), r#"it has [], rank 0 has ["b"]"#.to_owned()),
            ]
        );
        assert_eq!(
            compare_names(&[same, vec![1]]),
            Err(vec![(Rank(1), "its names are malformed".to_owned())])
        );
    }
}
