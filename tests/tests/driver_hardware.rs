//! The driver layer on this machine's real driver: what an emulated one could be wrong about. Without a GPU these tests
//! say so and end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use slabfence::driver::{
    CaptureMode, CaptureStatus, Device, DeviceBuffer, Driver, PinnedBuffer, drop_released,
};
use slabfence::slab::{Arena, Mapping, Outbox, Signal};
use slabfence_tests::probe::Probe;
use slabfence_tests::untested::untested;

/// The first device, where there is one.
fn hardware() -> Option<Device> {
    let opened = Driver::open().and_then(|driver| Device::open(&driver, 0));
    opened
        .inspect_err(|error| untested(&error.to_string()))
        .ok()
}

#[test]
fn memory_is_mapped_written_read_and_given_back() {
    let Some(device) = hardware() else { return };
    assert!(!device.driver().is_emulated());
    let probe = Probe::new(&device).unwrap();
    let mut mapping = Mapping::<Signal>::create(&device, 100).unwrap();
    let range = mapping.range();
    assert_eq!(range.bytes(), device.granularity().unwrap());
    assert_eq!(probe.peek(range.end() - 8).unwrap(), 0);
    probe.poke(range.end() - 8, 99).unwrap();
    let mut word = [0; 8];
    mapping.read(range.bytes() - 8, &mut word).unwrap();
    assert_eq!(u64::from_le_bytes(word), 99);
    mapping.close().unwrap();
    mapping.close().unwrap();

    let pinned = PinnedBuffer::new(&device, 64).unwrap();
    probe.poke(pinned.ptr().raw() + 8, 5).unwrap();
    assert_eq!(pinned.load(8).unwrap(), 5);
}

#[test]
fn a_peer_reads_what_its_owner_staged() {
    let Some(device) = hardware() else { return };
    if device.driver().devices().unwrap().len() < 2 || !device.is_accessible_from(1).unwrap() {
        untested("device 0 has no peer");
        return;
    }
    let peer = Device::open(device.driver(), 1).unwrap();
    let arena = Arena::<Outbox>::create(&device, 4096, 2).unwrap();
    arena.grant(&[0, 1]).unwrap();
    let last = arena.range(1).unwrap().end() - 8;
    Probe::new(&device).unwrap().poke(last, 1234).unwrap();
    assert_eq!(Probe::new(&peer).unwrap().peek(last).unwrap(), 1234);
}

#[test]
fn a_captured_kernel_tells_its_name_and_parameters_and_replays() {
    let Some(device) = hardware() else { return };
    let probe = Probe::new(&device).unwrap();
    let buffer = DeviceBuffer::new(&device, 8).unwrap();
    buffer.fill(0).unwrap();
    assert_eq!(probe.stream.capture_status().unwrap(), CaptureStatus::None);
    probe
        .stream
        .begin_capture(CaptureMode::ThreadLocal)
        .unwrap();
    assert!(matches!(
        probe.stream.capture_status().unwrap(),
        CaptureStatus::Active { .. }
    ));
    probe.enqueue_poke(buffer.ptr().raw(), 0x55aa).unwrap();
    let graph = probe.stream.end_capture().unwrap();
    let nodes = graph.nodes().unwrap();
    assert_eq!(nodes.len(), 1);
    let kernel = nodes[0].kernel().unwrap();
    assert_eq!(kernel.function.as_deref(), Some("poke"));
    let params = kernel.params.as_ref().unwrap();
    let words = [buffer.ptr().raw().to_le_bytes(), 0x55aau64.to_le_bytes()].concat();
    assert_eq!((params.len(), &params[0].bytes), (1, &words));
    let mut exec = graph.instantiate().unwrap();
    exec.upload(&probe.stream).unwrap();
    exec.launch(&probe.stream).unwrap();
    probe.stream.synchronize().unwrap();
    let mut word = [0; 8];
    buffer.read(0, &mut word).unwrap();
    assert_eq!(u64::from_le_bytes(word), 0x55aa);
}

#[test]
fn set_up_and_teardown_do_not_disturb_a_global_capture() {
    let Some(device) = hardware() else { return };
    let probe = Probe::new(&device).unwrap();
    // Freed in the middle of the capture, each by its own driver call.
    let mut mapping = Mapping::<Outbox>::create(&device, 1).unwrap();
    let pinned = PinnedBuffer::new(&device, 64).unwrap();
    let other = Probe::new(&device).unwrap();
    probe.stream.begin_capture(CaptureMode::Global).unwrap();
    let work = || -> slabfence::Result<()> {
        let buffer = DeviceBuffer::new(&device, 8)?;
        buffer.write(0, &[1; 8])?;
        buffer.read(0, &mut [0; 8])?;
        drop(Probe::new(&device)?);
        let mut mapping = Mapping::<Signal>::create(&device, 1)?;
        mapping.close()
    };
    work().unwrap();
    std::thread::scope(|scope| scope.spawn(work).join())
        .unwrap()
        .unwrap();
    mapping.close().unwrap();
    drop((pinned, other));
    let status = probe.stream.capture_status().unwrap();
    assert!(matches!(status, CaptureStatus::Active { .. }), "{status:?}");
    assert_eq!(probe.stream.end_capture().unwrap().nodes().unwrap(), []);
}

#[test]
fn an_object_lives_as_long_as_the_last_executable_of_its_graph() {
    let Some(device) = hardware() else { return };
    let probe = Probe::new(&device).unwrap();
    let object = Arc::new(());
    probe
        .stream
        .begin_capture(CaptureMode::ThreadLocal)
        .unwrap();
    probe.stream.retain_in_capture(object.clone()).unwrap();
    let graph = probe.stream.end_capture().unwrap();
    let exec = graph.instantiate().unwrap();
    drop(graph);
    drop_released();
    assert_eq!(Arc::strong_count(&object), 2);
    drop(exec);
    let deadline = Instant::now() + Duration::from_secs(20);
    while Arc::strong_count(&object) > 1 && Instant::now() < deadline {
        drop_released();
        std::thread::yield_now();
    }
    assert_eq!(Arc::strong_count(&object), 1);
}

#[test]
fn streams_have_identities_that_outlive_their_handles() {
    let Some(device) = hardware() else { return };
    let id = || Probe::new(&device).unwrap().stream.id().unwrap().unwrap();
    assert_ne!(id(), id());
}
