//! Payload cannot be sent where signals belong: the kinds' addresses are different types.

use slabfence::slab::{Inbox, PeerRange, Ptr, Range, Signal};

fn raise_flag(_at: Ptr<Signal>) {}

fn own(inbox: Range<Inbox>) {
    raise_flag(inbox.ptr());
}

fn peer(inbox: PeerRange<Inbox>) {
    raise_flag(inbox.ptr());
}

fn same(inbox: Ptr<Inbox>, signal: Ptr<Signal>) -> bool {
    inbox == signal
}

fn main() {
    let _ = (own, peer, same);
}
