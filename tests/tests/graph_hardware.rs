//! Dumps on this machine's real driver: what an emulated one could be wrong about. Without a GPU these tests say so and end.

#![allow(clippy::multiple_unsafe_ops_per_block, reason = "a host's own calls")]

use std::ffi::c_void;

use slabfence::driver::{
    Allocation, CaptureMode, Device, DeviceBuffer, Driver, PinnedBuffer, Work,
};
use slabfence::graph::{Dump, Place};
use slabfence::slab::{Mapping, Signal};
use slabfence::sys::{CUdeviceptr, CUresult};
use slabfence_tests::probe::Probe;
use slabfence_tests::untested::untested;

unsafe extern "C" fn nothing(_: *mut c_void) {}

#[test]
fn a_real_driver_tells_every_node_and_whose_memory_it_uses() {
    let opened = Driver::open().and_then(|driver| Device::open(&driver, 0));
    let device = match opened {
        Ok(device) => device,
        Err(error) => return untested(&error.to_string()),
    };
    let probe = Probe::new(&device).unwrap();
    let buffer = DeviceBuffer::new(&device, 4096).unwrap();
    let pinned = PinnedBuffer::new(&device, 64).unwrap();
    let mut mapping = Mapping::<Signal>::create(&device, 100).unwrap();
    let mapped = mapping.range().ptr().get();
    let freed = {
        let buffer = DeviceBuffer::new(&device, 64 << 20).unwrap();
        buffer.ptr().raw()
    };
    let at = buffer.ptr().raw();

    let api = device.driver().api();
    let stream = probe.stream.raw();
    probe
        .stream
        .begin_capture(CaptureMode::ThreadLocal)
        .unwrap();
    probe.enqueue_poke(at + 8, 7).unwrap();
    probe
        .enqueue_poke(mapped + 128, pinned.ptr().raw())
        .unwrap();
    probe.enqueue_poke(freed, 7).unwrap();
    // SAFETY: the memory is the test's and lives; the work is only captured.
    let codes = unsafe {
        let _bound = device.bind().unwrap();
        [
            (api.cuMemcpyDtoDAsync.unwrap())(CUdeviceptr(at + 64), CUdeviceptr(at), 48, stream),
            (api.cuMemcpyDtoHAsync.unwrap())(
                std::ptr::with_exposed_provenance_mut(pinned.ptr().raw() as usize),
                CUdeviceptr(at),
                16,
                stream,
            ),
            (api.cuMemsetD32Async.unwrap())(CUdeviceptr(at), 0x00c0_ffee, 5, stream),
            (api.cuLaunchHostFunc.unwrap())(
                stream,
                Some(nothing),
                std::ptr::without_provenance_mut(9),
            ),
        ]
    };
    assert_eq!(codes, [CUresult::CUDA_SUCCESS; 4]);
    let graph = probe.stream.end_capture().unwrap();
    let dump = Dump::of(&device, &graph, &[]).unwrap();
    println!("{dump}");

    let nodes = &dump.contents.nodes;
    let kinds: Vec<u32> = nodes.iter().map(|node| node.kind.0).collect();
    assert_eq!(kinds, [0, 0, 0, 1, 1, 2, 3]);
    let edges = dump.contents.edges.iter();
    let edges: Vec<_> = edges
        .map(|edge| (edge.from, edge.to, edge.kind.0))
        .collect();
    let chain: Vec<_> = (0..6).map(|node| (node, node + 1, 0)).collect();
    assert_eq!(edges, chain);
    let kernel = nodes[0].kernel().unwrap();
    assert_eq!(kernel.function.as_deref(), Some("poke"));
    assert_eq!(kernel.attributes["cooperative"], 0);
    assert!(kernel.attributes["registers"] > 0);
    let words = [(at + 8).to_le_bytes(), 7u64.to_le_bytes()].concat();
    assert_eq!(kernel.params.as_ref().unwrap()[0].bytes, words);

    let place = |base: u64, bytes: usize, offset: u64| Place::Allocation {
        allocation: Allocation {
            base,
            bytes: bytes as u64,
            device: Some(0),
            host: false,
        },
        offset,
    };
    assert_eq!(dump.place(at + 8), Some(&place(at, 4096, 8)));
    assert_eq!(dump.place(at + 64), Some(&place(at, 4096, 64)));
    let range = mapping.range();
    assert_eq!(
        dump.place(mapped + 128),
        Some(&place(mapped, range.bytes(), 128))
    );
    assert_eq!(dump.place(freed), Some(&Place::Nothing));
    let host = dump.place(pinned.ptr().raw()).unwrap();
    assert!(
        matches!(host, Place::Allocation { allocation, offset: 0 } if allocation.host),
        "{host}"
    );
    let Work::Copy(copy) = &nodes[3].work else {
        panic!("{:?}", nodes[3])
    };
    assert_eq!((copy.from.address, copy.to.address), (at, at + 64));
    assert_eq!((copy.bytes, copy.rows, copy.planes), (48, 1, 1));
    let Work::Copy(copy) = &nodes[4].work else {
        panic!("{:?}", nodes[4])
    };
    assert_eq!(
        (copy.from.address, copy.to.address),
        (at, pinned.ptr().raw())
    );
    let Work::Fill(fill) = &nodes[5].work else {
        panic!("{:?}", nodes[5])
    };
    assert_eq!(
        (fill.to, fill.value, fill.element_bytes),
        (at, 0x00c0_ffee, 4)
    );
    assert_eq!((fill.elements, fill.rows), (5, 1));
    let function = nothing as *const c_void as u64;
    let host = Work::Host {
        function,
        argument: 9,
    };
    assert_eq!(nodes[6].work, host);
    assert_eq!(Dump::from_json(&dump.to_json()).unwrap(), dump);
    drop(graph);
    mapping.close().unwrap();
}
