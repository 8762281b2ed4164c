//! What the words of a parameter block are.

use core::mem::offset_of;

use slabfence::layout::{GatherParams, Header, PeerAddresses, ReduceParams, SlotAddresses};

use crate::entry::Family;

/// A kind of memory that both slots have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Entry lines.
    Entry,
    /// Data flags.
    Flags,
    /// What peers pull.
    Outbox,
    /// What peers push.
    Inbox,
}

/// An address in a parameter block, as far as mutations care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// The channel's `LocalBlock`.
    Local,
    /// Own poison lines.
    Poison,
    /// Own memory of a slot.
    Own(usize, Part),
    /// A peer's memory of a slot.
    Peer(usize, Part),
    /// This rank's poison line at a peer.
    PeerPoison,
    /// Host-mapped records.
    Health,
    /// The operation's input, LSE or output.
    User,
}

impl Field {
    /// The address at `offset` of the block, if one is there.
    pub(crate) fn at(family: Family, offset: usize) -> Option<Field> {
        const OWN: usize = offset_of!(Header, own);
        const PEERS: usize = offset_of!(Header, peers);
        const HEADER_END: usize = offset_of!(Header, reserved);
        let slot = |offset: usize| {
            let part = part(offset % size_of::<SlotAddresses>())?;
            Some((offset / size_of::<SlotAddresses>(), part))
        };
        const LOCAL: usize = offset_of!(Header, local);
        const HEALTH: usize = offset_of!(Header, health);
        const HEALTH_HEADER: usize = offset_of!(Header, health_header);
        const POISON: usize = offset_of!(Header, poison);
        match offset {
            LOCAL => Some(Self::Local),
            HEALTH | HEALTH_HEADER => Some(Self::Health),
            POISON => Some(Self::Poison),
            OWN..PEERS => slot(offset - OWN).map(|(slot, part)| Self::Own(slot, part)),
            PEERS..HEADER_END => match (offset - PEERS) % size_of::<PeerAddresses>() {
                offset if offset == offset_of!(PeerAddresses, poison) => Some(Self::PeerPoison),
                offset => slot(offset).map(|(slot, part)| Self::Peer(slot, part)),
            },
            _ => user(family, offset).then_some(Self::User),
        }
    }
}

fn part(offset: usize) -> Option<Part> {
    const ENTRY: usize = offset_of!(SlotAddresses, entry);
    const FLAGS: usize = offset_of!(SlotAddresses, flags);
    const OUTBOX: usize = offset_of!(SlotAddresses, outbox);
    const INBOX: usize = offset_of!(SlotAddresses, inbox);
    match offset {
        ENTRY => Some(Part::Entry),
        FLAGS => Some(Part::Flags),
        OUTBOX => Some(Part::Outbox),
        INBOX => Some(Part::Inbox),
        _ => None,
    }
}

fn user(family: Family, offset: usize) -> bool {
    match family {
        Family::GatherPush | Family::GatherPull => [
            offset_of!(GatherParams, input),
            offset_of!(GatherParams, output),
        ]
        .contains(&offset),
        Family::ReducePush | Family::ReducePull => [
            offset_of!(ReduceParams, input),
            offset_of!(ReduceParams, lse),
            offset_of!(ReduceParams, output),
        ]
        .contains(&offset),
    }
}
