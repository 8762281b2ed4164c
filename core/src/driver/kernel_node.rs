//! Reading kernel nodes: name, geometry, attributes, parameters.

use core::ffi::{CStr, c_int, c_void};
use std::collections::BTreeMap;

use slabfence_sys::{
    CUDA_KERNEL_NODE_PARAMS_v2, CUfunction, CUfunction_attribute, CUgraphNode, CUlaunchAttributeID,
    CUlaunchAttributeValue, CUresult,
};

use super::device::Device;
use super::node::{KernelNode, Param};
use crate::error::Result;

/// Kernels have at most this many parameters (their block is at most 32764 bytes): a driver that tells more is not believed.
const MAX_PARAMS: usize = 32764;

/// Markers in the packed form of parameters: its end, the block's address, the address of its size.
const PACKED_END: usize = 0;
const PACKED_BLOCK: usize = 1;
const PACKED_BYTES: usize = 2;

/// Attributes of a launch: name, id, which 32-bit word of the value.
const LAUNCH: [(&str, CUlaunchAttributeID, usize); 7] = {
    use CUlaunchAttributeID as A;
    [
        ("cooperative", A::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 0),
        ("cluster.x", A::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 0),
        ("cluster.y", A::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 1),
        ("cluster.z", A::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 2),
        ("priority", A::CU_LAUNCH_ATTRIBUTE_PRIORITY, 0),
        ("mem_sync_domain", A::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 0),
        (
            "shared_carveout",
            A::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
            0,
        ),
    ]
};

/// Attributes of a kernel.
const FUNCTION: [(&str, CUfunction_attribute); 4] = {
    use CUfunction_attribute as F;
    [
        ("registers", F::CU_FUNC_ATTRIBUTE_NUM_REGS),
        (
            "static_shared_bytes",
            F::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
        ),
        ("local_bytes", F::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
        ("max_threads", F::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
    ]
};

/// Reads one.
///
/// # Safety
///
/// A kernel node of a live graph that no other thread uses during the call.
pub(super) unsafe fn read(device: &Device, node: CUgraphNode) -> Result<KernelNode> {
    let mut launch = CUDA_KERNEL_NODE_PARAMS_v2::default();
    // SAFETY: `launch` has the layout of the second version of the call, which is the one in the table.
    let code = unsafe { (device.api().cuGraphKernelNodeGetParams()?)(node, &mut launch) };
    device.check("cuGraphKernelNodeGetParams", code)?;
    let function = function(device, &launch);
    let mut kernel = KernelNode::new(
        [launch.gridDimX, launch.gridDimY, launch.gridDimZ],
        [launch.blockDimX, launch.blockDimY, launch.blockDimZ],
        launch.sharedMemBytes,
    );
    kernel.attributes = launch_attributes(device, node);
    if let Some(function) = function {
        kernel.function = name(device, function);
        kernel
            .attributes
            .extend(function_attributes(device, function));
        // SAFETY: just read from a live node, whose function this is.
        kernel.params = unsafe { params(device, function, &launch) }?;
    }
    Ok(kernel)
}

/// The function of a launch; that of a context-independent kernel is asked for.
fn function(device: &Device, launch: &CUDA_KERNEL_NODE_PARAMS_v2) -> Option<CUfunction> {
    if !launch.func.is_null() {
        return Some(launch.func);
    }
    if launch.kern.is_null() {
        return None;
    }
    let get = device.api().cuKernelGetFunction?;
    let mut function = CUfunction::null();
    // SAFETY: the kernel is that of a live node; `function` is a live out-parameter.
    let code = unsafe { get(&mut function, launch.kern) };
    (code.is_success() && !function.is_null()).then_some(function)
}

fn name(device: &Device, function: CUfunction) -> Option<String> {
    let get_name = device.api().cuFuncGetName?;
    let mut name = core::ptr::null();
    // SAFETY: the function is that of a live node; `name` is a live out-parameter.
    let code = unsafe { get_name(&mut name, function) };
    if !code.is_success() || name.is_null() {
        return None;
    }
    // SAFETY: on success a terminated string of the driver's that lives as long as the function's module.
    let name = unsafe { CStr::from_ptr(name) };
    Some(name.to_string_lossy().into_owned())
}

fn launch_attributes(device: &Device, node: CUgraphNode) -> BTreeMap<String, i64> {
    let Some(get) = device.api().cuGraphKernelNodeGetAttribute else {
        return BTreeMap::new();
    };
    let read = |&(name, id, word): &(&str, CUlaunchAttributeID, usize)| {
        let mut value = CUlaunchAttributeValue::default();
        // SAFETY: a kernel node by the caller's contract; `value` is a live out-parameter of the driver's layout.
        let code = unsafe { get(node, id, &mut value) };
        // SAFETY: the value began as zeros, so all of its bytes are initialised whatever was stored.
        let bytes = unsafe { value.pad };
        let word = bytes.chunks_exact(4).nth(word)?.try_into().ok()?;
        code.is_success()
            .then(|| (name.to_owned(), i32::from_le_bytes(word).into()))
    };
    LAUNCH.iter().filter_map(read).collect()
}

fn function_attributes(device: &Device, function: CUfunction) -> BTreeMap<String, i64> {
    let Some(get) = device.api().cuFuncGetAttribute else {
        return BTreeMap::new();
    };
    let read = |&(name, id): &(&str, CUfunction_attribute)| {
        let mut value: c_int = 0;
        // SAFETY: the function is that of a live node; `value` is a live out-parameter.
        let code = unsafe { get(&mut value, id, function) };
        code.is_success().then(|| (name.to_owned(), value.into()))
    };
    FUNCTION.iter().filter_map(read).collect()
}

/// Offsets and sizes of a function's parameters; `None` where the driver does not tell.
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
/// `launch` was just read from a live node of `function`, so its parameter pointers are valid until the node changes.
unsafe fn params(
    device: &Device,
    function: CUfunction,
    launch: &CUDA_KERNEL_NODE_PARAMS_v2,
) -> Result<Option<Vec<Param>>> {
    let Some(layout) = param_layout(device, function)? else {
        return Ok(None);
    };
    if launch.kernelParams.is_null() {
        // SAFETY: the packed form of a live node.
        let block = unsafe { packed(launch.extra) };
        return Ok(cut(&layout, block.as_deref()));
    }
    let mut params = Vec::with_capacity(layout.len());
    for (index, (offset, size)) in layout.into_iter().enumerate() {
        let at = launch.kernelParams.wrapping_add(index);
        // SAFETY: the driver's array has one pointer per parameter of the function, and `index` is below their number.
        let value = unsafe { at.read() };
        let mut bytes = vec![0u8; size];
        // SAFETY: each pointer leads to the whole value of its parameter, `size` bytes by the driver's own word.
        unsafe { core::ptr::copy_nonoverlapping(value.cast::<u8>(), bytes.as_mut_ptr(), size) };
        params.push(Param::new(offset, bytes));
    }
    Ok(Some(params))
}

/// Cuts a packed block into parameters; `None` where they do not lie inside.
fn cut(layout: &[(usize, usize)], block: Option<&[u8]>) -> Option<Vec<Param>> {
    let block = match (block, layout.is_empty()) {
        (_, true) => &[],
        (block, false) => block?,
    };
    let param = |&(offset, size): &(usize, usize)| {
        let bytes = block.get(offset..offset.checked_add(size)?)?;
        Some(Param::new(offset, bytes.to_vec()))
    };
    layout.iter().map(param).collect()
}

/// The block of the packed form of parameters, if there is one of a size that kernels can have.
///
/// # Safety
///
/// Null, or the driver's own list of markers and values, ended by its end marker.
unsafe fn packed(extra: *mut *mut c_void) -> Option<Vec<u8>> {
    if extra.is_null() {
        return None;
    }
    let (mut block, mut bytes) = (None, None);
    for pair in 0..2 {
        // SAFETY: the list goes on at least to its end marker, which was not met before.
        let marker = unsafe { extra.wrapping_add(2 * pair).read() }.addr();
        if marker == PACKED_END {
            break;
        }
        // SAFETY: every marker but the last is followed by its value.
        let value = unsafe { extra.wrapping_add(2 * pair + 1).read() };
        match marker {
            PACKED_BLOCK => block = Some(value.cast::<u8>()),
            PACKED_BYTES => bytes = Some(value.cast::<usize>()),
            _ => return None,
        }
    }
    let (block, bytes) = (block?, bytes?);
    if block.is_null() || bytes.is_null() {
        return None;
    }
    // SAFETY: the marker says that the value is the address of the block's size.
    let bytes = unsafe { bytes.read() };
    let mut copy = vec![0u8; Some(bytes).filter(|&bytes| bytes <= MAX_PARAMS)?];
    // SAFETY: the markers say that the block is at this address and has this size.
    unsafe { core::ptr::copy_nonoverlapping(block, copy.as_mut_ptr(), bytes) };
    Some(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(extra: &mut [*mut c_void]) -> Option<Vec<u8>> {
        // SAFETY: every test's list is well formed and its values live.
        unsafe { packed(extra.as_mut_ptr()) }
    }

    fn marker(value: usize) -> *mut c_void {
        core::ptr::without_provenance_mut(value)
    }

    #[test]
    fn packed_parameters_are_cut_by_the_functions_layout() {
        let (mut block, mut bytes) = ([1u8, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], 12usize);
        let at = (&raw mut block).cast();
        let size = (&raw mut bytes).cast();
        let expected = Some(block.to_vec());
        let (first, second) = (marker(PACKED_BLOCK), marker(PACKED_BYTES));
        assert_eq!(read(&mut [first, at, second, size, marker(0)]), expected);
        let found = read(&mut [second, size, first, at, marker(0)]);
        assert_eq!(found, expected, "in either order");
        let params = cut(&[(0, 8), (8, 4)], found.as_deref());
        let wanted = vec![
            Param::new(0, vec![1, 2, 3, 4, 5, 6, 7, 8]),
            Param::new(8, vec![9, 10, 11, 12]),
        ];
        assert_eq!(params, Some(wanted));
    }

    #[test]
    fn a_block_that_is_not_there_or_too_small_gives_no_parameters() {
        let mut bytes = MAX_PARAMS + 1;
        let size = (&raw mut bytes).cast();
        let (first, second) = (marker(PACKED_BLOCK), marker(PACKED_BYTES));
        assert_eq!(read(&mut [second, size, marker(0)]), None);
        assert_eq!(read(&mut [first, size, second, size, marker(0)]), None);
        assert_eq!(read(&mut [marker(9), size, marker(0)]), None);
        assert_eq!(cut(&[(0, 8)], Some(&[0; 7])), None);
        assert_eq!(cut(&[(usize::MAX, 8)], Some(&[0; 7])), None);
        assert_eq!(cut(&[(0, 8)], None), None);
        assert_eq!(cut(&[], None), Some(Vec::new()));
    }
}
