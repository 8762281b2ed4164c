//! Captured graphs: what is in them, what they hold, what replaying does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use slabfence::driver::{CaptureMode, CaptureStatus, Device, DeviceBuffer, drop_released};
use slabfence::sys::CUgraphNodeType;
use slabfence_tests::probe::{Probe, machine};

#[test]
fn a_captured_kernel_is_one_node_with_its_name_and_its_parameters() {
    let (_machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let probe = Probe::new(&device).unwrap();
    let buffer = DeviceBuffer::new(&device, 8).unwrap();
    buffer.fill(0).unwrap();
    probe.stream.begin_capture(CaptureMode::Global).unwrap();
    probe.enqueue_poke(buffer.ptr().raw(), 0x55aa).unwrap();
    let graph = probe.stream.end_capture().unwrap();

    let nodes = graph.nodes().unwrap();
    assert_eq!(nodes.len(), 1);
    assert_eq!(nodes[0].kind, CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL);
    assert_eq!(graph.kernel_nodes().unwrap(), 1);
    let kernel = nodes[0].kernel().unwrap();
    assert_eq!(kernel.function.as_deref(), Some("poke"));
    assert_eq!((kernel.grid, kernel.block), ([1, 1, 1], [1, 1, 1]));
    let params = kernel.params.as_ref().unwrap();
    assert_eq!(params.len(), 1);
    assert_eq!(params[0].offset, 0);
    let words = [buffer.ptr().raw().to_le_bytes(), 0x55aau64.to_le_bytes()].concat();
    assert_eq!(params[0].bytes, words);

    let mut word = [0xff; 8];
    buffer.read(0, &mut word).unwrap();
    assert_eq!(word, [0; 8], "capturing executes nothing");
    let mut exec = graph.instantiate().unwrap();
    exec.launch(&probe.stream).unwrap();
    probe.stream.synchronize().unwrap();
    buffer.read(0, &mut word).unwrap();
    assert_eq!(u64::from_le_bytes(word), 0x55aa);
}

#[test]
fn the_status_of_a_stream_tells_each_capture_from_every_other() {
    let (_machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let probe = Probe::new(&device).unwrap();
    assert_eq!(probe.stream.capture_status().unwrap(), CaptureStatus::None);
    let capture = || {
        probe
            .stream
            .begin_capture(CaptureMode::ThreadLocal)
            .unwrap();
        let status = probe.stream.capture_status().unwrap();
        let CaptureStatus::Active { id, graph } = status else {
            panic!("{status:?}");
        };
        assert_eq!(probe.stream.end_capture().unwrap().raw(), graph);
        id
    };
    assert_ne!(capture(), capture());
    assert_eq!(probe.stream.capture_status().unwrap(), CaptureStatus::None);
}

#[test]
fn copies_and_allocations_of_this_library_do_not_disturb_a_capture() {
    let (_machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let probe = Probe::new(&device).unwrap();
    probe.stream.begin_capture(CaptureMode::Global).unwrap();
    let buffer = DeviceBuffer::new(&device, 8).unwrap();
    buffer.write(0, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    drop(Probe::new(&device).unwrap());
    let other = std::thread::scope(|scope| {
        scope
            .spawn(|| DeviceBuffer::new(&device, 8).and_then(|buffer| buffer.fill(1)))
            .join()
    });
    other.unwrap().unwrap();
    let graph = probe.stream.end_capture().unwrap();
    assert_eq!(graph.nodes().unwrap(), []);
    let mut bytes = [0; 8];
    buffer.read(0, &mut bytes).unwrap();
    assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn an_object_lives_as_long_as_the_last_executable_of_its_graph() {
    let (machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let probe = Probe::new(&device).unwrap();
    let object = Arc::new(());
    probe.stream.begin_capture(CaptureMode::Global).unwrap();
    probe.stream.retain_in_capture(object.clone()).unwrap();
    let graph = probe.stream.end_capture().unwrap();
    let exec = graph.instantiate().unwrap();
    drop(graph);
    drop_released();
    assert_eq!(Arc::strong_count(&object), 2);
    assert_eq!(machine.live().user_objects, 1);
    drop(exec);
    // The driver may call the destructor from a thread of its own, a little later.
    let deadline = Instant::now() + Duration::from_secs(20);
    while Arc::strong_count(&object) > 1 && Instant::now() < deadline {
        drop_released();
        std::thread::yield_now();
    }
    assert_eq!(Arc::strong_count(&object), 1);
    assert_eq!(machine.live().user_objects, 0);
}

#[test]
fn a_graph_can_be_made_to_hold_an_object_after_its_capture() {
    let (_machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let probe = Probe::new(&device).unwrap();
    probe.stream.begin_capture(CaptureMode::Relaxed).unwrap();
    let graph = probe.stream.end_capture().unwrap();
    let object = Arc::new(());
    graph.retain(object.clone()).unwrap();
    assert_eq!(Arc::strong_count(&object), 2);
    drop(graph);
    let deadline = Instant::now() + Duration::from_secs(20);
    while Arc::strong_count(&object) > 1 && Instant::now() < deadline {
        drop_released();
        std::thread::yield_now();
    }
    assert_eq!(Arc::strong_count(&object), 1);
}
