//! Nothing is left behind.

use slabfence::driver::{CaptureMode, Device, DeviceBuffer, Event, PinnedBuffer};
use slabfence::layout::Slot;
use slabfence::slab::{Arena, Inbox, Local, Note, Signal};
use slabfence::sys::RangeKind;
use slabfence_emu::Live;
use slabfence_tests::probe::{Probe, machine};

#[test]
fn nothing_is_alive_after_everything_was_dropped() {
    let (machine, driver) = machine(2);
    let device = Device::open(&driver, 0).unwrap();
    {
        let arena = Arena::<Local>::create(&device, 8704, 4).unwrap();
        let probe = Probe::new(&device).unwrap();
        let buffer = DeviceBuffer::new(&device, 64).unwrap();
        let pinned = PinnedBuffer::new(&device, 64).unwrap();
        let event = Event::new(&device).unwrap();
        event.record(&probe.stream).unwrap();
        probe
            .stream
            .begin_capture(CaptureMode::ThreadLocal)
            .unwrap();
        probe.enqueue_poke(buffer.ptr().raw(), 3).unwrap();
        let graph = probe.stream.end_capture().unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&probe.stream).unwrap();
        probe.stream.synchronize().unwrap();
        let live = machine.live();
        assert_eq!((live.mappings, live.reservations), (1, 1), "{live:?}");
        assert_eq!(
            (live.graphs, live.execs, live.modules),
            (1, 1, 1),
            "{live:?}"
        );
        assert_eq!(
            (live.allocations, live.host_allocations),
            (1, 1),
            "{live:?}"
        );
        drop((arena, pinned));
    }
    drop(device);
    assert_eq!(machine.live(), Live::default());
    assert_eq!(machine.faults(), [""; 0]);
}

#[test]
fn a_closed_arena_is_gone_at_once_and_closing_again_does_nothing() {
    let (machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let mut arena = Arena::<Signal>::create(&device, 4096, 2).unwrap();
    let before = machine.live();
    assert_eq!((before.mappings, before.reservations), (1, 1));
    arena.close().unwrap();
    let after = machine.live();
    assert_eq!(
        (after.mappings, after.reservations, after.physical),
        (0, 0, 0)
    );
    arena.close().unwrap();
    assert!(matches!(
        arena.write(0, 0, &[1]),
        Err(slabfence::Error::Closed { .. })
    ));
    drop(arena);
    assert_eq!(machine.live(), after);
}

#[test]
fn announced_ranges_are_known_by_kind_until_the_arena_is_closed() {
    let (machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let mut arena = Arena::<Inbox>::create(&device, 1024, 2).unwrap();
    let note = Note {
        channel: 9,
        owner: 3,
        slot: Some(Slot::B),
        phase: None,
        source: Some(1),
    };
    let range = arena.range(1).unwrap();
    let (raw, packets) = (range.sub(0, 512).unwrap(), range.sub(512, 512).unwrap());
    raw.announce(&driver, note).unwrap();
    packets.announce_packets(&driver, note).unwrap();
    let told = machine.announced(raw.end() - 1).unwrap();
    assert_eq!(
        (told.kind, told.base, told.bytes),
        (RangeKind::INBOX, raw.ptr().get(), 512)
    );
    assert_eq!(
        (told.slot, told.rank, told.source, told.channel),
        (1, 3, 1, 9)
    );
    let told = machine.announced(packets.ptr().get()).unwrap();
    assert_eq!(told.kind, RangeKind::PACKETS);
    raw.forget(&driver).unwrap();
    assert_eq!(machine.announced(raw.ptr().get()), None);
    assert_eq!(machine.live().announced, 1);
    arena.close().unwrap();
    assert_eq!(machine.live().announced, 0);
}

#[test]
fn what_is_asked_of_a_pool_after_its_machine_is_answered_and_crashes_nothing() {
    let (machine, driver) = machine(2);
    let contract = slabfence::channel::Contract::new(4, 64, 64, 8);
    let kept = slabfence_tests::ranks::on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract, "a").unwrap();
        (pool, channel)
    });
    drop(machine);
    for (pool, channel) in &kept {
        assert_eq!(pool.health().unwrap(), slabfence::health::Health::Healthy);
        assert!(channel.fault().unwrap().is_none());
    }
}
