//! Graphs, execs and user objects.

use std::ffi::{c_uint, c_void};

use slabfence_sys::{
    CUDA_KERNEL_NODE_PARAMS_v2, CUcontext, CUfunction, CUgraph, CUgraphEdgeData, CUgraphExec,
    CUgraphInstantiate_flags, CUgraphNode, CUgraphNodeType, CUhostFn, CUkernel, CUstream,
    CUuserObject, CUuserObject_flags, CUuserObjectRetain_flags,
};

use super::launch::parameters;
use super::pointer::{get, handle, list, put, put_list, raw};
use crate::callback::Callback;
use crate::code::{Code, Status};
use crate::graph::{Graph, KernelTask, Task};
use crate::launch::Geometry;
use crate::slots::Call;

/// Gives a list in the two-call way: its length when there is no array, else what fits, and how much that was.
pub(super) fn enumerate<T, const N: usize>(
    arrays: [*mut T; N],
    count: *mut usize,
    rows: Vec<[T; N]>,
    empty: T,
) -> Status
where
    T: Copy,
{
    if arrays.iter().all(|array| array.is_null()) {
        return put(count, rows.len());
    }
    let room = get(count)?;
    for (column, array) in arrays.into_iter().enumerate() {
        if !array.is_null() {
            let padded = rows
                .iter()
                .map(|row| row[column])
                .chain(std::iter::repeat(empty));
            put_list(array, room, padded.take(room))?;
        }
    }
    put(count, room.min(rows.len()))
}

pub(super) fn due(call: &mut Call<'_>, callbacks: impl IntoIterator<Item = Callback>) {
    call.split()
        .0
        .engine
        .calls
        .extend(callbacks.into_iter().map(|callback| (callback, None)));
}

pub(super) fn node(value: u64) -> CUgraphNode {
    CUgraphNode::from_ptr(raw(value))
}

/// The edges of a graph, from and to.
fn edges(call: &mut Call<'_>, graph: CUgraph) -> Status<Vec<[CUgraphNode; 2]>> {
    let (state, _) = call.split();
    let found = state.graphs.graphs.get(handle(graph.as_ptr()))?;
    let ends = found.edges.iter();
    Ok(ends.map(|&(from, to)| [node(from), node(to)]).collect())
}

/// The launch that a kernel node's parameters describe.
pub(super) fn kernel_task(
    call: &mut Call<'_>,
    params: CUDA_KERNEL_NODE_PARAMS_v2,
) -> Status<KernelTask> {
    let (state, thread) = call.split();
    let current = state.working(thread)?;
    let device = match params.ctx.is_null() {
        true => current,
        false => state.context_device(handle(params.ctx.as_ptr()))?,
    };
    let function = match params.func.is_null() {
        true => handle(params.kern.as_ptr()),
        false => handle(params.func.as_ptr()),
    };
    let block = parameters(state, function, params.kernelParams, params.extra)?;
    let geometry = Geometry {
        grid: [params.gridDimX, params.gridDimY, params.gridDimZ],
        block: [params.blockDimX, params.blockDimY, params.blockDimZ],
        shared: params.sharedMemBytes,
        cooperative: false,
    };
    state.kernel_task(function, device, geometry, block)
}

entries! {
    fn cuGraphCreate(call, graph: *mut CUgraph, flags: c_uint) {
        let (state, _) = call.split();
        state.ready()?;
        if graph.is_null() || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        put(graph, CUgraph::from_ptr(raw(state.graphs.graphs.insert(Graph::default()))))
    }

    fn cuGraphDestroy(call, graph: CUgraph) {
        let callbacks = call.split().0.graphs.destroy(handle(graph.as_ptr()))?;
        due(call, callbacks);
        Ok(())
    }

    fn cuGraphGetNodes(call, graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) {
        let (state, _) = call.split();
        let found = state.graphs.graphs.get(handle(graph.as_ptr()))?;
        let rows = found.nodes.iter().map(|&value| [node(value)]).collect();
        enumerate([nodes], count, rows, CUgraphNode::null())
    }

    fn cuGraphGetEdges(call, graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, count: *mut usize) {
        enumerate([from, to], count, edges(call, graph)?, CUgraphNode::null())
    }

    fn cuGraphGetEdges_v2(call, graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, data: *mut CUgraphEdgeData,
        count: *mut usize)
    {
        let rows = edges(call, graph)?;
        if !data.is_null() {
            // Every edge here is an ordinary one.
            put_list(data, get(count)?, std::iter::repeat(CUgraphEdgeData::default()))?;
        }
        enumerate([from, to], count, rows, CUgraphNode::null())
    }

    fn cuGraphNodeGetType(call, of: CUgraphNode, kind: *mut CUgraphNodeType) {
        let (state, _) = call.split();
        put(kind, match state.graphs.nodes.get(handle(of.as_ptr()))?.task {
            Task::Kernel(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL,
            Task::Copy { .. } => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY,
            Task::Fill { .. } => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET,
            Task::Host(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST,
            Task::Empty => CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY,
            Task::Wait(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT,
        })
    }

    fn cuGraphAddKernelNode(call, to: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, count: usize,
        params: *const CUDA_KERNEL_NODE_PARAMS_v2)
    {
        let params = get(params)?;
        if to.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let task = kernel_task(call, params)?;
        let (state, _) = call.split();
        let after: Vec<u64> = list(dependencies, count)?.iter().map(|node| handle(node.as_ptr())).collect();
        let added = state.graphs.add(handle(graph.as_ptr()), Task::Kernel(task), &after)?;
        put(to, node(added))
    }

    fn cuGraphKernelNodeGetParams(call, of: CUgraphNode, params: *mut CUDA_KERNEL_NODE_PARAMS_v2) {
        let (state, _) = call.split();
        let node = state.graphs.nodes.get_mut(handle(of.as_ptr()))?;
        let Task::Kernel(KernelTask { function, device, launch, .. }) = &node.task else { return Err(Code::INVALID_VALUE) };
        let base = launch.params.as_ptr().expose_provenance();
        let addresses = launch.kernel.params().iter().map(|param| base + param.offset as usize);
        let pointers = node.pointers.get_or_insert_with(|| addresses.collect());
        let (function, device) = (*function, *device);
        let [x, y, z] = launch.grid;
        let [block_x, block_y, block_z] = launch.block;
        let (shared, pointers) = (launch.dynamic_shared, pointers.as_ptr().cast_mut().cast::<*mut c_void>());
        put(params, CUDA_KERNEL_NODE_PARAMS_v2 {
            func: CUfunction::from_ptr(raw(function)),
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: block_x,
            blockDimY: block_y,
            blockDimZ: block_z,
            sharedMemBytes: shared,
            kernelParams: pointers,
            extra: std::ptr::null_mut(),
            kern: CUkernel::null(),
            ctx: CUcontext::from_ptr(raw(state.context_handle(device))),
        })
    }

    fn cuGraphInstantiateWithFlags(call, exec: *mut CUgraphExec, graph: CUgraph, flags: CUgraphInstantiate_flags) {
        let (state, _) = call.split();
        state.ready()?;
        if exec.is_null() || flags.contains(CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) {
            return Err(Code::INVALID_VALUE);
        }
        put(exec, CUgraphExec::from_ptr(raw(state.graphs.instantiate(handle(graph.as_ptr()))?)))
    }

    fn cuGraphExecDestroy(call, exec: CUgraphExec) {
        call.split().0.destroy_exec(handle(exec.as_ptr()))
    }

    fn cuGraphLaunch(call, exec: CUgraphExec, stream: CUstream) {
        let (state, thread) = call.split();
        let index = state.stream(thread, handle(stream.as_ptr()))?;
        state.launch_graph(handle(exec.as_ptr()), index)
    }

    fn cuGraphUpload(call, exec: CUgraphExec, stream: CUstream) {
        // Nothing is moved to a device before a launch: the exec and the stream only have to exist.
        let (state, thread) = call.split();
        state.stream(thread, handle(stream.as_ptr()))?;
        state.graphs.exec(handle(exec.as_ptr())).map(drop)
    }

    fn cuUserObjectCreate(call, object: *mut CUuserObject, pointer: *mut c_void, destroy: CUhostFn, references: c_uint,
        flags: CUuserObject_flags)
    {
        let (state, _) = call.split();
        let destroy = destroy.ok_or(Code::INVALID_VALUE)?;
        if object.is_null() || flags != CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller gives the destructor to be called with this argument once, on any thread, when the last
        // reference goes.
        let destroy = unsafe { Callback::new(destroy, pointer) };
        put(object, CUuserObject::from_ptr(raw(state.graphs.objects.create(destroy, references)?)))
    }

    fn cuUserObjectRetain(call, object: CUuserObject, count: c_uint) {
        call.split().0.graphs.objects.retain(handle(object.as_ptr()), count)
    }

    fn cuUserObjectRelease(call, object: CUuserObject, count: c_uint) {
        let last = call.split().0.graphs.objects.release(handle(object.as_ptr()), count)?;
        due(call, last);
        Ok(())
    }

    fn cuGraphRetainUserObject(call, graph: CUgraph, object: CUuserObject, count: c_uint,
        flags: CUuserObjectRetain_flags)
    {
        let (state, _) = call.split();
        let object = handle(object.as_ptr());
        let graph = state.graphs.graphs.get_mut(handle(graph.as_ptr()))?;
        if flags.contains(CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE) {
            state.graphs.objects.owned(object, count)?;
        } else {
            state.graphs.objects.retain(object, count)?;
        }
        *graph.objects.entry(object).or_insert(0) += count;
        Ok(())
    }
}
