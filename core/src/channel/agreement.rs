//! What ranks have to agree on before any of them allocates.

use crate::error::Result;
use crate::group::wire::{Reader, Writer};
use crate::group::{Group, Rank};
use crate::layout::ABI;

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
}
