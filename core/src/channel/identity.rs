//! Where ranks live, and whether their devices can form a pool.

use slabfence_sys::CUuuid;

use crate::driver::{Apart, Device};
use crate::error::{Error, Result};
use crate::group::Rank;
use crate::group::wire::{Reader, Writer};
use crate::slab::process_token;

use super::agreement::Failures;

/// Where a rank lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    process: u64,
    pub uuid: CUuuid,
    pub ordinal: u32,
    /// Bytes of which the device's allocations are multiples; `None` where it has no virtual memory management, which is
    /// refused later, in its own words.
    granularity: Option<u64>,
}

impl Identity {
    pub(super) fn of(device: &Device) -> Result<Self> {
        let info = device.info();
        let granularity = info.virtual_memory.then(|| device.granularity());
        Ok(Self {
            process: process_token(),
            uuid: info.uuid,
            ordinal: info.ordinal,
            granularity: granularity.transpose()?.map(|bytes| bytes as u64),
        })
    }

    pub(super) fn write(&self) -> Vec<u8> {
        Writer::new()
            .word(self.process)
            .raw(&self.uuid.bytes)
            .word(self.ordinal.into())
            .word(self.granularity.unwrap_or(0))
            .finish()
    }

    pub(super) fn shares_a_process_with(&self, other: &Self) -> bool {
        self.process == other.process
    }

    fn read(message: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(message);
        let identity = Self {
            process: reader.word()?,
            uuid: CUuuid {
                bytes: reader.array()?,
            },
            ordinal: u32::try_from(reader.word()?).ok()?,
            granularity: reader.word().map(|bytes| (bytes > 0).then_some(bytes))?,
        };
        reader.end(identity)
    }
}

/// Reads everyone's identity and checks that the ranks can form a pool. All ranks come to the same result.
pub(super) fn place(messages: &[Vec<u8>], oversubscribe: bool) -> Result<Vec<Identity>, Failures> {
    let mut all: Vec<(Rank, Identity)> = Vec::new();
    let mut failures = Vec::new();
    for (rank, message) in (0u32..).map(Rank).zip(messages) {
        let Some(here) = Identity::read(message) else {
            failures.push((rank, "its identity is malformed".to_owned()));
            continue;
        };
        let neighbour = all.iter().find(|(_, other)| other.uuid == here.uuid);
        if let Some((neighbour, _)) = neighbour.filter(|_| !oversubscribe) {
            failures.push((
                rank,
                format!(
                    "it is on device {} ({:?}), where {neighbour} is; give every rank a device of its own, or set oversubscribe in the contract (for tests)",
                    here.ordinal, here.uuid
                ),
            ));
        }
        all.push((rank, here));
    }
    let all: Vec<Identity> = all.into_iter().map(|(_, here)| here).collect();
    if all.len() == messages.len() {
        failures.extend(other_granularities(&all));
    }
    if failures.is_empty() {
        Ok(all)
    } else {
        Err(failures)
    }
}

/// Which ranks' devices allocate by other multiples than the first that tells: their memory cannot be mapped by one another.
fn other_granularities(all: &[Identity]) -> Failures {
    let told = (0u32..).map(Rank).zip(all);
    let mut told = told.filter_map(|(rank, here)| Some((rank, here.granularity?)));
    let Some((first, bytes)) = told.next() else {
        return Vec::new();
    };
    told.filter(|(_, here)| *here != bytes)
        .map(|(rank, here)| {
            let words = format!(
                "its device's allocations are multiples of {here} bytes, those of {first} of {bytes}; use devices of one kind"
            );
            (rank, words)
        })
        .collect()
}

/// The number that this process gives every rank's device. Other processes may number the same devices differently, so
/// those are found by their identity among `devices`: identity and number of each device that this process sees.
pub(super) fn ordinals(
    all: &[Identity],
    me: Rank,
    devices: impl FnOnce() -> Result<Vec<(CUuuid, u32)>>,
) -> Result<Vec<u32>> {
    let mine = &all[me.index()];
    let elsewhere = |identity: &Identity| !identity.shares_a_process_with(mine);
    let devices = match all.iter().any(elsewhere) {
        true => devices()?,
        false => Vec::new(),
    };
    let number = |(rank, identity): (usize, &Identity)| {
        if !elsewhere(identity) {
            return Ok(identity.ordinal);
        }
        let found = devices.iter().find(|(uuid, _)| *uuid == identity.uuid);
        found
            .map(|(_, ordinal)| *ordinal)
            .ok_or_else(|| Error::Refused {
                operation: "Pool::create",
                why: format!(
                    "rank {rank} is on device {:?}, which this process does not see (this rank is on {:?}); {}",
                    identity.uuid,
                    mine.uuid,
                    Apart::Unseen
                ),
            })
    };
    all.iter().enumerate().map(number).collect()
}

/// How many of the ranks share the device of `me`.
pub(super) fn ranks_beside(all: &[Identity], me: Rank) -> u32 {
    let mine = all[me.index()].uuid;
    all.iter().filter(|other| other.uuid == mine).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(process: u64, uuid: u8, ordinal: u32) -> Identity {
        Identity {
            process,
            uuid: CUuuid { bytes: [uuid; 16] },
            ordinal,
            granularity: Some(2 << 20),
        }
    }

    #[test]
    fn two_ranks_on_one_device_need_leave() {
        let here = [identity(1, 1, 0), identity(1, 2, 1), identity(1, 1, 0)];
        let messages: Vec<Vec<u8>> = here.iter().map(Identity::write).collect();
        let failures = place(&messages, false).unwrap_err();
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0].0, Rank(2));
        assert!(
            failures[0].1.starts_with(
                "it is on device 0 (GPU-01010101-0101-0101-0101-010101010101), where rank 0 is;"
            ),
            "{}",
            failures[0].1
        );
        assert_eq!(place(&messages, true), Ok(here.to_vec()));
        // One that cannot be read has its number all the same.
        let mut damaged = messages.clone();
        damaged.insert(0, vec![1]);
        let failures = place(&damaged, false).unwrap_err();
        let ranks: Vec<Rank> = failures.iter().map(|(rank, _)| *rank).collect();
        assert_eq!(ranks, [Rank(0), Rank(3)]);
        assert!(failures[1].1.contains(", where rank 1 is;"), "{failures:?}");
        assert_eq!(
            (ranks_beside(&here, Rank(0)), ranks_beside(&here, Rank(1))),
            (2, 1)
        );
    }

    #[test]
    fn devices_that_allocate_by_other_multiples_are_named_with_both() {
        let with = |uuid, granularity| Identity {
            granularity,
            ..identity(1, uuid, 0)
        };
        let placed = |all: &[Option<u64>]| {
            let messages = (0..)
                .zip(all)
                .map(|(uuid, bytes)| with(uuid, *bytes).write());
            place(&messages.collect::<Vec<_>>(), false)
        };
        let words = "its device's allocations are multiples of 65536 bytes, those of rank 1 of 2097152; use devices of one kind";
        // Of a device that tells none nothing is said here.
        let (large, small) = (Some(2 << 20), Some(1 << 16));
        let failures = placed(&[None, large, small, large]).unwrap_err();
        assert_eq!(failures, [(Rank(2), words.to_owned())]);
        assert_eq!(placed(&[large, None, large]).unwrap()[1].granularity, None);
    }

    #[test]
    fn ranks_of_other_processes_are_told_from_those_of_this_one() {
        let messages = [identity(1, 1, 0), identity(2, 2, 0)].map(|i| i.write());
        let places = place(&messages, false).unwrap();
        assert!(places[0].shares_a_process_with(&places[0]));
        assert!(!places[0].shares_a_process_with(&places[1]));
    }

    #[test]
    fn a_peers_device_has_the_number_that_this_process_gives_it() {
        let messages = [identity(1, 1, 0), identity(1, 2, 1), identity(2, 3, 0)].map(|i| i.write());
        let places = place(&messages, false).unwrap();
        let here = [(3, 5), (9, 0)].map(|(uuid, ordinal)| (CUuuid { bytes: [uuid; 16] }, ordinal));
        let devices = || Ok(here.to_vec());
        assert_eq!(ordinals(&places, Rank(0), devices).unwrap(), [0, 1, 5]);
        let error = ordinals(&places, Rank(2), devices).unwrap_err().to_string();
        let words = "rank 0 is on device GPU-01010101-0101-0101-0101-010101010101, which this process does not see \
                     (this rank is on GPU-03030303-0303-0303-0303-030303030303); look at";
        assert!(error.contains(words), "{error}");
        let alone = place(&messages[..2], false).unwrap();
        let none = || panic!("asked without need");
        assert_eq!(ordinals(&alone, Rank(1), none).unwrap(), [0, 1]);
    }
}
