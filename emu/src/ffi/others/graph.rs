//! More of graphs: roots, neighbours, copies, instantiation with a report.

use std::ffi::c_uint;

use slabfence_sys::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUgraph, CUgraphEdgeData, CUgraphExec, CUgraphInstantiate_flags,
    CUgraphInstantiateResult, CUgraphNode, CUuserObject,
};

use crate::code::{Code, Status};
use crate::ffi::graph::{due, enumerate, node};
use crate::ffi::pointer::{get, handle, put, put_list, raw};
use crate::slots::Call;

#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

/// The nodes that one depends on, or those that depend on it.
fn neighbours(call: &mut Call<'_>, of: CUgraphNode, side: Side) -> Status<Vec<[CUgraphNode; 1]>> {
    let (state, _) = call.split();
    let of = handle(of.as_ptr());
    let graph = state.graphs.nodes.get(of)?.graph;
    let edges = state.graphs.graphs.get(graph)?.edges.iter();
    let of_side = edges.filter_map(|&(from, to)| match side {
        Side::Before if to == of => Some([node(from)]),
        Side::After if from == of => Some([node(to)]),
        _ => None,
    });
    Ok(of_side.collect())
}

fn tell(
    nodes: *mut CUgraphNode,
    data: *mut CUgraphEdgeData,
    count: *mut usize,
    rows: Vec<[CUgraphNode; 1]>,
) -> Status {
    if !data.is_null() {
        // Every edge here is an ordinary one.
        put_list(
            data,
            get(count)?,
            std::iter::repeat(CUgraphEdgeData::default()),
        )?;
    }
    enumerate([nodes], count, rows, CUgraphNode::null())
}

functions! {
    fn cuGraphGetRootNodes(call, graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) {
        let (state, _) = call.split();
        let found = state.graphs.graphs.get(handle(graph.as_ptr()))?;
        let root = |value: &&u64| found.edges.iter().all(|(_, to)| to != *value);
        let rows = found.nodes.iter().filter(root).map(|&value| [node(value)]).collect();
        enumerate([nodes], count, rows, CUgraphNode::null())
    }

    fn cuGraphNodeGetDependencies(call, of: CUgraphNode, nodes: *mut CUgraphNode, count: *mut usize) {
        tell(nodes, std::ptr::null_mut(), count, neighbours(call, of, Side::Before)?)
    }

    fn cuGraphNodeGetDependencies_v2(call, of: CUgraphNode, nodes: *mut CUgraphNode, data: *mut CUgraphEdgeData,
        count: *mut usize)
    {
        tell(nodes, data, count, neighbours(call, of, Side::Before)?)
    }

    fn cuGraphNodeGetDependentNodes(call, of: CUgraphNode, nodes: *mut CUgraphNode, count: *mut usize) {
        tell(nodes, std::ptr::null_mut(), count, neighbours(call, of, Side::After)?)
    }

    fn cuGraphNodeGetDependentNodes_v2(call, of: CUgraphNode, nodes: *mut CUgraphNode, data: *mut CUgraphEdgeData,
        count: *mut usize)
    {
        tell(nodes, data, count, neighbours(call, of, Side::After)?)
    }

    fn cuGraphClone(call, to: *mut CUgraph, from: CUgraph) {
        if to.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let copy = call.split().0.graphs.duplicate(handle(from.as_ptr()))?;
        put(to, CUgraph::from_ptr(raw(copy)))
    }

    fn cuGraphReleaseUserObject(call, graph: CUgraph, object: CUuserObject, count: c_uint) {
        let (state, _) = call.split();
        let (graph, object) = (handle(graph.as_ptr()), handle(object.as_ptr()));
        let held = state.graphs.graphs.get_mut(graph)?.objects.get_mut(&object).ok_or(Code::INVALID_VALUE)?;
        *held = held.checked_sub(count).ok_or(Code::INVALID_VALUE)?;
        if *held == 0 {
            state.graphs.graphs.get_mut(graph)?.objects.remove(&object);
        }
        let last = state.graphs.objects.release(object, count)?;
        due(call, last);
        Ok(())
    }

    fn cuGraphInstantiateWithParams(call, exec: *mut CUgraphExec, graph: CUgraph, params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS) {
        let (state, _) = call.split();
        state.ready()?;
        let asked = get(params.cast_const())?;
        let device_launch = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
        let made = match exec.is_null() || asked.flags & device_launch.bits() != 0 {
            true => Err(Code::INVALID_VALUE),
            false => state.graphs.instantiate(handle(graph.as_ptr())),
        };
        // What is wrong, the value that is returned says.
        let result_out = match made {
            Ok(_) => CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_SUCCESS,
            Err(_) => CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_ERROR,
        };
        put(params, CUDA_GRAPH_INSTANTIATE_PARAMS { hErrNode_out: CUgraphNode::null(), result_out, ..asked })?;
        put(exec, CUgraphExec::from_ptr(raw(made?)))
    }
}
