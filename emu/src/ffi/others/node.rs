//! Nodes that are added by hand: copies, fills, host functions, waits, and such that do nothing.

use slabfence_sys::{
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
    CUcontext, CUevent, CUgraph, CUgraphExec, CUgraphNode,
};

use crate::callback::Callback;
use crate::code::{Code, Status};
use crate::ffi::graph::{kernel_task, node};
use crate::ffi::others::pitched::one_copy;
use crate::ffi::pointer::{get, handle, list, put};
use crate::graph::Task;
use crate::slots::Call;

/// Where a new node goes: its graph, what it depends on, and where its handle is stored.
#[derive(Clone, Copy)]
struct Place {
    to: *mut CUgraphNode,
    graph: CUgraph,
    dependencies: *const CUgraphNode,
    count: usize,
}

impl Place {
    fn add(self, call: &mut Call<'_>, task: Task) -> Status {
        if self.to.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let after = list(self.dependencies, self.count)?;
        let after: Vec<u64> = after.iter().map(|node| handle(node.as_ptr())).collect();
        let added = call
            .split()
            .0
            .graphs
            .add(handle(self.graph.as_ptr()), task, &after)?;
        put(self.to, node(added))
    }
}

/// The device of a context that a node is given.
fn device(call: &mut Call<'_>, context: CUcontext) -> Status<u32> {
    let (state, thread) = call.split();
    match context.is_null() {
        true => state.working(thread),
        false => state.context_device(handle(context.as_ptr())),
    }
}

functions! {
    fn cuGraphAddEmptyNode(call, to: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, count: usize) {
        Place { to, graph, dependencies, count }.add(call, Task::Empty)
    }

    fn cuGraphAddMemcpyNode(call, to: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, count: usize,
        params: *const CUDA_MEMCPY3D, context: CUcontext)
    {
        let device = device(call, context)?;
        let task = one_copy(get(params)?)?.check(call.split().0, device)?;
        Place { to, graph, dependencies, count }.add(call, task)
    }

    fn cuGraphAddMemsetNode(call, to: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, count: usize,
        params: *const CUDA_MEMSET_NODE_PARAMS, context: CUcontext)
    {
        let device = device(call, context)?;
        let params = get(params)?;
        if params.height > 1 {
            return Err(Code::NOT_SUPPORTED);
        }
        let width = params.elementSize as usize;
        let len = params.width.checked_mul(width).ok_or(Code::INVALID_VALUE)?;
        let (state, _) = call.split();
        let fits = matches!(width, 1 | 2 | 4)
            && params.height == 1
            && len > 0
            && params.dst.0.is_multiple_of(width as u64)
            && state.memory.copyable(device, params.dst.0, len as u64, true);
        if !fits {
            return Err(Code::INVALID_VALUE);
        }
        let element = params.value.to_ne_bytes();
        let task = Task::Fill { to: params.dst.0, element, width, count: params.width as u64 };
        Place { to, graph, dependencies, count }.add(call, task)
    }

    fn cuGraphAddHostNode(call, to: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, count: usize,
        params: *const CUDA_HOST_NODE_PARAMS)
    {
        let params = get(params)?;
        let function = params.fn_.ok_or(Code::INVALID_VALUE)?;
        // SAFETY: the caller gives the function to be called with this argument, once per launch of the graph, on a
        // thread of the driver.
        let callback = unsafe { Callback::new(function, params.userData) };
        Place { to, graph, dependencies, count }.add(call, Task::Host(callback))
    }

    fn cuGraphAddEventWaitNode(call, to: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        count: usize, event: CUevent)
    {
        let event = handle(event.as_ptr());
        call.split().0.events.0.get(event)?;
        Place { to, graph, dependencies, count }.add(call, Task::Wait(event))
    }

    fn cuGraphKernelNodeSetParams_v2(call, of: CUgraphNode, params: *const CUDA_KERNEL_NODE_PARAMS_v2) {
        let task = kernel_task(call, get(params)?)?;
        let found = call.split().0.graphs.nodes.get_mut(handle(of.as_ptr()))?;
        let Task::Kernel(kernel) = &mut found.task else { return Err(Code::INVALID_VALUE) };
        *kernel = task;
        // Addresses that were given out are of the old parameters.
        found.pointers = None;
        Ok(())
    }

    fn cuGraphExecKernelNodeSetParams_v2(call, exec: CUgraphExec, of: CUgraphNode,
        params: *const CUDA_KERNEL_NODE_PARAMS_v2)
    {
        let task = kernel_task(call, get(params)?)?;
        call.split().0.graphs.set_kernel(handle(exec.as_ptr()), handle(of.as_ptr()), task)
    }
}
