//! Groups of some ranks of a group.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::unix::UnixBootstrap;
use super::wire::{Reader, Writer};
use super::{Bootstrap, Group, Rank, list};
use crate::error::{Error, Result};
use crate::layout::MAX_WORLD;
use crate::socket::{Place, random};

const OPERATION: &str = "Group::subgroup";

/// What a rank tells the others.
#[derive(Debug, PartialEq, Eq)]
struct Wish {
    /// Where the subgroup meets, if this rank is its first.
    number: u64,
    in_folder: bool,
    /// How long this rank waits for the others.
    timeout: Duration,
    ranks: Vec<Rank>,
}

impl Wish {
    fn write(&self) -> Vec<u8> {
        // A group waits a year at most.
        let timeout = u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX);
        let start = Writer::new().word(self.number).word(self.in_folder.into());
        let start = start.word(timeout);
        let ranks = self.ranks.iter();
        ranks.fold(start, |m, rank| m.word(rank.0.into())).finish()
    }

    fn read(message: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(message);
        let (number, in_folder) = (reader.word()?, reader.word()? != 0);
        let timeout = Duration::from_nanos(reader.word()?);
        let (ranks, rest) = reader.rest().as_chunks();
        let rank = |word: &[u8; 8]| u32::try_from(u64::from_le_bytes(*word)).ok().map(Rank);
        Some(Self {
            number,
            in_folder,
            timeout,
            ranks: ranks.iter().map(rank).collect::<Option<_>>()?,
        })
        .filter(|_| rest.is_empty())
    }
}

impl Group {
    /// A group of some of this group's ranks, in the order of `ranks`; the members keep their names. Every rank of this group
    /// calls this, with the ranks of the subgroup that it becomes a part of, or with none, which gives `None`. One call forms
    /// several subgroups that have no rank in common ({0, 2} and {1, 3} of four); those that overlap take one call each.
    ///
    /// The subgroup has its own hub, a thread of its first rank, and needs no other rank of this group from then on, nor
    /// this group. Its ranks are of one machine and one user; where this group's bootstrap names a folder they meet there
    /// ([`Bootstrap::folder`]), and else they have to be of one network namespace.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] on all ranks of this group when a rank asks for what cannot be, when two ranks of a subgroup disagree
    /// about it, when ranks have different timeouts, or when its ranks do not meet; [`Error::Timeout`] and
    /// [`Error::Bootstrap`] when this group's do not. After those of the last step, `subgroup: meet`, the others may have a
    /// subgroup, which tells them in its first step that this rank left.
    pub fn subgroup(&self, ranks: &[Rank]) -> Result<Option<Self>> {
        let number = self.check(ranks).and_then(|()| {
            random().map_err(|error| refusal(format!("no number to meet at: {error}")))
        });
        let folder = self.bootstrap.folder();
        let wish = number.map(|number| Wish {
            number,
            in_folder: folder.is_some(),
            timeout: self.timeout,
            ranks: ranks.to_vec(),
        });
        let wishes = self.share("subgroup: ranks", wish.map(|wish| wish.write()))?;
        let wishes = compare(&wishes).map_err(|failures| Error::Setup {
            phase: "subgroup: ranks",
            failures,
        })?;
        let formed = ranks.first().map(|first| {
            let number = wishes[first.index()].number;
            let place = Place::of_meeting(folder, number);
            let me = ranks.iter().position(|rank| *rank == self.me).unwrap_or(0);
            let (me, world) = (Rank(me as u32), ranks.len() as u32);
            // Half of the time, so that the verdict reaches the others before they give this rank up.
            let until = Instant::now() + self.timeout / 2;
            let job = format!("{number:016x}");
            let bootstrap = UnixBootstrap::meet(&place, folder, &job, me, world, until);
            let bootstrap: Arc<dyn Bootstrap> = Arc::new(
                bootstrap.map_err(|e| refusal(format!("the subgroup of {}: {e}", list(ranks))))?,
            );
            let members = ranks.iter().map(|rank| self.members[rank.index()]);
            let group = Self::of_members(bootstrap, me, members.collect())?;
            Ok(group.with_timeout(self.timeout))
        });
        self.agree("subgroup: meet", formed.transpose())
    }

    /// Whether this rank can be in a subgroup of these ranks.
    fn check(&self, ranks: &[Rank]) -> Result<()> {
        let refuse = |what: String| {
            Err(Error::Argument {
                operation: OPERATION,
                what,
            })
        };
        if ranks.is_empty() {
            return Ok(());
        }
        if !(2..=MAX_WORLD).contains(&ranks.len()) {
            return refuse(format!(
                "a subgroup of {}; it must have 2 to {MAX_WORLD} ranks, or none",
                ranks.len()
            ));
        }
        for (index, rank) in ranks.iter().enumerate() {
            if rank.0 >= self.world() {
                return refuse(format!("{rank} in a group of {}", self.world()));
            }
            if ranks[..index].contains(rank) {
                return refuse(format!("{rank} occurs twice"));
            }
        }
        match ranks.contains(&self.me) {
            true => Ok(()),
            false => refuse(format!(
                "{} is not in a subgroup of {}; give no ranks where it is in none",
                self.me,
                list(ranks)
            )),
        }
    }
}

fn refusal(why: String) -> Error {
    Error::Refused {
        operation: OPERATION,
        why,
    }
}

/// Whether the ranks of every subgroup agree about it. All ranks come to the same result.
fn compare(messages: &[Vec<u8>]) -> Result<Vec<Wish>, Vec<(Rank, String)>> {
    let mut wishes = Vec::new();
    let mut failures = Vec::new();
    for (rank, message) in (0u32..).map(Rank).zip(messages) {
        match Wish::read(message) {
            Some(wish) => wishes.push(wish),
            None => failures.push((rank, "what it asks for is malformed".to_owned())),
        }
    }
    if !failures.is_empty() {
        return Err(failures);
    }
    for (rank, wish) in (0u32..).map(Rank).zip(&wishes) {
        if wish.timeout != wishes[0].timeout {
            let words = format!(
                "its group's timeout is {:?}, that of rank 0 is {:?}; give all ranks the same",
                wish.timeout, wishes[0].timeout
            );
            failures.push((rank, words));
            continue;
        }
        for other in &wish.ranks {
            let Some(theirs) = wishes.get(other.index()) else {
                continue;
            };
            if theirs.ranks != wish.ranks {
                let of = |wish: &Wish| match wish.ranks.is_empty() {
                    true => "none".to_owned(),
                    false => format!("one of {}", list(&wish.ranks)),
                };
                failures.push((
                    rank,
                    format!("it is to be in {}, and {other} in {}; give all ranks of a subgroup the same ranks, in the same order", of(wish), of(theirs)),
                ));
                break;
            }
            if theirs.in_folder != wish.in_folder {
                failures.push((
                    rank,
                    format!("of it and {other}, only one has a bootstrap that names a folder"),
                ));
                break;
            }
        }
    }
    match failures.is_empty() {
        true => Ok(wishes),
        false => Err(failures),
    }
}

#[cfg(test)]
mod tests {
    use super::super::envelope::FORM;
    use super::*;

    fn wish(number: u64, ranks: &[u32]) -> Wish {
        Wish {
            number,
            in_folder: number % 2 == 1,
            timeout: Duration::from_secs(60),
            ranks: ranks.iter().copied().map(Rank).collect(),
        }
    }

    #[test]
    fn a_wish_is_read_back_and_nothing_else_is_read() {
        for wish in [wish(7, &[]), wish(8, &[2, 1])] {
            let message = wish.write();
            assert_eq!(Wish::read(&message), Some(wish));
            assert_eq!(Wish::read(&message[..message.len() - 1]), None);
        }
        let start = Writer::new().word(0).word(0).word(0);
        let beyond = start.word(1 << 32).finish();
        assert_eq!(Wish::read(&beyond), None);
    }

    /// Where these bytes change, `FORM` has to be raised, and they be put here.
    #[test]
    fn wishes_of_this_form_are_to_the_byte_what_they_were() {
        let wanted = [
            [0x89, 0x67, 0x45, 0x23, 1, 0, 0, 0],
            [1, 0, 0, 0, 0, 0, 0, 0],
            60_000_000_000_u64.to_le_bytes(),
            [2, 0, 0, 0, 0, 0, 0, 0],
            [1, 0, 0, 0, 0, 0, 0, 0],
        ];
        let message = wish(0x1_2345_6789, &[2, 1]).write();
        assert_eq!((FORM, message), (1, wanted.concat()));
    }

    #[test]
    fn ranks_that_disagree_about_their_subgroup_are_named() {
        let all = |wishes: &[Wish]| {
            let messages: Vec<Vec<u8>> = wishes.iter().map(Wish::write).collect();
            compare(&messages)
        };
        let pairs = [
            wish(2, &[0, 2]),
            wish(4, &[1, 3]),
            wish(6, &[0, 2]),
            wish(8, &[1, 3]),
        ];
        assert_eq!(all(&pairs).as_deref(), Ok(&pairs[..]));
        let order = [wish(2, &[0, 1]), wish(4, &[1, 0])];
        let failures = all(&order).unwrap_err();
        assert_eq!(failures.len(), 2);
        let words = "it is to be in one of ranks 0, 1, and rank 1 in one of ranks 1, 0;";
        assert!(failures[0].1.starts_with(words), "{}", failures[0].1);
        let alone = [wish(2, &[]), wish(4, &[0, 1])];
        let words = "it is to be in one of ranks 0, 1, and rank 0 in none;";
        let failures = all(&alone).unwrap_err();
        assert_eq!(failures[0].0, Rank(1));
        assert!(failures[0].1.starts_with(words), "{}", failures[0].1);
        let folders = [wish(2, &[0, 1]), wish(3, &[0, 1])];
        let failures = all(&folders).unwrap_err();
        assert!(
            failures[0].1.contains("only one has a bootstrap"),
            "{failures:?}"
        );
        let mut waits = [wish(2, &[1, 2]), wish(2, &[1, 2]), wish(2, &[1, 2])];
        waits[0].ranks.clear();
        waits[2].timeout = Duration::from_millis(1500);
        let words = "its group's timeout is 1.5s, that of rank 0 is 60s; give all ranks the same";
        assert_eq!(all(&waits), Err(vec![(Rank(2), words.to_owned())]));
        let messages = [wish(2, &[0, 1]).write(), vec![1]];
        assert_eq!(compare(&messages).unwrap_err()[0].0, Rank(1));
    }
}
