//! Reading the nodes of a graph.

use core::ffi::CStr;

use slabfence_sys::{
    CUDA_KERNEL_NODE_PARAMS_v2, CUfunction, CUgraph, CUgraphNode, CUgraphNodeType, CUresult,
};

use super::device::Device;
use crate::error::Result;

/// Kernels have at most this many parameters (their block is at most 32764 bytes): a driver that tells more is not believed.
const MAX_PARAMS: usize = 32764;

/// One node of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// What the node does.
    pub kind: CUgraphNodeType,
    /// Its launch, where it is a kernel.
    pub kernel: Option<KernelNode>,
}

/// The launch of a kernel node. Everything is copied: the driver's own memory of it may change with the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelNode {
    /// Name of the kernel, where the driver tells (CUDA 12.3).
    pub function: Option<String>,
    /// Grid in CTAs.
    pub grid: [u32; 3],
    /// CTA in threads.
    pub block: [u32; 3],
    /// Dynamic shared memory of a CTA, bytes.
    pub shared_bytes: u32,
    /// Parameters in order, where the driver tells their sizes (CUDA 12.4) and the launch did not pack them itself.
    pub params: Option<Vec<Param>>,
}

/// One parameter of a kernel node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Param {
    /// Bytes from the start of the kernel's parameter block.
    pub offset: usize,
    /// The value.
    pub bytes: Vec<u8>,
}

/// Reads every node.
///
/// # Safety
///
/// The graph is live, and no other thread uses it during the call.
pub(crate) unsafe fn read(device: &Device, graph: CUgraph) -> Result<Vec<Node>> {
    let api = device.api();
    let mut count = 0usize;
    // SAFETY: with a null list the call gives only the number of nodes.
    let code = unsafe { (api.cuGraphGetNodes()?)(graph, core::ptr::null_mut(), &mut count) };
    device.check("cuGraphGetNodes", code)?;
    let mut handles = vec![CUgraphNode::null(); count];
    if count > 0 {
        // SAFETY: the list has room for `count` handles, which is what the call is told.
        let code = unsafe { (api.cuGraphGetNodes()?)(graph, handles.as_mut_ptr(), &mut count) };
        device.check("cuGraphGetNodes", code)?;
        handles.truncate(count);
    }
    let mut nodes = Vec::with_capacity(handles.len());
    for handle in handles {
        let mut kind = CUgraphNodeType::default();
        // SAFETY: the node belongs to the live graph; `kind` is a live out-parameter.
        let code = unsafe { (api.cuGraphNodeGetType()?)(handle, &mut kind) };
        device.check("cuGraphNodeGetType", code)?;
        let kernel = if kind == CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL {
            // SAFETY: a kernel node of the live graph.
            Some(unsafe { read_kernel(device, handle) }?)
        } else {
            None
        };
        nodes.push(Node { kind, kernel });
    }
    Ok(nodes)
}

/// # Safety
///
/// A kernel node of a live graph that no other thread uses during the call.
unsafe fn read_kernel(device: &Device, node: CUgraphNode) -> Result<KernelNode> {
    let mut launch = CUDA_KERNEL_NODE_PARAMS_v2::default();
    // SAFETY: `launch` has the layout of the second version of the call, which is the one in the table.
    let code = unsafe { (device.api().cuGraphKernelNodeGetParams()?)(node, &mut launch) };
    device.check("cuGraphKernelNodeGetParams", code)?;
    // SAFETY: the node's function is loaded, and the pointers are the driver's until the node changes, which nothing does here.
    let params = unsafe { read_params(device, &launch) }?;
    Ok(KernelNode {
        function: name(device, launch.func),
        grid: [launch.gridDimX, launch.gridDimY, launch.gridDimZ],
        block: [launch.blockDimX, launch.blockDimY, launch.blockDimZ],
        shared_bytes: launch.sharedMemBytes,
        params,
    })
}

fn name(device: &Device, function: CUfunction) -> Option<String> {
    let get_name = device.api().cuFuncGetName?;
    if function.is_null() {
        return None;
    }
    let mut name = core::ptr::null();
    // SAFETY: the function is that of a live node; `name` is a live out-parameter.
    let code = unsafe { get_name(&mut name, function) };
    if !code.is_success() || name.is_null() {
        return None;
    }
    // SAFETY: on success a terminated string of the driver's that lives as long as the function's module.
    Some(
        unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned(),
    )
}

/// Sizes and offsets of a function's parameters; `None` where the driver does not tell.
pub(crate) fn param_layout(
    device: &Device,
    function: CUfunction,
) -> Result<Option<Vec<(usize, usize)>>> {
    let Some(get_info) = device.api().cuFuncGetParamInfo else {
        return Ok(None);
    };
    let mut layout = Vec::new();
    while layout.len() < MAX_PARAMS {
        let (mut offset, mut bytes) = (0usize, 0usize);
        // SAFETY: the function is loaded; both out-parameters are live; an index past the last is refused.
        let code = unsafe { get_info(function, layout.len(), &mut offset, &mut bytes) };
        if code == CUresult::CUDA_ERROR_INVALID_VALUE {
            break;
        }
        device.check("cuFuncGetParamInfo", code)?;
        layout.push((offset, bytes));
    }
    Ok(Some(layout))
}

/// # Safety
///
/// `launch` was just read from a live node, so its function is loaded and its parameter pointers are valid.
unsafe fn read_params(
    device: &Device,
    launch: &CUDA_KERNEL_NODE_PARAMS_v2,
) -> Result<Option<Vec<Param>>> {
    if launch.func.is_null() || launch.kernelParams.is_null() {
        return Ok(None);
    }
    let Some(layout) = param_layout(device, launch.func)? else {
        return Ok(None);
    };
    let mut params = Vec::with_capacity(layout.len());
    for (index, (offset, size)) in layout.into_iter().enumerate() {
        let at = launch.kernelParams.wrapping_add(index);
        // SAFETY: the driver's array has one pointer per parameter of the function, and `index` is below their number.
        let value = unsafe { at.read() };
        let mut bytes = vec![0u8; size];
        // SAFETY: each pointer leads to the whole value of its parameter, `size` bytes by the driver's own word.
        unsafe { core::ptr::copy_nonoverlapping(value.cast::<u8>(), bytes.as_mut_ptr(), size) };
        params.push(Param { offset, bytes });
    }
    Ok(Some(params))
}
