//! What peers' devices may do in each kind of memory.

use slabfence::driver::Device;
use slabfence::slab::{Inbox, Kind, Mapping, Outbox, Signal};
use slabfence_tests::probe::{Probe, is_illegal_address, machine};
use slabfence_tests::watched::Watched;

struct Pair<K: Kind> {
    mapping: Mapping<K>,
    owner: Probe,
    peer: Probe,
    machine: Watched,
}

/// A mapping on device 0, and a probe on it and on device 1.
fn pair<K: Kind>() -> Pair<K> {
    let (machine, driver) = machine(2);
    let here = Device::open(&driver, 0).unwrap();
    let there = Device::open(&driver, 1).unwrap();
    Pair {
        mapping: Mapping::create(&here, 1).unwrap(),
        owner: Probe::new(&here).unwrap(),
        peer: Probe::new(&there).unwrap(),
        machine,
    }
}

#[test]
fn without_a_grant_a_peer_can_neither_load_nor_store() {
    let pair = pair::<Signal>();
    pair.machine.may_fault();
    let address = pair.mapping.range().ptr().get();
    let error = pair.peer.peek(address).unwrap_err();
    assert!(is_illegal_address(&error), "{error}");

    let pair = self::pair::<Signal>();
    pair.machine.may_fault();
    let address = pair.mapping.range().ptr().get();
    let error = pair.peer.poke(address, 1).unwrap_err();
    assert!(is_illegal_address(&error), "{error}");
}

#[test]
fn a_peer_loads_from_an_outbox_and_its_store_there_faults() {
    let pair = pair::<Outbox>();
    pair.machine.may_fault();
    let address = pair.mapping.range().ptr().get();
    pair.owner.poke(address, 41).unwrap();
    pair.mapping.grant(&[1]).unwrap();
    assert_eq!(pair.peer.peek(address).unwrap(), 41);
    pair.owner.poke(address, 42).unwrap();
    assert_eq!(pair.peer.peek(address).unwrap(), 42);
    let error = pair.peer.poke(address, 43).unwrap_err();
    assert!(is_illegal_address(&error), "{error}");
    let mut word = [0; 8];
    pair.mapping.read(0, &mut word).unwrap();
    assert_eq!(u64::from_le_bytes(word), 42);
}

fn peer_stores<K: Kind>() {
    let pair = pair::<K>();
    let address = pair.mapping.range().end() - 8;
    pair.mapping.grant(&[0, 1]).unwrap();
    pair.peer.poke(address, 44).unwrap();
    assert_eq!(pair.owner.peek(address).unwrap(), 44);
    assert_eq!(pair.peer.peek(address).unwrap(), 44);
}

#[test]
fn a_peer_loads_and_stores_in_signal_memory_and_inboxes() {
    peer_stores::<Signal>();
    peer_stores::<Inbox>();
}
