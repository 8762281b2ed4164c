//! Races: conflicting accesses that neither causality orders nor moral strength excuses.

use crate::head::Knowledge;
use crate::strength::Party;

/// An instruction of a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// The seat.
    pub seat: u32,
    /// Which of its instructions.
    pub pc: u32,
}

/// What is wrong with two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RaceKind {
    /// A data race as PTX defines it (8.7.1).
    Race,
    /// An access of an ordered location that does not come after all earlier ones, though morally strong.
    Unordered,
}

/// Two accesses of one location, the second of which came later in some execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Race {
    /// What is wrong.
    pub kind: RaceKind,
    /// The location.
    pub location: usize,
    /// The access that was there.
    pub earlier: Site,
    /// The access that met it.
    pub later: Site,
}

/// How an access conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    Read,
    Write,
    ReadWrite,
}

/// The latest access of one thread to a location in one way.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Seen {
    pub(crate) by: Party,
    pub(crate) kind: Kind,
    pub(crate) pc: u32,
    pub(crate) time: u32,
    /// The message that it wrote.
    pub(crate) wrote: Option<u32>,
}

impl Seen {
    /// Whether another access takes this one's place: whatever comes after the newer one comes after both. Writes have none,
    /// since a read may observe the newer one alone.
    pub(crate) fn is_superseded_by(&self, newer: &Self) -> bool {
        self.by == newer.by && (self.kind, newer.kind) == (Kind::Read, Kind::Read)
    }

    /// Whether this access of `location` comes before whatever a thread that knows this does next.
    pub(crate) fn comes_before(&self, knows: &Knowledge, location: usize) -> bool {
        let observed = |number| knows.observed.contains(&(location, number));
        knows.clock.covers(self.by.agent.seat as usize, self.time)
            || self.wrote.is_some_and(observed)
    }

    /// What is wrong between this access and a later one that it does not come before.
    pub(crate) fn conflict(&self, later: Kind, excused: bool, ordered: bool) -> Option<RaceKind> {
        if self.kind == Kind::Read && later == Kind::Read {
            return None;
        }
        if !excused {
            return Some(RaceKind::Race);
        }
        // Counters are for concurrent read-modify-writes, and a poll may come before or after what it polls for.
        let allowed =
            later == Kind::Read || (self.kind, later) == (Kind::ReadWrite, Kind::ReadWrite);
        (ordered && !allowed).then_some(RaceKind::Unordered)
    }
}
