//! Positions in a group.

use std::fmt;

/// Position of a member in its group: 0 up to the world size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u32);

impl Rank {
    /// As an index of an array with one entry a rank.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.0)
    }
}

/// Another member of the group. Comes only from [`Group::peers`](super::Group::peers), so that nothing but a real peer
/// can select peer memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PeerIndex(pub(super) Rank);

impl PeerIndex {
    /// The peer's rank.
    pub const fn rank(self) -> Rank {
        self.0
    }

    /// The peer's rank as an index of an array with one entry a rank.
    pub const fn index(self) -> usize {
        self.0.index()
    }
}

/// Joins ranks for a message: `rank 1`, `ranks 1, 3`.
pub(crate) fn list(ranks: &[Rank]) -> String {
    let numbers: Vec<String> = ranks.iter().map(|rank| rank.0.to_string()).collect();
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{noun} {}", numbers.join(", "))
}
