//! The same calls in their right form: what fails in the other programs fails for its types alone.

use slabfence::group::{Group, PeerIndex};
use slabfence::layout::{SignalLayout, Slot};
use slabfence::slab::{
    Arena, ArenaRecord, Inbox, Outbox, PeerArena, PeerRange, Ptr, Range, Signal,
};

fn raise_flag(_at: Ptr<Signal>) {}

fn fill(_own: Range<Outbox>) {}

fn use_all(
    group: &Group,
    record: &ArenaRecord,
    inbox: &Arena<Inbox>,
    signal: PeerRange<Signal>,
    own: Range<Outbox>,
) {
    let _peers: Vec<PeerIndex> = group.peers().collect();
    let _ = PeerArena::<Inbox>::accept(record, inbox);
    raise_flag(signal.ptr());
    fill(own);
}

fn main() {
    let _ = use_all;
    let layout = SignalLayout::new(2, 1).expect("within bounds");
    assert!(layout.entry(Slot::A) < layout.entry(Slot::B));
}
