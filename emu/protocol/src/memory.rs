//! Words that other agents see, and accesses to them.

use std::hash::{Hash, Hasher};

use crate::state::State;

/// An entry line: the first word, and the second's two halves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub epoch: u8,
    pub tag: u8,
    pub check: u8,
}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, h: &mut H) {
        h.write_u32(u32::from_le_bytes([self.epoch, self.tag, self.check, 0]));
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Packet {
    pub row: u16,
    pub stamp: u8,
}

impl Hash for Packet {
    fn hash<H: Hasher>(&self, h: &mut H) {
        h.write_u32(u32::from(self.row) | u32::from(self.stamp) << 16);
    }
}

/// A word of memory that another agent reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    EntryEpoch {
        rank: u8,
        slot: u8,
        source: u8,
    },
    EntryCheck {
        rank: u8,
        slot: u8,
        source: u8,
    },
    Flag {
        rank: u8,
        slot: u8,
        phase: u8,
        cta: u8,
        source: u8,
    },
    Inbox {
        rank: u8,
        slot: u8,
        phase: u8,
        source: u8,
        row: u8,
    },
    Outbox {
        rank: u8,
        slot: u8,
        phase: u8,
        part: u8,
        row: u8,
    },
    Packet {
        rank: u8,
        slot: u8,
        source: u8,
        index: u8,
    },
}

/// What is done to a place: a store of `value` and, in an entry's second word and a packet, `mark`; or a load that
/// should find `value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Access {
    pub place: Place,
    pub value: u16,
    pub mark: u8,
    pub load: bool,
    /// Behind all earlier accesses of its CTA.
    pub release: bool,
}

impl State {
    /// The value that a load of this place finds.
    pub fn load(&self, place: Place) -> u16 {
        match place {
            Place::Inbox {
                rank,
                slot,
                phase,
                source,
                row,
            } => {
                self.ranks[rank as usize].inbox[slot as usize][phase as usize][source as usize]
                    [row as usize]
            }
            Place::Outbox {
                rank,
                slot,
                phase,
                part,
                row,
            } => {
                self.ranks[rank as usize].outbox[slot as usize][phase as usize][part as usize]
                    [row as usize]
            }
            other => unreachable!("{other:?} holds no row"),
        }
    }

    pub fn store(&mut self, access: &Access) {
        let (value, mark) = (access.value, access.mark);
        match access.place {
            Place::EntryEpoch { rank, slot, source } => {
                self.ranks[rank as usize].entry[slot as usize][source as usize].epoch = value as u8;
            }
            Place::EntryCheck { rank, slot, source } => {
                let line = &mut self.ranks[rank as usize].entry[slot as usize][source as usize];
                (line.check, line.tag) = (value as u8, mark);
            }
            Place::Flag {
                rank,
                slot,
                phase,
                cta,
                source,
            } => {
                let flags = &mut self.ranks[rank as usize].flags[slot as usize];
                flags[phase as usize][cta as usize][source as usize] = value as u8;
            }
            Place::Inbox {
                rank,
                slot,
                phase,
                source,
                row,
            } => {
                let inbox = &mut self.ranks[rank as usize].inbox[slot as usize];
                inbox[phase as usize][source as usize][row as usize] = value;
            }
            Place::Outbox {
                rank,
                slot,
                phase,
                part,
                row,
            } => {
                let outbox = &mut self.ranks[rank as usize].outbox[slot as usize];
                outbox[phase as usize][part as usize][row as usize] = value;
            }
            Place::Packet {
                rank,
                slot,
                source,
                index,
            } => {
                let packets = &mut self.ranks[rank as usize].packets[slot as usize];
                packets[source as usize][index as usize] = Packet {
                    row: value,
                    stamp: mark,
                };
            }
        }
    }
}
