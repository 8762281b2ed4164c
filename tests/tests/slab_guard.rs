//! What lies around a mapping: nothing.

use slabfence::driver::Device;
use slabfence::slab::{Arena, Mapping, Outbox, Signal};
use slabfence_tests::probe::{Probe, is_illegal_address, machine};

#[test]
fn a_mapping_is_zero_and_its_first_and_last_words_are_the_owners_to_write() {
    let (_machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let mapping = Mapping::<Signal>::create(&device, 100).unwrap();
    let probe = Probe::new(&device).unwrap();
    let range = mapping.range();
    assert_eq!(range.bytes(), device.granularity().unwrap());
    for (address, offset) in [(range.ptr().get(), 0), (range.end() - 8, range.bytes() - 8)] {
        assert_eq!(probe.peek(address).unwrap(), 0);
        probe.poke(address, 0x0102_0304_0506_0708).unwrap();
        let mut word = [0; 8];
        mapping.read(offset, &mut word).unwrap();
        assert_eq!(u64::from_le_bytes(word), 0x0102_0304_0506_0708);
    }
}

/// Stores to an address relative to a fresh mapping and gives what comes of it.
fn poke_at(address: impl FnOnce(&Mapping<Signal>) -> u64) -> slabfence::Result<()> {
    let (machine, driver) = machine(1);
    machine.may_fault();
    let device = Device::open(&driver, 0)?;
    // A neighbour on either side: a guard must lie between, not only where addresses happen to end.
    let _before = Mapping::<Outbox>::create(&device, 1)?;
    let mapping = Mapping::<Signal>::create(&device, 1)?;
    let _after = Mapping::<Outbox>::create(&device, 1)?;
    Probe::new(&device)?.poke(address(&mapping), 1)
}

#[test]
fn a_store_into_either_guard_faults() {
    let guard = |mapping: &Mapping<Signal>| mapping.guard() as u64;
    let low = |mapping: &Mapping<Signal>| mapping.range().ptr().get();
    poke_at(low).unwrap();
    for error in [
        poke_at(|mapping| low(mapping) - 8),
        poke_at(|mapping| low(mapping) - guard(mapping)),
        poke_at(|mapping| mapping.range().end()),
        poke_at(|mapping| mapping.range().end() + guard(mapping) - 8),
    ] {
        let error = error.unwrap_err();
        assert!(is_illegal_address(&error), "{error}");
    }
}

#[test]
fn the_word_behind_an_arenas_last_range_faults() {
    let (machine, driver) = machine(1);
    machine.may_fault();
    let device = Device::open(&driver, 0).unwrap();
    let arena = Arena::<Outbox>::create(&device, 1000, 3).unwrap();
    let probe = Probe::new(&device).unwrap();
    let last = arena.range(2).unwrap();
    probe.poke(last.end() - 8, 7).unwrap();
    let mut word = [0; 8];
    arena.read(2, 1024 - 8, &mut word).unwrap();
    assert_eq!(u64::from_le_bytes(word), 7);
    let error = probe.poke(last.end(), 7).unwrap_err();
    assert!(is_illegal_address(&error), "{error}");
    let faults = machine.faults();
    let said = format!("{:#x}", last.end());
    assert!(
        faults.iter().any(|fault| fault.contains(&said)),
        "{faults:?}"
    );
}
