//! What a host says of memory that it laid out itself.

use slabfence_emu_check::{RegionKind, Writers};

/// What held runs call a range of memory, and what they know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its name in what is found.
    pub name: String,
    /// Devices that it is mapped on beside its own, a bit each. An atomic of less than system scope is found there, whoever
    /// executes it.
    pub mapped: u32,
    /// What it is for. [`RegionKind::Buffer`] is ordinary memory; other kinds are held to the rules of theirs.
    pub kind: RegionKind,
    /// The rank that owns it.
    pub rank: u32,
    /// Ranges of one group, kind and slot are reached by one pointer; so are epoch and ticket of a group.
    pub group: u64,
    /// The slot that it belongs to, 0 or 1: that of operations of even or of odd epoch.
    pub slot: Option<u32>,
    /// Who may store to it.
    pub writers: Writers,
}
