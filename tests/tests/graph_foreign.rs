//! Dumps of graphs that are not this library's: every kind of node, edges, memory, and drivers that tell less or more.

#![allow(clippy::multiple_unsafe_ops_per_block, reason = "a host's own calls")]

use std::ffi::c_void;

use slabfence::driver::{
    Allocation, CaptureMode, Contents, CopyEnd, CopyNode, Device, DeviceBuffer, Driver, Edge,
    FillNode, Graph, Work,
};
use slabfence::graph::{Dump, Place};
use slabfence::sys::{
    CUdeviceptr, CUgraph, CUgraphDependencyType, CUgraphEdgeData, CUgraphNode, CUgraphNodeType,
    CUresult,
};
use slabfence_tests::probe::{Probe, machine};

unsafe extern "C" fn nothing(_: *mut c_void) {}

/// A graph of a host: a kernel, a copy, a fill, a host function.
fn host_graph(device: &Device, probe: &Probe, a: &DeviceBuffer, b: &DeviceBuffer) -> Graph {
    let api = device.driver().api();
    let (to, from) = (CUdeviceptr(b.ptr().raw()), CUdeviceptr(a.ptr().raw() + 16));
    let stream = probe.stream.raw();
    probe
        .stream
        .begin_capture(CaptureMode::ThreadLocal)
        .unwrap();
    probe.enqueue_poke(a.ptr().raw() + 8, 7).unwrap();
    let argument = std::ptr::without_provenance_mut(b.ptr().raw() as usize + 32);
    // SAFETY: buffers and stream are the test's and live; the work is only captured.
    let codes = unsafe {
        let _bound = device.bind().unwrap();
        [
            (api.cuMemcpyDtoDAsync.unwrap())(to, from, 48, stream),
            (api.cuMemsetD32Async.unwrap())(to, 0x00c0_ffee, 5, stream),
            (api.cuLaunchHostFunc.unwrap())(stream, Some(nothing), argument),
        ]
    };
    assert_eq!(codes, [CUresult::CUDA_SUCCESS; 3]);
    probe.stream.end_capture().unwrap()
}

fn chain(edges: &[Edge]) -> Vec<(usize, usize, u8, u8, u8)> {
    let of = |edge: &Edge| {
        (
            edge.from,
            edge.to,
            edge.kind.0,
            edge.from_port,
            edge.to_port,
        )
    };
    edges.iter().map(of).collect()
}

fn memory(buffer: &DeviceBuffer, device: u32, offset: u64) -> Place {
    Place::Allocation {
        allocation: Allocation {
            base: buffer.ptr().raw(),
            bytes: buffer.len() as u64,
            device: Some(device),
            host: false,
        },
        offset,
    }
}

#[test]
fn every_node_of_a_hosts_graph_is_read_and_its_memory_found() {
    let (_machine, driver) = machine(2);
    let device = Device::open(&driver, 1).unwrap();
    let probe = Probe::new(&device).unwrap();
    let (a, b) = (
        DeviceBuffer::new(&device, 64).unwrap(),
        DeviceBuffer::new(&device, 96).unwrap(),
    );
    let graph = host_graph(&device, &probe, &a, &b);
    // SAFETY: the graph is the test's and lives.
    let dump = unsafe { Dump::of_raw(&device, graph.raw(), &[]) }.unwrap();
    assert_eq!((dump.driver_version, dump.device), (13000, 1));
    let Contents { nodes, edges } = &dump.contents;
    assert_eq!(
        chain(edges),
        [(0, 1, 0, 0, 0), (1, 2, 0, 0, 0), (2, 3, 0, 0, 0)]
    );
    let kinds: Vec<u32> = nodes.iter().map(|node| node.kind.0).collect();
    assert_eq!(kinds, [0, 1, 2, 3]);

    let (a_at, b_at) = (a.ptr().raw(), b.ptr().raw());
    let kernel = nodes[0].kernel().unwrap();
    assert_eq!(kernel.function.as_deref(), Some("poke"));
    assert_eq!((kernel.grid, kernel.block), ([1; 3], [1; 3]));
    assert_eq!(kernel.attributes["cooperative"], 0);
    assert_eq!(kernel.attributes["static_shared_bytes"], 0);
    let params = kernel.params.as_ref().unwrap();
    assert_eq!(params.len(), 1);
    assert_eq!(params[0].offset, 0);
    let words = [(a_at + 8).to_le_bytes(), 7u64.to_le_bytes()].concat();
    assert_eq!(params[0].bytes, words);
    assert_eq!(params[0].words(), [(0, a_at + 8)]);
    assert_eq!(params[0].block(), None);
    let end = |address| CopyEnd {
        address,
        array: false,
        pitch: 0,
    };
    assert_eq!(
        nodes[1].work,
        Work::Copy(CopyNode {
            from: end(a_at + 16),
            to: end(b_at),
            bytes: 48,
            rows: 1,
            planes: 1,
        })
    );
    assert_eq!(
        nodes[2].work,
        Work::Fill(FillNode {
            to: b_at,
            value: 0x00c0_ffee,
            element_bytes: 4,
            elements: 5,
            rows: 1,
            pitch: 0,
        })
    );
    let function = nothing as *const c_void as u64;
    let host = Work::Host {
        function,
        argument: b_at + 32,
    };
    assert_eq!(nodes[3].work, host);

    let places: Vec<_> = dump.places.clone().into_iter().collect();
    let mut expected = vec![
        (a_at + 8, memory(&a, 1, 8)),
        (a_at + 16, memory(&a, 1, 16)),
        (b_at, memory(&b, 1, 0)),
        (b_at + 32, memory(&b, 1, 32)),
    ];
    expected.sort_by_key(|(address, _)| *address);
    assert_eq!(places, expected);
    let hex: Vec<String> = words.iter().map(|byte| format!("{byte:02x}")).collect();
    let registers = kernel.attributes["registers"];
    assert_eq!(
        dump.to_string(),
        format!(
            "graph on device 1 (EMULATED H200 (h200-nvlink)), driver for CUDA 13.0
4 nodes, 3 edges
edge 0 -> 1: full
edge 1 -> 2: full
edge 2 -> 3: full

node 0: kernel poke
  grid 1 x 1 x 1, block 1 x 1 x 1, dynamic shared memory 0 bytes
  cluster.x 0, cluster.y 0, cluster.z 0, cooperative 0, local_bytes 0, max_threads 1024, priority 0, registers {registers}, static_shared_bytes 0
  parameter 0: offset 0, 16 bytes
    {hex}
    at 0: {a8:#x} -> memory of device 1 at {a_at:#x}, 64 bytes, +8

node 1: copy of 48 bytes x 1 rows x 1 planes
  from pitch 0 at {a16:#x} -> memory of device 1 at {a_at:#x}, 64 bytes, +16
  to pitch 0 at {b_at:#x} -> memory of device 1 at {b_at:#x}, 96 bytes

node 2: fill of 5 elements x 1 rows with 0xc0ffee, 4 bytes each, pitch 0
  to {b_at:#x} -> memory of device 1 at {b_at:#x}, 96 bytes

node 3: host function at {function:#x}
  argument {b32:#x} -> memory of device 1 at {b_at:#x}, 96 bytes, +32
",
            hex = hex.join(" "),
            a8 = a_at + 8,
            a16 = a_at + 16,
            b32 = b_at + 32,
        )
    );
    assert_eq!(Dump::from_json(&dump.to_json()).unwrap(), dump);
}

#[test]
fn a_freed_pointer_is_nobodys() {
    let (_machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let probe = Probe::new(&device).unwrap();
    let buffer = DeviceBuffer::new(&device, 64).unwrap();
    let address = buffer.ptr().raw() + 8;
    probe
        .stream
        .begin_capture(CaptureMode::ThreadLocal)
        .unwrap();
    probe.enqueue_poke(address, 1).unwrap();
    let graph = probe.stream.end_capture().unwrap();
    let live = Dump::of(&device, &graph, &[]).unwrap();
    assert_eq!(live.place(address), Some(&memory(&buffer, 0, 8)));
    assert!(live.place(address).unwrap().is_live());
    drop(buffer);
    let stale = Dump::of(&device, &graph, &[]).unwrap();
    assert_eq!(stale.place(address), Some(&Place::Nothing));
    assert_eq!(stale.contents, live.contents, "the graph is the same");
    let line = format!("at 0: {address:#x} -> none: no live memory that the driver knows\n");
    assert!(stale.to_string().contains(&line), "{stale}");
    assert_eq!(Dump::from_json(&stale.to_json()).unwrap(), stale);
}

#[test]
fn a_driver_before_12_3_tells_neither_names_nor_parameters_nor_kinds_of_edges() {
    let (machine, _) = machine(1);
    let mut api = machine.api().unwrap();
    api.cuFuncGetName = None;
    api.cuFuncGetParamInfo = None;
    api.cuGraphGetEdges_v2 = None;
    let device = Device::open(&Driver::from_api(api).unwrap(), 0).unwrap();
    let probe = Probe::new(&device).unwrap();
    let (a, b) = (
        DeviceBuffer::new(&device, 64).unwrap(),
        DeviceBuffer::new(&device, 96).unwrap(),
    );
    let graph = host_graph(&device, &probe, &a, &b);
    let dump = Dump::of(&device, &graph, &[]).unwrap();
    let kernel = dump.contents.nodes[0].kernel().unwrap();
    assert_eq!(
        (kernel.function.as_ref(), kernel.params.as_ref()),
        (None, None)
    );
    assert_eq!(dump.contents.edges.len(), 3);
    assert!(dump.to_string().contains(
        "node 0: kernel (name not told)\n  grid 1 x 1 x 1, block 1 x 1 x 1, dynamic shared memory 0 bytes\n"
    ));
    let told = dump.to_string();
    assert!(
        told.contains("parameters: the driver does not tell them\n"),
        "{told}"
    );
    assert_eq!(Dump::from_json(&dump.to_json()).unwrap(), dump);
}

/// A node kind of a driver to come.
unsafe extern "C" fn kind_99(_: CUgraphNode, kind: *mut CUgraphNodeType) -> CUresult {
    // SAFETY: the library passes a place for one kind.
    unsafe { *kind = CUgraphNodeType(99) };
    CUresult::CUDA_SUCCESS
}

/// Two edges between two nodes, of which the second is programmatic and the first of a kind to come.
unsafe extern "C" fn edges_of_all_kinds(
    _: CUgraph,
    from: *mut CUgraphNode,
    to: *mut CUgraphNode,
    data: *mut CUgraphEdgeData,
    count: *mut usize,
) -> CUresult {
    let node = |number| CUgraphNode::from_ptr(std::ptr::without_provenance_mut(number));
    // SAFETY: the library passes places for two edges, or null for all three lists.
    unsafe {
        *count = 2;
        if !from.is_null() {
            from.write(node(1));
            to.write(node(2));
            data.write(CUgraphEdgeData {
                type_: CUgraphDependencyType(7),
                ..CUgraphEdgeData::default()
            });
            from.add(1).write(node(1));
            to.add(1).write(node(2));
            data.add(1).write(CUgraphEdgeData {
                from_port: 1,
                type_: CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC,
                ..CUgraphEdgeData::default()
            });
        }
    }
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn two_nodes(_: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) -> CUresult {
    // SAFETY: the library passes a place for a number, and places for two nodes or null.
    unsafe {
        *count = 2;
        if !nodes.is_null() {
            for number in 0..2 {
                let node = CUgraphNode::from_ptr(std::ptr::without_provenance_mut(number + 1));
                nodes.add(number).write(node);
            }
        }
    }
    CUresult::CUDA_SUCCESS
}

#[test]
fn what_a_newer_driver_has_is_told_by_number() {
    let (machine, _) = machine(1);
    let mut api = machine.api().unwrap();
    api.cuGraphGetNodes = Some(two_nodes);
    api.cuGraphNodeGetType = Some(kind_99);
    api.cuGraphGetEdges_v2 = Some(edges_of_all_kinds);
    let device = Device::open(&Driver::from_api(api).unwrap(), 0).unwrap();
    // SAFETY: the functions above do not look at the graph.
    let dump = unsafe { Dump::of_raw(&device, CUgraph::null(), &[]) }.unwrap();
    assert_eq!(
        dump.to_string(),
        "graph on device 0 (EMULATED H200 (h200-nvlink)), driver for CUDA 13.0
2 nodes, 2 edges
edge 0 -> 1: unknown edge type 7
edge 0 -> 1: programmatic, from port 1 to port 0

node 0: unknown node type 99

node 1: unknown node type 99
"
    );
    assert_eq!(
        dump.to_dot(),
        "digraph slabfence {
  node [shape=box, fontname=monospace];
  n0 [label=\"0: unknown node type 99\"];
  n1 [label=\"1: unknown node type 99\"];
  n0 -> n1 [style=dashed, label=\"unknown edge type 7\"];
  n0 -> n1 [style=dashed, label=\"programmatic, from port 1 to port 0\"];
}
"
    );
    assert_eq!(Dump::from_json(&dump.to_json()).unwrap(), dump);
}

unsafe extern "C" fn refuse<T>(_: CUgraphNode, _: *mut T) -> CUresult {
    CUresult::CUDA_ERROR_NOT_SUPPORTED
}

#[test]
fn a_node_that_the_driver_does_not_explain_hides_no_other() {
    let (machine, _) = machine(1);
    let mut api = machine.api().unwrap();
    api.cuGraphKernelNodeGetParams = Some(refuse);
    api.cuGraphMemcpyNodeGetParams = Some(refuse);
    api.cuGraphMemsetNodeGetParams = None;
    let device = Device::open(&Driver::from_api(api).unwrap(), 0).unwrap();
    let probe = Probe::new(&device).unwrap();
    let (a, b) = (
        DeviceBuffer::new(&device, 64).unwrap(),
        DeviceBuffer::new(&device, 96).unwrap(),
    );
    let graph = host_graph(&device, &probe, &a, &b);
    let dump = Dump::of(&device, &graph, &[]).unwrap();
    let words: Vec<&str> = dump.contents.nodes[..3]
        .iter()
        .map(|node| match &node.work {
            Work::Unread(words) => words.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(words[0].starts_with("cuGraphKernelNodeGetParams failed: CUDA_ERROR_NOT_SUPPORTED"));
    assert!(words[1].starts_with("cuGraphMemcpyNodeGetParams failed: CUDA_ERROR_NOT_SUPPORTED"));
    assert!(
        words[2].contains("cuGraphMemsetNodeGetParams"),
        "{}",
        words[2]
    );
    assert!(matches!(dump.contents.nodes[3].work, Work::Host { .. }));
    // The host function's argument is left.
    let places: Vec<_> = dump.places.clone().into_iter().collect();
    assert_eq!(places, [(b.ptr().raw() + 32, memory(&b, 0, 32))]);
    assert_eq!(Dump::from_json(&dump.to_json()).unwrap(), dump);
}
