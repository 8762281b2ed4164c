//! Moving channels to epochs that no rank has seen: what a reset does to all of them, and a retirement to the ranges that
//! the next channel gets.

use core::mem::offset_of;
use std::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::group::Rank;
use crate::group::wire::{Reader, Writer};
use crate::layout::{LINE, LocalBlock, started_warps};

use super::agreement::Failures;
use super::memory::Memory;
use super::pool::settle;
use super::shared::Shared;

/// Distance of the new epoch from the largest that any rank has seen: one operation of that epoch may have begun.
const MARGIN: u64 = 2;
/// Epochs end below this; verdict words keep 56 bits of them.
pub(super) const EPOCH_LIMIT: u64 = 1 << 56;

/// The collective call that moves channels, and its steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps {
    pub operation: &'static str,
    pub epochs: &'static str,
    pub rewrite: &'static str,
}

/// The counters of a channel that stay or count on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counters {
    epoch: u64,
    warps: u64,
    generation: u64,
}

/// Moves the channels with these ranges, listed alike on all ranks, to epochs that no rank has seen and that are not below
/// `floor`; every rank is at rest. `finish` belongs to the last step. The new epochs.
pub(super) fn rewind(
    shared: &Shared,
    steps: Steps,
    indices: &[usize],
    floor: u64,
    finish: impl FnOnce() -> Result<()>,
) -> Result<Vec<u64>> {
    let group = &shared.group;
    let counters = shared.with_memory(steps.operation, |memory| {
        indices.iter().map(|&index| read(memory, index)).collect()
    });
    let message = counters.as_ref().map(|counters: &Vec<Counters>| {
        let start = Writer::new().word(floor).word(counters.len() as u64);
        counters.iter().fold(start, |m, c| m.word(c.epoch)).finish()
    });
    let messages = match message {
        Ok(message) => group.share(steps.epochs, Ok(message))?,
        Err(_) => {
            group.agree(steps.epochs, counters)?;
            return Err(Error::Closed {
                what: steps.operation,
            });
        }
    };
    let epochs = settle(steps.epochs, agree_on_epochs(&messages))?;
    // Only now: a poison word that comes after the zeroing would stay, so every rank has to be at rest first.
    let written = counters.and_then(|counters| {
        shared.with_memory(steps.operation, |memory| {
            for ((&index, counters), epoch) in indices.iter().zip(&counters).zip(&epochs) {
                rewrite(shared, memory, index, *counters, *epoch)?;
            }
            finish()
        })
    });
    if written.is_ok() {
        for lane in shared.lanes()? {
            let place = indices.iter().position(|&index| index == lane.index);
            if let Some(&epoch) = place.and_then(|place| epochs.get(place)) {
                lane.first_epoch.store(epoch, Ordering::Relaxed);
                let (speaker, step, name) = (group.speaker(), steps.rewrite, &lane.name);
                log::debug!("{speaker}: {step}: ranges of channel '{name}' at epoch {epoch}");
            }
        }
    }
    group.agree(steps.rewrite, written)?;
    Ok(epochs)
}

fn read(memory: &Memory, index: usize) -> Result<Counters> {
    let word = |offset: usize| -> Result<u64> {
        let mut bytes = [0; 8];
        memory.local.read(index, offset, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    };
    Ok(Counters {
        epoch: word(offset_of!(LocalBlock, epoch))?,
        warps: started_warps(word(offset_of!(LocalBlock, started))?),
        generation: word(offset_of!(LocalBlock, generation))?,
    })
}

/// Ticket, verdict, claims and poison to zero; as many warps retired as started; the new epoch.
fn rewrite(
    shared: &Shared,
    memory: &Memory,
    index: usize,
    counters: Counters,
    epoch: u64,
) -> Result<()> {
    for (offset, word) in [
        (offset_of!(LocalBlock, ticket), 0),
        (offset_of!(LocalBlock, status), 0),
        (offset_of!(LocalBlock, failed), 0),
        (offset_of!(LocalBlock, fault_claim), 0),
        (offset_of!(LocalBlock, warn_claim), 0),
        (offset_of!(LocalBlock, generation), counters.generation + 1),
    ] {
        memory.local.write(index, offset, &u64::to_le_bytes(word))?;
    }
    memory.set_epoch(index, epoch, counters.warps)?;
    let poison = shared.cut.signal.poison();
    let bytes = shared.cut.world as usize * LINE;
    memory.signal.fill(index, poison, 0, bytes)
}

/// The new epoch of every channel: beyond what any rank has seen, and not below any rank's floor.
fn agree_on_epochs(messages: &[Vec<u8>]) -> Result<Vec<u64>, Failures> {
    let mut failures = Vec::new();
    let mut epochs: Option<Vec<u64>> = None;
    let mut floor = 0;
    for (rank, message) in (0u32..).map(Rank).zip(messages) {
        let Some((asked, here)) = read_epochs(message) else {
            failures.push((rank, "its epochs are malformed".to_owned()));
            continue;
        };
        floor = floor.max(asked);
        let largest = epochs.get_or_insert_with(|| here.clone());
        if largest.len() != here.len() {
            failures.push((
                rank,
                format!(
                    "it has {} channels, rank 0 has {}",
                    here.len(),
                    largest.len()
                ),
            ));
            continue;
        }
        for (channel, (largest, epoch)) in largest.iter_mut().zip(here).enumerate() {
            *largest = epoch.max(*largest);
            if epoch >= EPOCH_LIMIT - MARGIN {
                failures.push((
                    rank,
                    format!("its channel {channel} has come to epoch {epoch:#x}; epochs end below 2^56, make a new pool"),
                ));
            }
        }
        if asked >= EPOCH_LIMIT {
            failures.push((
                rank,
                format!("it asks for epoch {asked:#x}; epochs end below 2^56"),
            ));
        }
    }
    if !failures.is_empty() {
        return Err(failures);
    }
    let epochs = epochs.unwrap_or_default();
    Ok(epochs
        .into_iter()
        .map(|largest| (largest + MARGIN).max(floor))
        .collect())
}

fn read_epochs(message: &[u8]) -> Option<(u64, Vec<u64>)> {
    let mut reader = Reader::new(message);
    let (floor, count) = (reader.word()?, reader.word()?);
    let epochs = (0..count).map(|_| reader.word()).collect::<Option<_>>()?;
    reader.end((floor, epochs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(floor: u64, epochs: &[u64]) -> Vec<u8> {
        let start = Writer::new().word(floor).word(epochs.len() as u64);
        epochs
            .iter()
            .fold(start, |m, &epoch| m.word(epoch))
            .finish()
    }

    #[test]
    fn the_new_epoch_is_two_beyond_the_largest_of_any_rank() {
        let messages = [message(0, &[7, 2]), message(0, &[5, 9])];
        assert_eq!(agree_on_epochs(&messages), Ok(vec![9, 11]));
    }

    #[test]
    fn a_floor_of_any_rank_lifts_all_and_lowers_none() {
        let messages = [message(100, &[7, 200]), message(50, &[5, 9])];
        assert_eq!(agree_on_epochs(&messages), Ok(vec![100, 202]));
    }

    #[test]
    fn ranks_with_other_channels_or_impossible_floors_are_named() {
        let good = message(0, &[7]);
        let failures = agree_on_epochs(&[good.clone(), message(0, &[]), message(1 << 56, &[7])]);
        assert_eq!(
            failures.unwrap_err(),
            [
                (Rank(1), "it has 0 channels, rank 0 has 1".to_owned()),
                (
                    Rank(2),
                    "it asks for epoch 0x100000000000000; epochs end below 2^56".to_owned()
                ),
            ]
        );
        assert!(agree_on_epochs(&[good, vec![0; 9]]).is_err());
        assert!(agree_on_epochs(&[message((1 << 56) - 1, &[7])]).is_ok());
    }

    #[test]
    fn a_channel_without_an_epoch_left_is_named() {
        let last = EPOCH_LIMIT - MARGIN - 1;
        let good = message(0, &[7, last]);
        assert_eq!(
            agree_on_epochs(&[good.clone(), good.clone()]),
            Ok(vec![9, EPOCH_LIMIT - 1])
        );
        for epoch in [last + 1, u64::MAX] {
            let failures = agree_on_epochs(&[good.clone(), message(0, &[7, epoch])]);
            let words = format!(
                "its channel 1 has come to epoch {epoch:#x}; epochs end below 2^56, make a new pool"
            );
            assert_eq!(failures.unwrap_err(), [(Rank(1), words)]);
        }
    }
}
