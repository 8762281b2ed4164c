//! A bootstrap that fails in every way in which one can.

mod damage;

use std::fmt;
use std::mem;
use std::panic;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use slabfence::group::{Bootstrap, BootstrapError, ThreadBootstrap};

use crate::injection::{EXCHANGE, Ledger, When};

pub use damage::Damage;

/// How late a late exchange is.
const LATE: Duration = Duration::from_millis(20);
/// What is told of an exchange that fails.
const CUT: &str = "the line is cut";
const BUG: &str = "the host's bug";

/// What rank `me` has to tell of an exchange that fails at this moment, one that is garbled by this damage.
///
/// # Panics
///
/// For one that does not fail.
pub fn told(when: When, damage: Damage, me: usize, world: usize) -> String {
    let damage = match when {
        When::Before | When::After => return CUT.to_owned(),
        When::Panics => return format!("it panicked: {BUG}"),
        When::Truncated => Damage::Cut,
        When::Garbled => damage,
        // In it this rank's own is an earlier one.
        When::Repeated => Damage::AllNoise,
        When::Swapped => Damage::Swapped,
        When::Short => Damage::Fewer,
        When::Late => panic!("it comes late and does not fail"),
    };
    match damage.strikes(me, world) {
        Some(rank) => {
            format!("the message of rank {rank} came damaged, or another came in its place")
        }
        None => format!("and not this rank's own at place {me}; it must return one part a rank"),
    }
}

/// Ranks that meet, but for the one exchange that the seat's ledger has fail.
pub struct Adversary {
    inner: Arc<dyn Bootstrap>,
    rank: usize,
    ledger: &'static Ledger,
    last: Mutex<Vec<Vec<u8>>>,
    damage: Arc<Mutex<(Damage, u64)>>,
}

impl fmt::Debug for Adversary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Adversary").field(&self.rank).finish()
    }
}

impl Adversary {
    /// The bootstrap of a seat.
    pub fn new(inner: ThreadBootstrap, ledger: &'static Ledger) -> Self {
        let rank = inner.rank().index();
        Self::before(Arc::new(inner), rank, ledger)
    }

    /// One of any kind before that of this rank.
    pub fn before(inner: Arc<dyn Bootstrap>, rank: usize, ledger: &'static Ledger) -> Self {
        Self {
            inner,
            rank,
            ledger,
            last: Mutex::default(),
            damage: Arc::new(Mutex::new((Damage::LastBit, 0))),
        }
    }

    /// What is done where the ledger has an exchange garbled, and the seed of what is drawn for it.
    pub fn damage(&self) -> Arc<Mutex<(Damage, u64)>> {
        Arc::clone(&self.damage)
    }
}

impl Bootstrap for Adversary {
    fn all_gather(&self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, BootstrapError> {
        let fails = self.ledger.enter(EXCHANGE).map(|point| point.when);
        let lost = || Err(BootstrapError::Other(CUT.to_owned()));
        match fails {
            Some(When::Before) => return lost(),
            Some(When::Late) => thread::sleep(LATE),
            Some(When::Panics) => panic::resume_unwind(Box::new(BUG)),
            _ => {}
        }
        let mut parts = self.inner.all_gather(bytes, deadline)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = mem::replace(&mut *last, parts.clone());
        // What a neighbour has sent.
        let next = (self.rank + 1) % parts.len();
        let beyond = (next + 1) % parts.len();
        let theirs = &mut parts[next];
        match fails {
            Some(When::After) => return lost(),
            Some(When::Truncated) => theirs.truncate(theirs.len() / 2),
            Some(When::Garbled) => {
                let damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
                let (damage, seed) = *damage;
                damage.apply(&mut parts, self.rank, seed);
            }
            Some(When::Repeated) => parts = before,
            // Of two others, if there are two.
            Some(When::Swapped) => parts.swap(next, beyond),
            Some(When::Short) => drop(parts.pop()),
            _ => {}
        }
        Ok(parts)
    }

    fn folder(&self) -> Option<&Path> {
        self.inner.folder()
    }
}
