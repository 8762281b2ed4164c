//! What ranks tell one another before any of them allocates, and what must hold among them.

use slabfence_sys::CUuuid;

use crate::driver::{Apart, Device};
use crate::error::{Error, Result};
use crate::group::wire::{Reader, Writer};
use crate::group::{Group, Rank};
use crate::layout::ABI;
use crate::slab::process_token;

use super::contract::Contract;

/// Ranks that refuse, each with its reason.
pub(super) type Failures = Vec<(Rank, String)>;

/// What a rank is built of.
#[derive(Debug, Clone, Copy)]
struct Build<'a> {
    version: &'a str,
    layout: u32,
    /// Digest of the kernel images.
    images: &'a str,
}

/// This build.
const HERE: Build<'static> = Build {
    version: env!("CARGO_PKG_VERSION"),
    layout: ABI,
    images: slabfence_ptx::DIGEST,
};

/// This rank's terms: every field of the contract, and what else must be equal for operations to meet.
pub(super) fn terms(contract: &Contract, group: &Group) -> Vec<u8> {
    terms_of(&HERE, contract, group)
}

fn terms_of(build: &Build<'_>, contract: &Contract, group: &Group) -> Vec<u8> {
    let mut fields = vec![
        ("library version", build.version.to_owned()),
        ("layout version", build.layout.to_string()),
        ("kernel images", build.images.to_owned()),
        ("members", format!("{:?}", group.members())),
        ("group timeout", format!("{:?}", group.timeout())),
    ];
    fields.extend(contract.fields());
    let message = Writer::new()
        .word(contract.hash())
        .word(fields.len() as u64);
    fields
        .iter()
        .fold(message, |m, (name, value)| m.text(name).text(value))
        .finish()
}

/// What all ranks call the pool in their exchanges: rank 0's number. All ranks see the same messages, so they agree on 0 for
/// a malformed one, and the next steps find out.
pub(super) fn pool_number(messages: &[Vec<u8>]) -> u64 {
    let first = messages.first().map(|message| Reader::new(message));
    first.and_then(|mut reader| reader.word()).unwrap_or(0)
}

struct Terms {
    hash: u64,
    fields: Vec<(String, String)>,
}

fn read_terms(message: &[u8]) -> Option<Terms> {
    let mut reader = Reader::new(message);
    let hash = reader.word()?;
    let count = reader.word()?;
    let mut fields = Vec::new();
    for _ in 0..count {
        fields.push((reader.text()?, reader.text()?));
    }
    reader.end(Terms { hash, fields })
}

/// Compares everyone's terms with rank 0's, field by field. All ranks come to the same result.
pub(super) fn compare_terms(messages: &[Vec<u8>]) -> Result<(), Failures> {
    let mut all = Vec::new();
    let mut failures = Vec::new();
    for (rank, message) in (0u32..).map(Rank).zip(messages) {
        match read_terms(message) {
            Some(terms) => all.push((rank, terms)),
            None => failures.push((rank, "its terms are malformed".to_owned())),
        }
    }
    if !failures.is_empty() {
        return Err(failures);
    }
    let Some(((_, first), others)) = all.split_first() else {
        return Ok(());
    };
    for (rank, terms) in others {
        let difference = difference(&first.fields, &terms.fields);
        if !difference.is_empty() {
            failures.push((*rank, difference.join("; ")));
        } else if terms.hash != first.hash {
            failures.push((
                *rank,
                format!(
                    "contract hash {:#x}, rank 0 has {:#x}, though every field is equal",
                    terms.hash, first.hash
                ),
            ));
        }
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures)
    }
}

fn difference(first: &[(String, String)], here: &[(String, String)]) -> Vec<String> {
    let value = |fields: &[(String, String)], name: &str| {
        let field = fields.iter().find(|(other, _)| other == name);
        field.map(|(_, value)| value.clone())
    };
    let mut lines = Vec::new();
    for (name, mine) in here {
        match value(first, name) {
            Some(theirs) if theirs == *mine => {}
            Some(theirs) => lines.push(format!("{name} is {mine}, rank 0 has {theirs}")),
            None => lines.push(format!("{name} is {mine}, rank 0 has no such field")),
        }
    }
    for (name, theirs) in first {
        if value(here, name).is_none() {
            lines.push(format!("it has no field {name}, rank 0 has {theirs}"));
        }
    }
    lines
}

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
    let mut all: Vec<Identity> = Vec::new();
    let mut failures = Vec::new();
    for (rank, message) in (0u32..).map(Rank).zip(messages) {
        let Some(here) = Identity::read(message) else {
            failures.push((rank, "its identity is malformed".to_owned()));
            continue;
        };
        let neighbour = all.iter().position(|other| other.uuid == here.uuid);
        if let Some(neighbour) = neighbour.filter(|_| !oversubscribe) {
            failures.push((
                rank,
                format!(
                    "it is on device {} ({:?}), where rank {neighbour} is; give every rank a device of its own, or set oversubscribe in the contract (for tests)",
                    here.ordinal, here.uuid
                ),
            ));
        }
        all.push(here);
    }
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
    use crate::group::ThreadBootstrap;
    use std::sync::Arc;
    use std::time::Duration;

    fn group(members: &[u64]) -> Group {
        let bootstrap = Arc::new(ThreadBootstrap::world(2).remove(0));
        Group::of_members(bootstrap, Rank(0), members.to_vec()).unwrap()
    }

    fn message(contract: &Contract) -> Vec<u8> {
        terms(contract, &group(&[0, 1]))
    }

    #[test]
    fn a_difference_names_rank_field_and_both_values() {
        let base = Contract::new(32, 576, 512, 8);
        let other = Contract {
            max_batch: 16,
            max_grid: 8,
            ..base.clone()
        };
        assert_eq!(compare_terms(&[message(&base), message(&base)]), Ok(()));
        let failures = compare_terms(&[message(&base), message(&base), message(&other)]);
        assert_eq!(
            failures,
            Err(vec![(
                Rank(2),
                "max_batch is 16, rank 0 has 8; max_grid is 8, rank 0 has 64".to_owned()
            )])
        );
    }

    #[test]
    fn another_build_is_a_difference() {
        let contract = Contract::new(32, 576, 512, 8);
        let group = group(&[0, 1]);
        let here = terms(&contract, &group);
        let Build {
            version,
            layout,
            images,
        } = HERE;
        for (other, words) in [
            (
                Build {
                    version: "9.9.9",
                    ..HERE
                },
                format!("library version is 9.9.9, rank 0 has {version}"),
            ),
            (
                Build { layout: 99, ..HERE },
                format!("layout version is 99, rank 0 has {layout}"),
            ),
            (
                Build {
                    images: "0123",
                    ..HERE
                },
                format!("kernel images is 0123, rank 0 has {images}"),
            ),
        ] {
            let there = terms_of(&other, &contract, &group);
            let difference = compare_terms(&[here.clone(), there]);
            assert_eq!(difference, Err(vec![(Rank(1), words)]));
        }
    }

    /// A change needs another number in `group/envelope.rs`: builds that differ read one another's terms.
    #[test]
    fn terms_of_this_form_are_written_as_they_were() {
        let build = Build {
            version: "1.2",
            layout: 3,
            images: "0123",
        };
        let contract = Contract::new(32, 576, 512, 8);
        let terms = terms_of(&build, &contract, &group(&[0, 1]));
        let word = |word: u64| word.to_le_bytes();
        let fields = terms[8..16].try_into().map(u64::from_le_bytes).unwrap();
        let start = [
            &word(contract.hash())[..],
            &word(fields),
            &word(15),
            b"library version",
            &word(3),
            b"1.2",
            &word(14),
            b"layout version",
            &word(1),
            b"3",
            &word(13),
            b"kernel images",
            &word(4),
            b"0123",
        ];
        assert!(terms.starts_with(&start.concat()));
        assert_eq!(read_terms(&terms).unwrap().fields.len() as u64, fields);
    }

    #[test]
    fn another_order_of_members_is_a_difference() {
        let contract = Contract::new(32, 576, 512, 8);
        let messages = [[7, 2], [2, 7]].map(|members| terms(&contract, &group(&members)));
        assert_eq!(
            compare_terms(&messages),
            Err(vec![(
                Rank(1),
                "members is [2, 7], rank 0 has [7, 2]".to_owned()
            )])
        );
    }

    #[test]
    fn another_timeout_of_the_group_is_a_difference() {
        let contract = Contract::new(32, 576, 512, 8);
        let messages = [60_000, 1500].map(|ms| {
            let group = group(&[0, 1]).with_timeout(Duration::from_millis(ms));
            terms(&contract, &group)
        });
        let words = "group timeout is 1.5s, rank 0 has 60s".to_owned();
        assert_eq!(compare_terms(&messages), Err(vec![(Rank(1), words)]));
    }

    #[test]
    fn malformed_terms_are_refused_and_not_compared() {
        let good = message(&Contract::new(32, 576, 512, 8));
        let short = good[..good.len() - 1].to_vec();
        let failures = compare_terms(&[good, short, Vec::new()]).unwrap_err();
        let ranks: Vec<Rank> = failures.iter().map(|(rank, _)| *rank).collect();
        assert_eq!(ranks, [Rank(1), Rank(2)]);
    }

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
