//! Races: conflicting accesses that neither causality orders nor moral strength excuses.

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
}

impl Seen {
    /// Whether another access takes this one's place: whatever races with the newer one raced with the older, or is
    /// ordered after both.
    pub(crate) fn is_superseded_by(&self, newer: &Self) -> bool {
        self.by == newer.by && self.kind == newer.kind
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
