//! A peer index comes from the group alone.

use slabfence::group::{PeerIndex, Rank};

fn main() {
    let _ = PeerIndex(Rank(1));
    let _: PeerIndex = Rank(1).into();
    let _: PeerIndex = Rank(1);
}
