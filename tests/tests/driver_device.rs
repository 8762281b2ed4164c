//! Devices, streams and host memory on an emulated machine.

use std::thread;

use slabfence::driver::{Device, DeviceBuffer, Event, PinnedBuffer, Stream};
use slabfence_tests::probe::{Probe, machine};

#[test]
fn devices_say_that_they_are_emulated_and_differ_in_their_identity() {
    let (_machine, driver) = machine(3);
    assert!(driver.is_emulated());
    assert_eq!(driver.version(), 13000);
    let devices = driver.devices().unwrap();
    assert_eq!(devices.len(), 3);
    for (ordinal, info) in (0u32..).zip(&devices) {
        assert_eq!(info.ordinal, ordinal);
        assert!(info.name.contains("EMULATED"), "{}", info.name);
        assert_eq!((info.compute_capability, info.sm_count), ((9, 0), 132));
        assert!(info.virtual_memory);
        let same = devices.iter().filter(|other| other.uuid == info.uuid);
        assert_eq!(same.count(), 1);
    }
    let device = Device::open(&driver, 1).unwrap();
    assert!(device.native_atomics_to(0).unwrap() && device.native_atomics_to(1).unwrap());
    assert!(device.is_accessible_from(2).unwrap());
    assert!(Device::open(&driver, 3).is_err());
}

#[test]
fn kernels_events_and_pinned_memory_work_from_any_thread() {
    let (_machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let pinned = PinnedBuffer::new(&device, 32).unwrap();
    assert_eq!(pinned.load(24).unwrap(), 0);
    let probe = Probe::new(&device).unwrap();
    thread::scope(|scope| {
        scope
            .spawn(|| {
                let event = Event::new(&device).unwrap();
                let other = Stream::new(&device).unwrap();
                probe.enqueue_poke(pinned.ptr().raw() + 24, 77).unwrap();
                event.record(&probe.stream).unwrap();
                other.wait(&event).unwrap();
                other.synchronize().unwrap();
                assert!(event.query().unwrap() && other.query().unwrap());
            })
            .join()
            .unwrap();
    });
    assert_eq!(pinned.load(24).unwrap(), 77);
    pinned.store(0, 78).unwrap();
    assert_eq!(probe.peek(pinned.ptr().raw()).unwrap(), 78);
    assert!(pinned.load(28).is_err(), "a word that ends past the buffer");
    assert!(pinned.load(4).is_err(), "a word that is not aligned");
}

#[test]
fn copies_arrive_in_both_directions() {
    let (_machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let stream = Stream::new(&device).unwrap();
    let buffer = DeviceBuffer::new(&device, 64).unwrap();
    let (from, to) = (
        PinnedBuffer::new(&device, 64).unwrap(),
        PinnedBuffer::new(&device, 64).unwrap(),
    );
    let data: Vec<u8> = (0..64).collect();
    from.write(0, &data).unwrap();
    // SAFETY: all three buffers live until the stream was waited for.
    unsafe { buffer.write_async(8, &from, 16, 40, &stream) }.unwrap();
    // SAFETY: as above.
    unsafe { buffer.read_async(8, &to, 0, 40, &stream) }.unwrap();
    stream.synchronize().unwrap();
    let mut back = [0; 40];
    to.read(0, &mut back).unwrap();
    assert_eq!(back[..], data[16..56]);
    buffer.read(8, &mut back).unwrap();
    assert_eq!(back[..], data[16..56]);
    // SAFETY: refused before anything is enqueued.
    assert!(unsafe { buffer.write_async(32, &from, 0, 40, &stream) }.is_err());
    // SAFETY: as above.
    assert!(unsafe { buffer.read_async(0, &to, 32, 40, &stream) }.is_err());
}

#[test]
fn streams_have_identities_that_outlive_their_handles() {
    let (_machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let id = |stream: &Stream| stream.id().unwrap().unwrap();
    let first = Stream::new(&device).unwrap();
    let (handle, identity) = (first.raw(), id(&first));
    drop(first);
    // Whether the handle's value comes back or not, the identity does not.
    for _ in 0..8 {
        let next = Stream::new(&device).unwrap();
        assert_ne!(
            id(&next),
            identity,
            "handle {handle:?}, now {:?}",
            next.raw()
        );
    }
}
