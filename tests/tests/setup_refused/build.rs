//! Ranks of different builds.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use slabfence::group::{Bootstrap, BootstrapError, Rank};
use slabfence_tests::envelope::{self, Envelope};

use super::{contract, counted, members};

/// How a message of the other build differs, and what this build has there; `None` where it has nothing of it.
type Differs = Arc<dyn Fn(&mut Envelope) -> Option<String> + Send + Sync>;

/// Where ranks of two builds meet: what comes from those that this rank's is not is as the other build sends it. Each rank
/// is what it is, so of two builds each has its own for this one.
struct Mixed {
    inner: Arc<dyn Bootstrap>,
    /// Which ranks are not of this rank's build.
    strange: Vec<bool>,
    differs: Differs,
    /// This build's value.
    mine: Arc<Mutex<String>>,
}

impl Bootstrap for Mixed {
    fn all_gather(&self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, BootstrapError> {
        let mut parts = self.inner.all_gather(bytes, deadline)?;
        for (part, _) in parts.iter_mut().zip(&self.strange).filter(|(_, is)| **is) {
            let mut message = Envelope::read(part).expect("the form of a message");
            if let Some(mine) = (self.differs)(&mut message) {
                *part = message.write();
                *self.mine.lock().unwrap() = mine;
            }
        }
        Ok(parts)
    }
}

/// Lets ranks of two builds meet, of which each rank in turn is the only one of its: the creation is refused in this step,
/// and at once. The other build has `other` where this one has something else; `words` are those for what a rank and rank 0
/// have there.
fn meet(differs: &Differs, other: &str, step: &str, words: fn(&str, &str) -> String) {
    for (world, odd) in [2, 3].into_iter().flat_map(|w| (0..w).map(move |o| (w, o))) {
        let mine = Arc::new(Mutex::new(String::new()));
        let mixed = members(world).into_iter().zip(0..).map(|(inner, rank)| {
            let strange = (0..world).map(|peer| (peer == odd) != (rank == odd));
            Arc::new(Mixed {
                inner,
                strange: strange.collect(),
                differs: Arc::clone(differs),
                mine: Arc::clone(&mine),
            }) as Arc<dyn Bootstrap>
        });
        counted(
            mixed.collect(),
            |_, api| api,
            |seat| {
                let begin = Instant::now();
                let failures = seat.refused(&contract(), step);
                // The group waits a minute.
                assert!(begin.elapsed() < Duration::from_secs(20));
                let mine = mine.lock().unwrap().clone();
                assert!(!mine.is_empty() && mine != other);
                // All are compared with rank 0, which is of this rank's build or of the other.
                let here = |rank| (rank == odd) == (seat.member.rank() == odd);
                let value = |rank| if here(rank) { &mine[..] } else { other };
                let differs = |rank| value(rank) != value(0);
                let wanted: Vec<(Rank, String)> = (1..world)
                    .filter(|rank| differs(*rank))
                    .map(|rank| (Rank(rank), words(value(rank), value(0))))
                    .collect();
                assert_eq!(failures, wanted);
            },
        );
    }
}

/// The terms with another value of this name, and what stood there.
fn instead(terms: &[u8], other: &str, value: &str) -> Option<(Vec<u8>, String)> {
    let mut rest = terms;
    let (hash, count) = (envelope::word(&mut rest)?, envelope::word(&mut rest)?);
    let mut terms = [hash, count].map(u64::to_le_bytes).concat();
    let mut before = None;
    for _ in 0..count {
        let (name, mut here) = (envelope::text(&mut rest)?, envelope::text(&mut rest)?);
        if name == other {
            before = Some(std::mem::replace(&mut here, value.to_owned()));
        }
        envelope::put_text(&mut terms, &name);
        envelope::put_text(&mut terms, &here);
    }
    Some((terms, before?))
}

/// Ranks meet, of which one has another value of the term `name`.
fn another(name: &'static str, value: &'static str, words: fn(&str, &str) -> String) {
    let differs = move |message: &mut Envelope| {
        (message.step == "create: contract").then(|| {
            let terms = instead(&message.payload, name, value);
            let (terms, mine) = terms.expect("the form of terms, with this one");
            message.payload = terms;
            mine
        })
    };
    let differs: Differs = Arc::new(differs);
    meet(&differs, value, "create: contract", words);
}

#[test]
fn a_rank_of_another_version_is_refused_on_all_before_anything_is_allocated() {
    another("library version", "9.9.9", |it, first| {
        format!("library version is {it}, rank 0 has {first}")
    });
}

#[test]
fn a_rank_of_another_layout_is_refused_on_all_before_anything_is_allocated() {
    another("layout version", "99", |it, first| {
        format!("layout version is {it}, rank 0 has {first}")
    });
}

#[test]
fn a_rank_with_other_images_is_refused_on_all_before_anything_is_allocated() {
    another("kernel images", "0123456789abcdef", |it, first| {
        format!("kernel images is {it}, rank 0 has {first}")
    });
}

#[test]
fn a_rank_whose_messages_cannot_be_read_is_refused_on_all_with_both_versions() {
    let differs: Differs = Arc::new(|message: &mut Envelope| {
        let mine = format!("form {} (slabfence {})", message.form, message.version);
        // Of the rest nothing is as here.
        *message = Envelope {
            form: 99,
            version: "9.9.9".to_owned(),
            step: "of another build".to_owned(),
            pool: 1,
            from: 77,
            number: 0,
            payload: Vec::new(),
        };
        Some(mine)
    });
    let words = |it: &str, first: &str| {
        format!(
            "its messages are of {it}, those of rank 0 of {first}; run the same build on all ranks"
        )
    };
    let other = "form 99 (slabfence 9.9.9)";
    meet(&differs, other, "create: pending", words);
}
