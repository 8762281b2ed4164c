//! Reading graphs: nodes, their content, edges.

use std::collections::HashMap;

use slabfence_sys::{
    CUDA_HOST_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUdeviceptr, CUevent, CUgraph,
    CUgraphEdgeData, CUgraphNode, CUgraphNodeType, CUmemorytype, CUresult,
};

use super::device::Device;
use super::kernel_node;
use super::node::{Contents, CopyEnd, CopyNode, Edge, FillNode, Node, Work};
use crate::error::{Error, Result};

/// Graphs inside graphs are read to this depth.
const DEPTH: usize = 16;

/// Reads everything.
///
/// # Safety
///
/// The graph is live, and no other thread uses it during the call.
pub(crate) unsafe fn read(device: &Device, graph: CUgraph) -> Result<Contents> {
    // SAFETY: by this function's contract.
    unsafe { read_to(device, graph, DEPTH) }
}

/// # Safety
///
/// As [`read`].
unsafe fn read_to(device: &Device, graph: CUgraph, depth: usize) -> Result<Contents> {
    // SAFETY: by this function's contract.
    let handles = unsafe { handles(device, graph) }?;
    // SAFETY: by this function's contract.
    let edges = unsafe { edges(device, graph, &handles) }?;
    let mut nodes = Vec::with_capacity(handles.len());
    for handle in handles {
        let mut kind = CUgraphNodeType::default();
        // SAFETY: the node belongs to the live graph; `kind` is a live out-parameter.
        let code = unsafe { (device.api().cuGraphNodeGetType()?)(handle, &mut kind) };
        device.check("cuGraphNodeGetType", code)?;
        // SAFETY: a node of this kind of the live graph.
        let work = unsafe { work(device, handle, kind, depth) };
        // One node that a driver does not explain must not hide the others.
        let work = work.unwrap_or_else(|error| Work::Unread(error.to_string()));
        nodes.push(Node::new(kind, work));
    }
    Ok(Contents { nodes, edges })
}

/// # Safety
///
/// As [`read`].
unsafe fn handles(device: &Device, graph: CUgraph) -> Result<Vec<CUgraphNode>> {
    let get = device.api().cuGraphGetNodes()?;
    let mut count = 0usize;
    // SAFETY: with a null list the call gives only the number of nodes.
    let code = unsafe { get(graph, core::ptr::null_mut(), &mut count) };
    device.check("cuGraphGetNodes", code)?;
    let mut handles = vec![CUgraphNode::null(); count];
    if count > 0 {
        // SAFETY: the list has room for `count` handles, which is what the call is told.
        let code = unsafe { get(graph, handles.as_mut_ptr(), &mut count) };
        device.check("cuGraphGetNodes", code)?;
        handles.truncate(count);
    }
    Ok(handles)
}

/// # Safety
///
/// As [`read`].
unsafe fn edges(device: &Device, graph: CUgraph, nodes: &[CUgraphNode]) -> Result<Vec<Edge>> {
    let api = device.api();
    let none = core::ptr::null_mut();
    let mut count = 0usize;
    // The first version refuses a graph with edges that are not ordinary ones, so it is asked only where there is no other.
    let (call, code) = match api.cuGraphGetEdges_v2 {
        // SAFETY: without lists the call gives only the number of edges.
        Some(get) => ("cuGraphGetEdges_v2", unsafe {
            get(graph, none, none, core::ptr::null_mut(), &mut count)
        }),
        // SAFETY: as above.
        None => ("cuGraphGetEdges", unsafe {
            (api.cuGraphGetEdges()?)(graph, none, none, &mut count)
        }),
    };
    device.check(call, code)?;
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut from = vec![CUgraphNode::null(); count];
    let mut to = from.clone();
    let mut data = vec![CUgraphEdgeData::default(); count];
    let (first, second) = (from.as_mut_ptr(), to.as_mut_ptr());
    let code = match api.cuGraphGetEdges_v2 {
        // SAFETY: all three lists have room for `count` entries, which is what the call is told.
        Some(get) => unsafe { get(graph, first, second, data.as_mut_ptr(), &mut count) },
        // SAFETY: both lists have room for `count` handles.
        None => unsafe { (api.cuGraphGetEdges()?)(graph, first, second, &mut count) },
    };
    device.check(call, code)?;
    let index: HashMap<CUgraphNode, usize> = nodes.iter().copied().zip(0..).collect();
    let find = |node: &CUgraphNode| {
        index.get(node).copied().ok_or_else(|| Error::Refused {
            operation: "reading a graph",
            why: "the driver names an edge of a node that it did not list: another thread changes the graph meanwhile"
                .to_owned(),
        })
    };
    let ends = from.iter().zip(&to).zip(data).take(count);
    ends.map(|((from, to), data)| {
        Ok(Edge {
            from: find(from)?,
            to: find(to)?,
            kind: data.type_,
            from_port: data.from_port,
            to_port: data.to_port,
        })
    })
    .collect()
}

/// # Safety
///
/// A node of this kind, of a live graph that no other thread uses during the call.
unsafe fn work(
    device: &Device,
    node: CUgraphNode,
    kind: CUgraphNodeType,
    depth: usize,
) -> Result<Work> {
    use CUgraphNodeType as T;
    let api = device.api();
    Ok(match kind {
        T::CU_GRAPH_NODE_TYPE_KERNEL => {
            // SAFETY: a kernel node by the contract.
            Work::Kernel(unsafe { kernel_node::read(device, node) }?)
        }
        T::CU_GRAPH_NODE_TYPE_MEMCPY => {
            let mut copy = CUDA_MEMCPY3D::default();
            let get = api.cuGraphMemcpyNodeGetParams()?;
            ask(device, "cuGraphMemcpyNodeGetParams", get, node, &mut copy)?;
            Work::Copy(copy_node(&copy))
        }
        T::CU_GRAPH_NODE_TYPE_MEMSET => {
            let mut fill = CUDA_MEMSET_NODE_PARAMS::default();
            let get = api.cuGraphMemsetNodeGetParams()?;
            ask(device, "cuGraphMemsetNodeGetParams", get, node, &mut fill)?;
            Work::Fill(FillNode {
                to: fill.dst.0,
                value: fill.value,
                element_bytes: fill.elementSize,
                elements: fill.width as u64,
                rows: fill.height as u64,
                pitch: fill.pitch as u64,
            })
        }
        T::CU_GRAPH_NODE_TYPE_HOST => {
            let mut host = CUDA_HOST_NODE_PARAMS::default();
            let get = api.cuGraphHostNodeGetParams()?;
            ask(device, "cuGraphHostNodeGetParams", get, node, &mut host)?;
            Work::Host {
                function: host.fn_.map_or(0, |function| function as usize as u64),
                argument: host.userData.addr() as u64,
            }
        }
        T::CU_GRAPH_NODE_TYPE_GRAPH => {
            let mut child = CUgraph::null();
            let get = api.cuGraphChildGraphNodeGetGraph()?;
            ask(
                device,
                "cuGraphChildGraphNodeGetGraph",
                get,
                node,
                &mut child,
            )?;
            if depth == 0 {
                return Ok(Work::Unread(format!(
                    "graphs are nested more than {DEPTH} deep"
                )));
            }
            // SAFETY: the inner graph is the node's, which lives and is used by this thread alone.
            Work::Child(unsafe { read_to(device, child, depth - 1) }?)
        }
        T::CU_GRAPH_NODE_TYPE_EVENT_RECORD => {
            let mut event = CUevent::null();
            let get = api.cuGraphEventRecordNodeGetEvent()?;
            ask(
                device,
                "cuGraphEventRecordNodeGetEvent",
                get,
                node,
                &mut event,
            )?;
            Work::Event(event.as_ptr().addr() as u64)
        }
        T::CU_GRAPH_NODE_TYPE_WAIT_EVENT => {
            let mut event = CUevent::null();
            let get = api.cuGraphEventWaitNodeGetEvent()?;
            ask(
                device,
                "cuGraphEventWaitNodeGetEvent",
                get,
                node,
                &mut event,
            )?;
            Work::Event(event.as_ptr().addr() as u64)
        }
        T::CU_GRAPH_NODE_TYPE_MEM_FREE => {
            let mut address = CUdeviceptr(0);
            let get = api.cuGraphMemFreeNodeGetParams()?;
            ask(
                device,
                "cuGraphMemFreeNodeGetParams",
                get,
                node,
                &mut address,
            )?;
            Work::Free(address.0)
        }
        _ => Work::Opaque,
    })
}

/// One getter of a node's content.
fn ask<T>(
    device: &Device,
    call: &'static str,
    get: unsafe extern "C" fn(CUgraphNode, *mut T) -> CUresult,
    node: CUgraphNode,
    to: &mut T,
) -> Result<()> {
    // SAFETY: callers have a live node of the getter's kind, and the getter's type says what it stores to.
    let code = unsafe { get(node, to) };
    device.check(call, code)
}

fn copy_node(copy: &CUDA_MEMCPY3D) -> CopyNode {
    let end = |kind, host: u64, device: CUdeviceptr, array: u64, pitch: usize| {
        let (address, array) = match kind {
            CUmemorytype::CU_MEMORYTYPE_HOST => (host, false),
            CUmemorytype::CU_MEMORYTYPE_ARRAY => (array, true),
            _ => (device.0, false),
        };
        CopyEnd {
            address,
            array,
            pitch: pitch as u64,
        }
    };
    let number = |pointer: *const core::ffi::c_void| pointer.addr() as u64;
    let mut from = end(
        copy.srcMemoryType,
        number(copy.srcHost),
        copy.srcDevice,
        number(copy.srcArray.as_ptr()),
        copy.srcPitch,
    );
    let mut to = end(
        copy.dstMemoryType,
        number(copy.dstHost),
        copy.dstDevice,
        number(copy.dstArray.as_ptr()),
        copy.dstPitch,
    );
    let skip = |end: &mut CopyEnd, x: usize, y: usize, z: usize, height: usize| {
        if !end.array {
            let rows = (z as u64)
                .wrapping_mul(height as u64)
                .wrapping_add(y as u64);
            let bytes = rows.wrapping_mul(end.pitch).wrapping_add(x as u64);
            end.address = end.address.wrapping_add(bytes);
        }
    };
    skip(
        &mut from,
        copy.srcXInBytes,
        copy.srcY,
        copy.srcZ,
        copy.srcHeight,
    );
    skip(
        &mut to,
        copy.dstXInBytes,
        copy.dstY,
        copy.dstZ,
        copy.dstHeight,
    );
    CopyNode {
        from,
        to,
        bytes: copy.WidthInBytes as u64,
        rows: copy.Height as u64,
        planes: copy.Depth as u64,
    }
}
