//! What of a peer's word is believed.

use slabfence_sys::RangeKind;

use super::*;

#[test]
fn a_record_survives_the_journey() {
    let arena = Arena::<Inbox>::create(&fake::device(), 256, 2).unwrap();
    let record = arena.record();
    let bytes = record.to_bytes();
    assert_eq!(ArenaRecord::from_bytes(&bytes), Some(record));
    assert_eq!(bytes[8..16], u64::from(RangeKind::INBOX.0).to_le_bytes());
    assert_eq!(
        bytes[16..24],
        arena.range(0).unwrap().ptr().get().to_le_bytes()
    );
    assert_eq!(ArenaRecord::from_bytes(&bytes[..47]), None);
    let mut kind = bytes;
    kind[12] = 1;
    assert_eq!(ArenaRecord::from_bytes(&kind), None);
}

#[test]
fn a_peers_ranges_are_where_its_owner_has_them() {
    let (own, peer, _) = peers();
    let seen = PeerArena::accept(&peer.record(), &own).unwrap();
    for index in 0..2 {
        let range = seen.range(index).unwrap();
        assert_eq!(range.ptr(), peer.range(index).unwrap().ptr());
        assert_eq!(range.bytes(), 256);
    }
    assert!(seen.range(2).is_err());
    let range = seen.range(1).unwrap();
    assert_eq!(
        range.sub(128, 128).unwrap().ptr().get(),
        range.ptr().get() + 128
    );
    assert!(range.sub(128, 129).is_err());
}

#[test]
fn a_peers_record_is_believed_only_where_it_fits() {
    let (own, peer, spoil) = peers();
    let why = |record: &ArenaRecord| match PeerArena::accept(record, &own) {
        Err(Error::Refused { why, .. }) => why,
        other => panic!("{other:?}"),
    };
    let base = peer.range(0).unwrap().ptr().get();
    let mine = own.range(0).unwrap().ptr().get();
    for (word, value, said) in [
        (0, process_token() ^ 2, "belongs to another process"),
        (1, 3, "is of OUTBOX memory where inbox memory was expected"),
        (1, 99, "is of RangeKind(99) memory"),
        (2, 0, "is no address"),
        (2, base + 8, "is no address"),
        (2, u64::MAX - 127, "is no address"),
        (2, mine, "overlaps this rank's"),
        (2, mine + 384, "overlaps this rank's"),
        (2, mine - 384, "overlaps this rank's"),
        (3, 128, "a peer has 2 ranges of 128 bytes"),
        (4, 3, "a peer has 3 ranges of 256 bytes"),
    ] {
        let why = why(&spoil(word, value));
        assert!(why.contains(said), "{why}");
    }
    assert!(PeerArena::accept(&spoil(2, mine + 512), &own).is_ok());
}

#[test]
fn local_memory_has_no_peers() {
    let device = fake::device();
    let own = Arena::<Local>::create(&device, 256, 1).unwrap();
    let peer = Arena::<Local>::create(&device, 256, 1).unwrap();
    let refused = PeerArena::accept(&peer.record(), &own).unwrap_err();
    assert!(refused.to_string().contains("never shared"), "{refused}");
}

#[test]
fn two_arenas_of_a_device_never_touch() {
    let (own, peer, _) = peers();
    let (a, b) = (own.range(1).unwrap(), peer.range(0).unwrap());
    assert!(b.ptr().get() - a.end() >= 2 * GRANULE as u64);
}
