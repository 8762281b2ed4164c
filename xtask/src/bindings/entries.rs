//! Which functions of the driver the table has. A name says it all: symbol and version of the ABI, as `cudaTypedefs.h`
//! has them.
//!
//! The version is that of the oldest ABI that serves, never the newest: `cuGetProcAddress` refuses a version above the
//! driver's own.

/// A line of the table.
#[derive(Clone, Copy)]
pub enum Line {
    /// A heading over the lines that follow.
    Topic(&'static str),
    /// The function of this typedef, under its symbol's name.
    Entry(&'static str),
    /// The second version of a symbol that the table has already: the typedef, and the entry's name.
    Second(&'static str, &'static str),
}

use Line::{Entry, Second, Topic};

/// How everything else is found; not in the table.
pub const FINDER: &str = "PFN_cuGetProcAddress_v12000";

/// What nothing can do without: a driver that lacks one of these is refused.
#[rustfmt::skip]
pub const REQUIRED: &[Line] = &[
    Topic("Driver"),
    Entry("PFN_cuInit_v2000"),
    Entry("PFN_cuDriverGetVersion_v2020"),
    Entry("PFN_cuGetErrorName_v6000"),
    Entry("PFN_cuGetErrorString_v6000"),
    Topic("Devices"),
    Entry("PFN_cuDeviceGetCount_v2000"),
    Entry("PFN_cuDeviceGet_v2000"),
    Entry("PFN_cuDeviceGetName_v2000"),
    Entry("PFN_cuDeviceGetUuid_v11040"),
    Entry("PFN_cuDeviceGetAttribute_v2000"),
    Topic("Contexts"),
    Entry("PFN_cuDevicePrimaryCtxRetain_v7000"),
    Entry("PFN_cuDevicePrimaryCtxRelease_v11000"),
    Entry("PFN_cuCtxPushCurrent_v4000"),
    Entry("PFN_cuCtxPopCurrent_v4000"),
    Entry("PFN_cuCtxGetCurrent_v4000"),
    Topic("Memory: allocations, copies, fills"),
    Entry("PFN_cuMemAlloc_v3020"),
    Entry("PFN_cuMemFree_v3020"),
    Topic("Streams and events"),
    Entry("PFN_cuStreamSynchronize_v2000"),
    Topic("Code"),
    Entry("PFN_cuModuleLoadDataEx_v2010"),
    Entry("PFN_cuModuleUnload_v2000"),
    Entry("PFN_cuModuleGetFunction_v2000"),
    Entry("PFN_cuLaunchKernel_v4000"),
];

/// What a driver may lack: the call that needs it says so.
#[rustfmt::skip]
pub const OPTIONAL: &[Line] = &[
    Topic("Devices"),
    Entry("PFN_cuDeviceCanAccessPeer_v4000"),
    Entry("PFN_cuDeviceGetP2PAttribute_v8000"),
    Entry("PFN_cuDeviceTotalMem_v3020"),
    Topic("Contexts"),
    Entry("PFN_cuCtxSetCurrent_v4000"),
    Entry("PFN_cuCtxGetDevice_v2000"),
    Entry("PFN_cuCtxSynchronize_v2000"),
    Entry("PFN_cuCtxGetId_v12000"),
    Topic("Memory: allocations, copies, fills"),
    Entry("PFN_cuMemHostAlloc_v2020"),
    Entry("PFN_cuMemFreeHost_v2000"),
    Entry("PFN_cuMemHostGetDevicePointer_v3020"),
    Entry("PFN_cuMemcpyHtoD_v3020"),
    Entry("PFN_cuMemcpyDtoH_v3020"),
    Entry("PFN_cuMemcpyHtoDAsync_v3020"),
    Entry("PFN_cuMemcpyDtoHAsync_v3020"),
    Entry("PFN_cuMemcpyDtoDAsync_v3020"),
    Entry("PFN_cuMemsetD8Async_v3020"),
    Entry("PFN_cuMemsetD32Async_v3020"),
    Entry("PFN_cuPointerGetAttribute_v4000"),
    Entry("PFN_cuMemGetAddressRange_v3020"),
    Topic("Memory: physical allocations and mappings"),
    Entry("PFN_cuMemCreate_v10020"),
    Entry("PFN_cuMemRelease_v10020"),
    Entry("PFN_cuMemAddressReserve_v10020"),
    Entry("PFN_cuMemAddressFree_v10020"),
    Entry("PFN_cuMemMap_v10020"),
    Entry("PFN_cuMemUnmap_v10020"),
    Entry("PFN_cuMemSetAccess_v10020"),
    Entry("PFN_cuMemGetAccess_v10020"),
    Entry("PFN_cuMemGetAllocationGranularity_v10020"),
    Entry("PFN_cuMemRetainAllocationHandle_v11000"),
    Entry("PFN_cuMemExportToShareableHandle_v10020"),
    Entry("PFN_cuMemImportFromShareableHandle_v10020"),
    Topic("Streams and events"),
    Entry("PFN_cuStreamCreate_v2000"),
    Entry("PFN_cuStreamDestroy_v4000"),
    Entry("PFN_cuStreamQuery_v2000"),
    Entry("PFN_cuStreamGetId_v12000"),
    Entry("PFN_cuStreamWaitEvent_v3020"),
    Entry("PFN_cuLaunchHostFunc_v10000"),
    Entry("PFN_cuEventCreate_v2000"),
    Entry("PFN_cuEventDestroy_v4000"),
    Entry("PFN_cuEventRecord_v2000"),
    Entry("PFN_cuEventQuery_v2000"),
    Entry("PFN_cuEventSynchronize_v2000"),
    Entry("PFN_cuEventElapsedTime_v2000"),
    Topic("Capture"),
    Entry("PFN_cuStreamIsCapturing_v10000"),
    Entry("PFN_cuStreamBeginCapture_v10010"),
    Entry("PFN_cuStreamEndCapture_v10000"),
    Entry("PFN_cuThreadExchangeStreamCaptureMode_v10010"),
    Entry("PFN_cuStreamGetCaptureInfo_v11030"),
    Second("PFN_cuStreamGetCaptureInfo_v12030", "cuStreamGetCaptureInfo_v3"),
    Topic("Code"),
    Entry("PFN_cuModuleGetGlobal_v3020"),
    Entry("PFN_cuFuncGetAttribute_v2020"),
    Entry("PFN_cuFuncLoad_v12040"),
    Entry("PFN_cuFuncGetParamInfo_v12040"),
    Entry("PFN_cuFuncGetName_v12030"),
    Entry("PFN_cuLaunchKernelEx_v11060"),
    Entry("PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050"),
    Topic("Graphs"),
    Entry("PFN_cuGraphCreate_v10000"),
    Entry("PFN_cuGraphDestroy_v10000"),
    Entry("PFN_cuGraphGetNodes_v10000"),
    Entry("PFN_cuGraphGetEdges_v10000"),
    Second("PFN_cuGraphGetEdges_v12030", "cuGraphGetEdges_v2"),
    Entry("PFN_cuGraphNodeGetType_v10000"),
    Entry("PFN_cuGraphAddKernelNode_v12000"),
    Entry("PFN_cuGraphKernelNodeGetParams_v12000"),
    Entry("PFN_cuGraphInstantiateWithFlags_v11040"),
    Entry("PFN_cuGraphExecDestroy_v10000"),
    Entry("PFN_cuGraphLaunch_v10000"),
    Entry("PFN_cuGraphUpload_v11010"),
    Entry("PFN_cuUserObjectCreate_v11030"),
    Entry("PFN_cuUserObjectRelease_v11030"),
    Entry("PFN_cuUserObjectRetain_v11030"),
    Entry("PFN_cuGraphRetainUserObject_v11030"),
    Entry("PFN_cuGraphKernelNodeGetAttribute_v11000"),
    Entry("PFN_cuGraphMemcpyNodeGetParams_v10000"),
    Entry("PFN_cuGraphMemsetNodeGetParams_v10000"),
    Entry("PFN_cuGraphHostNodeGetParams_v10000"),
    Entry("PFN_cuGraphChildGraphNodeGetGraph_v10000"),
    Entry("PFN_cuGraphEventRecordNodeGetEvent_v11010"),
    Entry("PFN_cuGraphEventWaitNodeGetEvent_v11010"),
    Entry("PFN_cuGraphMemFreeNodeGetParams_v11040"),
    Entry("PFN_cuKernelGetFunction_v12000"),
];

impl Line {
    /// The typedef; a heading has none.
    pub fn typedef(self) -> Option<&'static str> {
        match self {
            Topic(_) => None,
            Entry(typedef) | Second(typedef, _) => Some(typedef),
        }
    }
}

/// Every typedef that is wanted.
pub fn typedefs() -> impl Iterator<Item = &'static str> {
    let lines = REQUIRED.iter().chain(OPTIONAL);
    lines.filter_map(|line| line.typedef()).chain([FINDER])
}

/// Symbol and version of `PFN_<symbol>_v<version>`.
pub fn parts(typedef: &str) -> Option<(&str, u32)> {
    let (symbol, version) = typedef.strip_prefix("PFN_")?.rsplit_once("_v")?;
    Some((symbol, version.parse().ok()?))
}
