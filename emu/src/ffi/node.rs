//! What nodes of a graph say of themselves.

use slabfence_sys::{
    CUDA_HOST_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUdeviceptr, CUevent, CUgraph,
    CUgraphNode, CUlaunchAttributeID, CUlaunchAttributeValue, CUmemorytype,
};

use super::pointer::{handle, put, raw};
use crate::code::{Code, Status};
use crate::graph::Task;
use crate::operations::Source;
use crate::slots::Call;

fn task(call: &mut Call<'_>, node: CUgraphNode) -> Status<Task> {
    let (state, _) = call.split();
    Ok(state.graphs.nodes.get(handle(node.as_ptr()))?.task.clone())
}

/// Whether an address counts as device memory in a copy, and the address in that and in the host form.
fn end(at: u64, known: bool) -> (CUmemorytype, CUdeviceptr, *mut std::ffi::c_void) {
    match known {
        true => (
            CUmemorytype::CU_MEMORYTYPE_DEVICE,
            CUdeviceptr(at),
            std::ptr::null_mut(),
        ),
        false => (CUmemorytype::CU_MEMORYTYPE_HOST, CUdeviceptr(0), raw(at)),
    }
}

entries! {
    fn cuGraphKernelNodeGetAttribute(call, of: CUgraphNode, asked: CUlaunchAttributeID,
        to: *mut CUlaunchAttributeValue)
    {
        use CUlaunchAttributeID as A;
        let Task::Kernel(kernel) = task(call, of)? else { return Err(Code::INVALID_VALUE) };
        let mut value = CUlaunchAttributeValue::default();
        match asked {
            A::CU_LAUNCH_ATTRIBUTE_COOPERATIVE => value.cooperative = kernel.cooperative.into(),
            // Launches of this machine have neither clusters nor priorities: all zeros.
            A::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION | A::CU_LAUNCH_ATTRIBUTE_PRIORITY => {}
            _ => return Err(Code::NOT_SUPPORTED),
        }
        put(to, value)
    }

    fn cuGraphMemcpyNodeGetParams(call, of: CUgraphNode, params: *mut CUDA_MEMCPY3D) {
        let Task::Copy { to, from: Source::Address(from), len, checked } = task(call, of)? else {
            return Err(Code::INVALID_VALUE);
        };
        let (len, (to_type, to_device, to_host)) = (len as usize, end(to, checked.0));
        let (from_type, from_device, from_host) = end(from, checked.1);
        // Pitches stay zero: a real driver (580) tells a captured copy of one row so.
        put(params, CUDA_MEMCPY3D {
            srcMemoryType: from_type,
            srcHost: from_host,
            srcDevice: from_device,
            dstMemoryType: to_type,
            dstHost: to_host,
            dstDevice: to_device,
            WidthInBytes: len,
            Height: 1,
            Depth: 1,
            ..CUDA_MEMCPY3D::default()
        })
    }

    fn cuGraphMemsetNodeGetParams(call, of: CUgraphNode, params: *mut CUDA_MEMSET_NODE_PARAMS) {
        let Task::Fill { to, element, width, count } = task(call, of)? else { return Err(Code::INVALID_VALUE) };
        put(params, CUDA_MEMSET_NODE_PARAMS {
            dst: CUdeviceptr(to),
            pitch: 0,
            value: u32::from_le_bytes(element),
            elementSize: width as u32,
            width: count as usize,
            height: 1,
        })
    }

    fn cuGraphHostNodeGetParams(call, of: CUgraphNode, params: *mut CUDA_HOST_NODE_PARAMS) {
        let Task::Host(callback) = task(call, of)? else { return Err(Code::INVALID_VALUE) };
        let (function, argument) = callback.parts();
        put(params, CUDA_HOST_NODE_PARAMS { fn_: Some(function), userData: argument })
    }

    fn cuGraphEventWaitNodeGetEvent(call, of: CUgraphNode, event: *mut CUevent) {
        let Task::Wait(found) = task(call, of)? else { return Err(Code::INVALID_VALUE) };
        put(event, CUevent::from_ptr(raw(found)))
    }

    fn cuGraphEventRecordNodeGetEvent(call, of: CUgraphNode, _event: *mut CUevent) {
        // No node of this machine records an event, has a graph inside, or frees memory.
        task(call, of).and(Err(Code::INVALID_VALUE))
    }

    fn cuGraphChildGraphNodeGetGraph(call, of: CUgraphNode, _graph: *mut CUgraph) {
        task(call, of).and(Err(Code::INVALID_VALUE))
    }

    fn cuGraphMemFreeNodeGetParams(call, of: CUgraphNode, _address: *mut CUdeviceptr) {
        task(call, of).and(Err(Code::INVALID_VALUE))
    }
}
