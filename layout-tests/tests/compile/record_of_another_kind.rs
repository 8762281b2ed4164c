//! A peer's record is accepted against the own arena of the same kind.

use slabfence::slab::{Arena, ArenaRecord, Inbox, PeerArena, Signal};

fn accept(record: &ArenaRecord, inbox: &Arena<Inbox>) {
    let _ = PeerArena::<Signal>::accept(record, inbox);
}

fn main() {
    let _ = accept;
}
