//! What a peer owns is no range of this rank.

use slabfence::slab::{Outbox, PeerRange, Range};

fn fill(_own: Range<Outbox>) {}

fn peer(outbox: PeerRange<Outbox>) {
    fill(outbox);
}

fn main() {
    let _ = peer;
}
