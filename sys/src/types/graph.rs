//! Graph templates: nodes, edges, and what is in a kernel node.

use core::ffi::{c_uint, c_void};

use super::{CUcontext, CUdeviceptr, CUfunction, CUhostFn, CUkernel, CUmemorytype};

open_enum! {
    /// What a node does.
    CUgraphNodeType: u32 {
        CU_GRAPH_NODE_TYPE_KERNEL = 0,
        CU_GRAPH_NODE_TYPE_MEMCPY = 1,
        CU_GRAPH_NODE_TYPE_MEMSET = 2,
        CU_GRAPH_NODE_TYPE_HOST = 3,
        CU_GRAPH_NODE_TYPE_GRAPH = 4,
        CU_GRAPH_NODE_TYPE_EMPTY = 5,
        CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
        CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
        CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL = 8,
        CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT = 9,
        CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
        CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
        CU_GRAPH_NODE_TYPE_BATCH_MEM_OP = 12,
        CU_GRAPH_NODE_TYPE_CONDITIONAL = 13,
    }
}

open_enum! {
    /// How strongly an edge orders its ends ([`CUgraphEdgeData::type_`]).
    CUgraphDependencyType: u8 {
        /// The upper node has finished, its memory operations included.
        CU_GRAPH_DEPENDENCY_TYPE_DEFAULT = 0,
        /// The lower kernel may start early (programmatic dependent launch).
        CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC = 1,
    }
}

/// Outgoing port of a kernel node ([`CUgraphEdgeData::from_port`]): the kernel has finished.
pub const CU_GRAPH_KERNEL_NODE_PORT_DEFAULT: u8 = 0;
/// Outgoing port of a kernel node: every block has triggered programmatic completion, or ended.
pub const CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC: u8 = 1;
/// Outgoing port of a kernel node: every block has begun.
pub const CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER: u8 = 2;

/// What an edge means. All zeros is the ordinary edge.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CUgraphEdgeData {
    /// When the upper node releases the lower one.
    pub from_port: u8,
    /// Which part of the lower node waits. Zero today.
    pub to_port: u8,
    /// How strongly the edge orders (`type` in C).
    pub type_: CUgraphDependencyType,
    /// Zero.
    pub reserved: [u8; 5],
}

layout!(CUgraphEdgeData: size 8, align 1, from_port @ 0, to_port @ 1, type_ @ 2, reserved @ 3);

/// A kernel node's launch, second version of the ABI (CUDA 12.0). The first is 16 bytes shorter: a
/// call through an unversioned symbol name would read and write that one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(
    non_snake_case,
    non_camel_case_types,
    reason = "keeps the driver's spelling"
)]
pub struct CUDA_KERNEL_NODE_PARAMS_v2 {
    /// The kernel; may be null where `kern` is set.
    pub func: CUfunction,
    /// Grid width in blocks.
    pub gridDimX: c_uint,
    /// Grid height in blocks.
    pub gridDimY: c_uint,
    /// Grid depth in blocks.
    pub gridDimZ: c_uint,
    /// Block width in threads.
    pub blockDimX: c_uint,
    /// Block height in threads.
    pub blockDimY: c_uint,
    /// Block depth in threads.
    pub blockDimZ: c_uint,
    /// Dynamic shared memory per block, in bytes.
    pub sharedMemBytes: c_uint,
    /// One pointer per parameter. From a getter: owned by the driver, until the node dies or its
    /// parameters are changed.
    pub kernelParams: *mut *mut c_void,
    /// The packed form of the parameters, where that was used.
    pub extra: *mut *mut c_void,
    /// The context-independent kernel, where that was used.
    pub kern: CUkernel,
    /// The context the kernel runs in; null is the one that was current.
    pub ctx: CUcontext,
}

layout!(
    CUDA_KERNEL_NODE_PARAMS_v2: size 72, align 8,
    func @ 0, gridDimX @ 8, gridDimY @ 12, gridDimZ @ 16, blockDimX @ 20, blockDimY @ 24, blockDimZ @ 28,
    sharedMemBytes @ 32, kernelParams @ 40, extra @ 48, kern @ 56, ctx @ 64,
);

/// A copy between host memory, device memory and arrays, of bytes × rows × planes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(
    non_snake_case,
    non_camel_case_types,
    reason = "keeps the driver's spelling"
)]
pub struct CUDA_MEMCPY3D {
    /// Source: bytes into a row.
    pub srcXInBytes: usize,
    /// Source: rows into a plane.
    pub srcY: usize,
    /// Source: planes.
    pub srcZ: usize,
    /// Source: level of detail.
    pub srcLOD: usize,
    /// Which of the source's three addresses counts.
    pub srcMemoryType: CUmemorytype,
    /// Source in host memory.
    pub srcHost: *const c_void,
    /// Source in device memory.
    pub srcDevice: CUdeviceptr,
    /// Source array.
    pub srcArray: *mut c_void,
    /// Null.
    pub reserved0: *mut c_void,
    /// Source: bytes from row to row.
    pub srcPitch: usize,
    /// Source: rows from plane to plane.
    pub srcHeight: usize,
    /// Destination: bytes into a row.
    pub dstXInBytes: usize,
    /// Destination: rows into a plane.
    pub dstY: usize,
    /// Destination: planes.
    pub dstZ: usize,
    /// Destination: level of detail.
    pub dstLOD: usize,
    /// Which of the destination's three addresses counts.
    pub dstMemoryType: CUmemorytype,
    /// Destination in host memory.
    pub dstHost: *mut c_void,
    /// Destination in device memory.
    pub dstDevice: CUdeviceptr,
    /// Destination array.
    pub dstArray: *mut c_void,
    /// Null.
    pub reserved1: *mut c_void,
    /// Destination: bytes from row to row.
    pub dstPitch: usize,
    /// Destination: rows from plane to plane.
    pub dstHeight: usize,
    /// Bytes of a row.
    pub WidthInBytes: usize,
    /// Rows of a plane.
    pub Height: usize,
    /// Planes.
    pub Depth: usize,
}

layout!(
    CUDA_MEMCPY3D: size 200, align 8,
    srcXInBytes @ 0, srcY @ 8, srcZ @ 16, srcLOD @ 24, srcMemoryType @ 32, srcHost @ 40, srcDevice @ 48,
    srcArray @ 56, reserved0 @ 64, srcPitch @ 72, srcHeight @ 80, dstXInBytes @ 88, dstY @ 96, dstZ @ 104,
    dstLOD @ 112, dstMemoryType @ 120, dstHost @ 128, dstDevice @ 136, dstArray @ 144, reserved1 @ 152,
    dstPitch @ 160, dstHeight @ 168, WidthInBytes @ 176, Height @ 184, Depth @ 192,
);

/// A fill node's parameters, first version of the ABI.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(
    non_snake_case,
    non_camel_case_types,
    reason = "keeps the driver's spelling"
)]
pub struct CUDA_MEMSET_NODE_PARAMS {
    /// Where.
    pub dst: CUdeviceptr,
    /// Bytes from row to row; counts only for more than one row.
    pub pitch: usize,
    /// The element.
    pub value: c_uint,
    /// Bytes of an element: 1, 2 or 4.
    pub elementSize: c_uint,
    /// Elements of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

layout!(
    CUDA_MEMSET_NODE_PARAMS: size 40, align 8,
    dst @ 0, pitch @ 8, value @ 16, elementSize @ 20, width @ 24, height @ 32,
);

/// A host node's parameters, first version of the ABI.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(
    non_snake_case,
    non_camel_case_types,
    reason = "keeps the driver's spelling"
)]
pub struct CUDA_HOST_NODE_PARAMS {
    /// The function (`fn` in C).
    pub fn_: CUhostFn,
    /// Its argument.
    pub userData: *mut c_void,
}

layout!(CUDA_HOST_NODE_PARAMS: size 16, align 8, fn_ @ 0, userData @ 8);

flag_word! {
    /// Flags of `cuGraphInstantiateWithFlags`.
    CUgraphInstantiate_flags: u64 {
        CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH = 1;
        CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD = 2;
        CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH = 4;
        CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY = 8;
    }
}

flag_word! {
    /// Flags of `cuUserObjectCreate`.
    CUuserObject_flags: u32 {
        /// Required: the destructor is not waited for.
        CU_USER_OBJECT_NO_DESTRUCTOR_SYNC = 1;
    }
}

flag_word! {
    /// Flags of `cuGraphRetainUserObject`.
    CUuserObjectRetain_flags: u32 {
        /// The caller's references become the graph's.
        CU_GRAPH_USER_OBJECT_MOVE = 1;
    }
}
