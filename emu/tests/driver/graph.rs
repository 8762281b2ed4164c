//! Graphs and their replay.

use std::ffi::c_void;
use std::time::Duration;

use slabfence_sys::*;

use crate::gpu::{Gpu, PTX, until};
use crate::stream::Gate;

fn nodes(gpu: &Gpu, graph: CUgraph) -> Vec<CUgraphNode> {
    let mut count = 0;
    ok!((gpu.api.cuGraphGetNodes.unwrap())(
        graph,
        std::ptr::null_mut(),
        &mut count
    ));
    let mut nodes = vec![CUgraphNode::null(); count];
    ok!((gpu.api.cuGraphGetNodes.unwrap())(
        graph,
        nodes.as_mut_ptr(),
        &mut count
    ));
    nodes
}

#[test]
fn a_thousand_replays_do_the_captured_work_a_thousand_times() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (add, stream, at) = (gpu.function(module, "add"), gpu.stream(), gpu.alloc(4));
    gpu.write(at, &[0]);
    gpu.begin(stream);
    for _ in 0..3 {
        assert_eq!(
            gpu.launch(add, 1, 32, stream, &[at.0, 5]),
            CUresult::CUDA_SUCCESS
        );
    }
    let graph = gpu.end(stream);
    let exec = gpu.instantiate(graph);
    ok!((gpu.api.cuGraphDestroy.unwrap())(graph));
    ok!((gpu.api.cuGraphUpload.unwrap())(exec, stream));
    for _ in 0..1000 {
        ok!((gpu.api.cuGraphLaunch.unwrap())(exec, stream));
    }
    gpu.sync(stream);
    assert_eq!(gpu.read(at, 1), [15000]);
    ok!((gpu.api.cuGraphExecDestroy.unwrap())(exec));
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.free(at);
    gpu.clean();
}

#[test]
fn independent_branches_run_at_the_same_time() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (wait, iota) = (gpu.function(module, "await"), gpu.function(module, "iota"));
    let (one, two, fork, join, at) = (
        gpu.stream(),
        gpu.stream(),
        gpu.event(),
        gpu.event(),
        gpu.alloc(4),
    );
    let none = CUevent_wait_flags::empty();
    gpu.begin(one);
    ok!((gpu.api.cuMemsetD32Async.unwrap())(at, 0, 1, one));
    ok!((gpu.api.cuEventRecord.unwrap())(fork, one));
    ok!((gpu.api.cuStreamWaitEvent.unwrap())(two, fork, none));
    // The first branch waits for what only the second one, captured later, does.
    assert_eq!(
        gpu.launch(wait, 1, 32, one, &[at.0, 3]),
        CUresult::CUDA_SUCCESS
    );
    assert_eq!(
        gpu.launch(iota, 1, 1, two, &[at.0, 3]),
        CUresult::CUDA_SUCCESS
    );
    ok!((gpu.api.cuEventRecord.unwrap())(join, two));
    ok!((gpu.api.cuStreamWaitEvent.unwrap())(one, join, none));
    let graph = gpu.end(one);
    let exec = gpu.instantiate(graph);
    for _ in 0..10 {
        ok!((gpu.api.cuGraphLaunch.unwrap())(exec, one));
    }
    gpu.sync(one);
    assert_eq!(gpu.read(at, 1), [3]);
    ok!((gpu.api.cuGraphExecDestroy.unwrap())(exec));
    ok!((gpu.api.cuGraphDestroy.unwrap())(graph));
    for stream in [one, two] {
        ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    }
    for event in [fork, join] {
        ok!((gpu.api.cuEventDestroy.unwrap())(event));
    }
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.free(at);
    gpu.clean();
}

#[test]
fn a_launch_of_an_exec_waits_for_its_last_one_even_in_another_stream() {
    let gpu = Gpu::new(1);
    let (one, two, gate, at) = (gpu.stream(), gpu.stream(), Gate::new(), gpu.alloc(4));
    gpu.begin(one);
    ok!((gpu.api.cuMemsetD32Async.unwrap())(at, 1, 1, one));
    gate.close_stream(&gpu, one);
    let graph = gpu.end(one);
    let exec = gpu.instantiate(graph);
    ok!((gpu.api.cuGraphLaunch.unwrap())(exec, one));
    until("the first launch to reach its gate", || {
        gpu.read(at, 1) == [1]
    });
    gpu.write(at, &[0]);
    ok!((gpu.api.cuGraphLaunch.unwrap())(exec, two));
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(gpu.read(at, 1), [0], "the second launch has not begun");
    gate.open();
    gpu.sync(two);
    assert_eq!(gpu.read(at, 1), [1]);
    ok!((gpu.api.cuGraphExecDestroy.unwrap())(exec));
    ok!((gpu.api.cuGraphDestroy.unwrap())(graph));
    ok!((gpu.api.cuStreamDestroy.unwrap())(one));
    ok!((gpu.api.cuStreamDestroy.unwrap())(two));
    gpu.free(at);
    gpu.clean();
}

#[test]
fn a_graph_waits_for_the_streams_earlier_work() {
    let gpu = Gpu::new(1);
    let (stream, gate, at) = (gpu.stream(), Gate::new(), gpu.alloc(4));
    gpu.begin(stream);
    ok!((gpu.api.cuMemsetD32Async.unwrap())(at, 1, 1, stream));
    let graph = gpu.end(stream);
    let exec = gpu.instantiate(graph);
    gpu.write(at, &[0]);
    gate.close_stream(&gpu, stream);
    ok!((gpu.api.cuGraphLaunch.unwrap())(exec, stream));
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(gpu.read(at, 1), [0]);
    gate.open();
    gpu.sync(stream);
    assert_eq!(gpu.read(at, 1), [1]);
    ok!((gpu.api.cuGraphExecDestroy.unwrap())(exec));
    ok!((gpu.api.cuGraphDestroy.unwrap())(graph));
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    gpu.free(at);
    gpu.clean();
}

#[test]
fn captured_nodes_have_their_types_in_order_and_their_edges() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (iota, stream, at) = (gpu.function(module, "iota"), gpu.stream(), gpu.alloc(256));
    let (gate, host) = (Gate::new(), gpu.pinned(1));
    gpu.begin(stream);
    assert_eq!(
        gpu.launch(iota, 2, 32, stream, &[at.0, 1]),
        CUresult::CUDA_SUCCESS
    );
    ok!((gpu.api.cuMemcpyDtoHAsync.unwrap())(
        host.cast(),
        at,
        4,
        stream
    ));
    ok!((gpu.api.cuMemsetD32Async.unwrap())(at, 0, 1, stream));
    gate.close_stream(&gpu, stream);
    let graph = gpu.end(stream);
    let all = nodes(&gpu, graph);
    let kinds: Vec<CUgraphNodeType> = all
        .iter()
        .map(|&node| {
            let mut kind = CUgraphNodeType(99);
            ok!((gpu.api.cuGraphNodeGetType.unwrap())(node, &mut kind));
            kind
        })
        .collect();
    let expected = [
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL,
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY,
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET,
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST,
    ];
    assert_eq!(kinds, expected);
    let (mut from, mut to, mut count) = ([CUgraphNode::null(); 8], [CUgraphNode::null(); 8], 8);
    ok!((gpu.api.cuGraphGetEdges.unwrap())(
        graph,
        from.as_mut_ptr(),
        to.as_mut_ptr(),
        &mut count
    ));
    assert_eq!((&from[..count], &to[..count]), (&all[..3], &all[1..]));
    assert!(from[3].is_null(), "what is left of the array is null");
    ok!((gpu.api.cuGraphDestroy.unwrap())(graph));
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        (gpu.api.cuGraphDestroy.unwrap())(graph)
    );
    ok!((gpu.api.cuMemFreeHost.unwrap())(host.cast()));
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.free(at);
    gpu.clean();
}

#[test]
fn a_kernel_node_holds_its_own_copy_of_the_parameters() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (iota, stream, at) = (gpu.function(module, "iota"), gpu.stream(), gpu.alloc(256));
    gpu.begin(stream);
    assert_eq!(
        gpu.launch(iota, 2, 32, stream, &[at.0, 100]),
        CUresult::CUDA_SUCCESS
    );
    let graph = gpu.end(stream);
    let node = nodes(&gpu, graph)[0];
    let mut params = CUDA_KERNEL_NODE_PARAMS_v2::default();
    ok!((gpu.api.cuGraphKernelNodeGetParams.unwrap())(
        node,
        &mut params
    ));
    assert_eq!(
        (params.func, params.gridDimX, params.blockDimX),
        (iota, 2, 32)
    );
    let seen = [0, 1].map(|index| {
        // SAFETY: the driver's array has a pointer per parameter, valid while the node lives.
        let value = unsafe { params.kernelParams.wrapping_add(index).read() };
        // SAFETY: it points to the node's copy of a 64-bit parameter.
        unsafe { value.cast::<u64>().read() }
    });
    assert_eq!(seen, [at.0, 100]);
    let exec = gpu.instantiate(graph);
    ok!((gpu.api.cuGraphLaunch.unwrap())(exec, stream));
    gpu.sync(stream);
    assert_eq!(gpu.read(at, 64), (100..164).collect::<Vec<u32>>());
    ok!((gpu.api.cuGraphExecDestroy.unwrap())(exec));
    ok!((gpu.api.cuGraphDestroy.unwrap())(graph));
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.free(at);
    gpu.clean();
}

#[test]
fn a_graph_is_also_built_node_by_node() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (iota, add, stream, at) = (
        gpu.function(module, "iota"),
        gpu.function(module, "add"),
        gpu.stream(),
        gpu.alloc(4),
    );
    let mut graph = CUgraph::null();
    ok!((gpu.api.cuGraphCreate.unwrap())(&mut graph, 0));
    let values = [at.0, 40, 2];
    let pointer = |at: usize| std::ptr::from_ref(&values[at]).cast_mut().cast::<c_void>();
    let (mut first, mut second) = ([pointer(0), pointer(1)], [pointer(0), pointer(2)]);
    let mut params = CUDA_KERNEL_NODE_PARAMS_v2 {
        func: iota,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        kernelParams: first.as_mut_ptr(),
        ..CUDA_KERNEL_NODE_PARAMS_v2::default()
    };
    let (mut before, mut after) = (CUgraphNode::null(), CUgraphNode::null());
    ok!((gpu.api.cuGraphAddKernelNode.unwrap())(
        &mut before,
        graph,
        std::ptr::null(),
        0,
        &params
    ));
    params.func = add;
    params.kernelParams = second.as_mut_ptr();
    ok!((gpu.api.cuGraphAddKernelNode.unwrap())(
        &mut after, graph, &before, 1, &params
    ));
    let twice = [before, before];
    let add_node = gpu.api.cuGraphAddKernelNode.unwrap();
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        add_node(&mut after, graph, twice.as_ptr(), 2, &params)
    );
    params.gridDimX = 0;
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        add_node(&mut after, graph, &before, 1, &params)
    );
    assert_eq!(nodes(&gpu, graph).len(), 2);
    let exec = gpu.instantiate(graph);
    ok!((gpu.api.cuGraphLaunch.unwrap())(exec, stream));
    gpu.sync(stream);
    assert_eq!(gpu.read(at, 1), [42]);
    ok!((gpu.api.cuGraphExecDestroy.unwrap())(exec));
    ok!((gpu.api.cuGraphDestroy.unwrap())(graph));
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.free(at);
    gpu.clean();
}

#[test]
fn a_graph_whose_module_was_unloaded_is_not_launched() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (iota, stream, at) = (gpu.function(module, "iota"), gpu.stream(), gpu.alloc(4));
    gpu.begin(stream);
    assert_eq!(
        gpu.launch(iota, 1, 1, stream, &[at.0, 1]),
        CUresult::CUDA_SUCCESS
    );
    let graph = gpu.end(stream);
    let exec = gpu.instantiate(graph);
    ok!((gpu.api.cuModuleUnload)(module));
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        (gpu.api.cuGraphLaunch.unwrap())(exec, stream)
    );
    let words = "launch of a graph whose kernel `iota` is of a module that was unloaded";
    assert_eq!(gpu.machine.faults(), [words]);
}
