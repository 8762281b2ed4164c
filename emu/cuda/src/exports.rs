//! What the library exports: each function under the name of its ABI, with the symbol and the version by which
//! `cuGetProcAddress` knows it.
//!
//! An unsuffixed name is a function's oldest ABI, so only those names are here whose ABI the machine has.

use std::ffi::{CStr, c_int, c_void};

use crate::{driver, proc_address};

/// A function that is exported and does something.
#[derive(Clone, Copy)]
pub struct Export {
    /// The symbol that `cuGetProcAddress` is asked for.
    pub symbol: &'static CStr,
    /// The version of its ABI: 1000 × major + 10 × minor.
    pub version: c_int,
    /// The function.
    pub function: Function,
}

/// A function of some signature.
#[derive(Clone, Copy)]
pub struct Function(*const c_void);

// SAFETY: a function's address, which is never written to.
unsafe impl Sync for Function {}

impl Function {
    /// Its address.
    pub fn address(self) -> *const c_void {
        self.0
    }
}

/// The one instruction that hands a call on as it is, whatever its arguments.
#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        "jmp {entry}"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    () => {
        "b {entry}"
    };
}

/// Exports functions of the machine, which is the first of its process and so has slot 0; and lists them.
macro_rules! exports {
    (
        here { $($own:ident @ $own_version:literal => $path:path;)* }
        machine { $($export:ident, $symbol:ident @ $version:literal => $entry:ident;)* }
    ) => {
        mod jumps {
            $(
                #[allow(non_snake_case, reason = "the driver's spelling")]
                #[unsafe(naked)]
                #[unsafe(no_mangle)]
                pub unsafe extern "C" fn $export() {
                    ::core::arch::naked_asm!(jump!(), entry = sym ::slabfence_emu::entry::$entry::<0>)
                }
            )*
        }

        /// All of them.
        pub static EXPORTS: &[Export] = &[
            $(Export {
                symbol: symbol!($own),
                version: $own_version,
                function: Function($path as *const c_void),
            },)*
            $(Export {
                symbol: symbol!($symbol),
                version: $version,
                function: Function(jumps::$export as *const c_void),
            },)*
        ];
    };
}

macro_rules! symbol {
    ($symbol:ident) => {
        match CStr::from_bytes_with_nul(concat!(stringify!($symbol), "\0").as_bytes()) {
            Ok(symbol) => symbol,
            Err(_) => unreachable!(),
        }
    };
}

exports! {
    here {
        cuInit @ 2000 => driver::cuInit;
        cuDriverGetVersion @ 2020 => driver::cuDriverGetVersion;
        cuGetErrorName @ 6000 => driver::cuGetErrorName;
        cuGetErrorString @ 6000 => driver::cuGetErrorString;
        cuGetProcAddress @ 11030 => proc_address::cuGetProcAddress;
        cuGetProcAddress @ 12000 => proc_address::cuGetProcAddress_v2;
    }
    machine {
        // Devices
        cuDeviceGetCount, cuDeviceGetCount @ 2000 => cuDeviceGetCount;
        cuDeviceGet, cuDeviceGet @ 2000 => cuDeviceGet;
        cuDeviceGetName, cuDeviceGetName @ 2000 => cuDeviceGetName;
        cuDeviceGetUuid_v2, cuDeviceGetUuid @ 11040 => cuDeviceGetUuid;
        cuDeviceGetAttribute, cuDeviceGetAttribute @ 2000 => cuDeviceGetAttribute;
        cuDeviceCanAccessPeer, cuDeviceCanAccessPeer @ 4000 => cuDeviceCanAccessPeer;
        cuDeviceGetP2PAttribute, cuDeviceGetP2PAttribute @ 8000 => cuDeviceGetP2PAttribute;
        cuDeviceTotalMem_v2, cuDeviceTotalMem @ 3020 => cuDeviceTotalMem;
        cuDeviceGetPCIBusId, cuDeviceGetPCIBusId @ 4010 => cuDeviceGetPCIBusId;
        cuDeviceGetByPCIBusId, cuDeviceGetByPCIBusId @ 4010 => cuDeviceGetByPCIBusId;
        cuDeviceComputeCapability, cuDeviceComputeCapability @ 2000 => cuDeviceComputeCapability;
        cuDeviceGetUuid, cuDeviceGetUuid @ 9020 => cuDeviceGetUuid;
        // Contexts
        cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain @ 7000 => cuDevicePrimaryCtxRetain;
        cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease @ 11000 => cuDevicePrimaryCtxRelease;
        cuCtxPushCurrent_v2, cuCtxPushCurrent @ 4000 => cuCtxPushCurrent;
        cuCtxPopCurrent_v2, cuCtxPopCurrent @ 4000 => cuCtxPopCurrent;
        cuCtxGetCurrent, cuCtxGetCurrent @ 4000 => cuCtxGetCurrent;
        cuCtxSetCurrent, cuCtxSetCurrent @ 4000 => cuCtxSetCurrent;
        cuCtxGetDevice, cuCtxGetDevice @ 2000 => cuCtxGetDevice;
        cuCtxSynchronize, cuCtxSynchronize @ 2000 => cuCtxSynchronize;
        cuCtxGetId, cuCtxGetId @ 12000 => cuCtxGetId;
        cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState @ 7000 => cuDevicePrimaryCtxGetState;
        cuDevicePrimaryCtxSetFlags_v2, cuDevicePrimaryCtxSetFlags @ 11000 => cuDevicePrimaryCtxSetFlags_v2;
        cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset @ 11000 => cuDevicePrimaryCtxReset_v2;
        cuCtxGetFlags, cuCtxGetFlags @ 7000 => cuCtxGetFlags;
        cuCtxSetFlags, cuCtxSetFlags @ 12010 => cuCtxSetFlags;
        cuCtxGetLimit, cuCtxGetLimit @ 3010 => cuCtxGetLimit;
        cuCtxSetLimit, cuCtxSetLimit @ 3010 => cuCtxSetLimit;
        cuCtxGetCacheConfig, cuCtxGetCacheConfig @ 3020 => cuCtxGetCacheConfig;
        cuCtxSetCacheConfig, cuCtxSetCacheConfig @ 3020 => cuCtxSetCacheConfig;
        cuCtxGetApiVersion, cuCtxGetApiVersion @ 3020 => cuCtxGetApiVersion;
        cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange @ 5050 => cuCtxGetStreamPriorityRange;
        cuProfilerStart, cuProfilerStart @ 4000 => cuProfilerStart;
        cuProfilerStop, cuProfilerStop @ 4000 => cuProfilerStop;
        // Memory
        cuMemAlloc_v2, cuMemAlloc @ 3020 => cuMemAlloc;
        cuMemFree_v2, cuMemFree @ 3020 => cuMemFree;
        cuMemHostAlloc, cuMemHostAlloc @ 2020 => cuMemHostAlloc;
        cuMemFreeHost, cuMemFreeHost @ 2000 => cuMemFreeHost;
        cuMemHostGetDevicePointer_v2, cuMemHostGetDevicePointer @ 3020 => cuMemHostGetDevicePointer;
        cuPointerGetAttribute, cuPointerGetAttribute @ 4000 => cuPointerGetAttribute;
        cuMemGetAddressRange_v2, cuMemGetAddressRange @ 3020 => cuMemGetAddressRange;
        cuMemGetInfo_v2, cuMemGetInfo @ 3020 => cuMemGetInfo_v2;
        cuMemAllocHost_v2, cuMemAllocHost @ 3020 => cuMemAllocHost_v2;
        cuPointerGetAttributes, cuPointerGetAttributes @ 7000 => cuPointerGetAttributes;
        // Copies and fills
        cuMemcpyHtoD_v2, cuMemcpyHtoD @ 3020 => cuMemcpyHtoD;
        cuMemcpyDtoH_v2, cuMemcpyDtoH @ 3020 => cuMemcpyDtoH;
        cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync @ 3020 => cuMemcpyHtoDAsync;
        cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync @ 3020 => cuMemcpyDtoHAsync;
        cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync @ 3020 => cuMemcpyDtoDAsync;
        cuMemsetD8Async, cuMemsetD8Async @ 3020 => cuMemsetD8Async;
        cuMemsetD32Async, cuMemsetD32Async @ 3020 => cuMemsetD32Async;
        cuMemcpy, cuMemcpy @ 4000 => cuMemcpy;
        cuMemcpyAsync, cuMemcpyAsync @ 4000 => cuMemcpyAsync;
        cuMemcpyDtoD_v2, cuMemcpyDtoD @ 3020 => cuMemcpyDtoD_v2;
        cuMemcpyPeer, cuMemcpyPeer @ 4000 => cuMemcpyPeer;
        cuMemcpyPeerAsync, cuMemcpyPeerAsync @ 4000 => cuMemcpyPeerAsync;
        cuMemsetD8_v2, cuMemsetD8 @ 3020 => cuMemsetD8_v2;
        cuMemsetD16_v2, cuMemsetD16 @ 3020 => cuMemsetD16_v2;
        cuMemsetD32_v2, cuMemsetD32 @ 3020 => cuMemsetD32_v2;
        cuMemsetD16Async, cuMemsetD16Async @ 3020 => cuMemsetD16Async;
        // Copies of rows
        cuMemAllocPitch_v2, cuMemAllocPitch @ 3020 => cuMemAllocPitch_v2;
        cuMemcpy2D_v2, cuMemcpy2D @ 3020 => cuMemcpy2D_v2;
        cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned @ 3020 => cuMemcpy2DUnaligned_v2;
        cuMemcpy2DAsync_v2, cuMemcpy2DAsync @ 3020 => cuMemcpy2DAsync_v2;
        cuMemcpy3D_v2, cuMemcpy3D @ 3020 => cuMemcpy3D_v2;
        cuMemcpy3DAsync_v2, cuMemcpy3DAsync @ 3020 => cuMemcpy3DAsync_v2;
        // Memory in stream order
        cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool @ 11020 => cuDeviceGetDefaultMemPool;
        cuDeviceGetMemPool, cuDeviceGetMemPool @ 11020 => cuDeviceGetMemPool;
        cuDeviceSetMemPool, cuDeviceSetMemPool @ 11020 => cuDeviceSetMemPool;
        cuMemPoolTrimTo, cuMemPoolTrimTo @ 11020 => cuMemPoolTrimTo;
        cuMemPoolGetAttribute, cuMemPoolGetAttribute @ 11020 => cuMemPoolGetAttribute;
        cuMemPoolSetAttribute, cuMemPoolSetAttribute @ 11020 => cuMemPoolSetAttribute;
        cuMemAllocAsync, cuMemAllocAsync @ 11020 => cuMemAllocAsync;
        cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync @ 11020 => cuMemAllocFromPoolAsync;
        cuMemFreeAsync, cuMemFreeAsync @ 11020 => cuMemFreeAsync;
        // Physical allocations and mappings
        cuMemCreate, cuMemCreate @ 10020 => cuMemCreate;
        cuMemRelease, cuMemRelease @ 10020 => cuMemRelease;
        cuMemAddressReserve, cuMemAddressReserve @ 10020 => cuMemAddressReserve;
        cuMemAddressFree, cuMemAddressFree @ 10020 => cuMemAddressFree;
        cuMemMap, cuMemMap @ 10020 => cuMemMap;
        cuMemUnmap, cuMemUnmap @ 10020 => cuMemUnmap;
        cuMemSetAccess, cuMemSetAccess @ 10020 => cuMemSetAccess;
        cuMemGetAccess, cuMemGetAccess @ 10020 => cuMemGetAccess;
        cuMemGetAllocationGranularity, cuMemGetAllocationGranularity @ 10020 => cuMemGetAllocationGranularity;
        cuMemRetainAllocationHandle, cuMemRetainAllocationHandle @ 11000 => cuMemRetainAllocationHandle;
        cuMemExportToShareableHandle, cuMemExportToShareableHandle @ 10020 => cuMemExportToShareableHandle;
        cuMemImportFromShareableHandle, cuMemImportFromShareableHandle @ 10020 => cuMemImportFromShareableHandle;
        // Streams
        cuStreamSynchronize, cuStreamSynchronize @ 2000 => cuStreamSynchronize;
        cuStreamCreate, cuStreamCreate @ 2000 => cuStreamCreate;
        cuStreamDestroy_v2, cuStreamDestroy @ 4000 => cuStreamDestroy;
        cuStreamQuery, cuStreamQuery @ 2000 => cuStreamQuery;
        cuStreamGetId, cuStreamGetId @ 12000 => cuStreamGetId;
        cuStreamWaitEvent, cuStreamWaitEvent @ 3020 => cuStreamWaitEvent;
        cuLaunchHostFunc, cuLaunchHostFunc @ 10000 => cuLaunchHostFunc;
        cuStreamCreateWithPriority, cuStreamCreateWithPriority @ 5050 => cuStreamCreateWithPriority;
        cuStreamGetPriority, cuStreamGetPriority @ 5050 => cuStreamGetPriority;
        cuStreamGetFlags, cuStreamGetFlags @ 5050 => cuStreamGetFlags;
        cuStreamGetCtx, cuStreamGetCtx @ 9020 => cuStreamGetCtx;
        cuStreamGetDevice, cuStreamGetDevice @ 12080 => cuStreamGetDevice;
        // Events
        cuEventCreate, cuEventCreate @ 2000 => cuEventCreate;
        cuEventDestroy_v2, cuEventDestroy @ 4000 => cuEventDestroy;
        cuEventRecord, cuEventRecord @ 2000 => cuEventRecord;
        cuEventQuery, cuEventQuery @ 2000 => cuEventQuery;
        cuEventSynchronize, cuEventSynchronize @ 2000 => cuEventSynchronize;
        cuEventElapsedTime, cuEventElapsedTime @ 2000 => cuEventElapsedTime;
        cuEventRecordWithFlags, cuEventRecordWithFlags @ 11010 => cuEventRecordWithFlags;
        cuEventElapsedTime_v2, cuEventElapsedTime @ 12080 => cuEventElapsedTime_v2;
        // Capture
        cuStreamIsCapturing, cuStreamIsCapturing @ 10000 => cuStreamIsCapturing;
        cuStreamBeginCapture_v2, cuStreamBeginCapture @ 10010 => cuStreamBeginCapture;
        cuStreamEndCapture, cuStreamEndCapture @ 10000 => cuStreamEndCapture;
        cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode @ 10010 => cuThreadExchangeStreamCaptureMode;
        cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo @ 11030 => cuStreamGetCaptureInfo;
        cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo @ 12030 => cuStreamGetCaptureInfo_v3;
        // Modules
        cuModuleLoadDataEx, cuModuleLoadDataEx @ 2010 => cuModuleLoadDataEx;
        cuModuleUnload, cuModuleUnload @ 2000 => cuModuleUnload;
        cuModuleGetFunction, cuModuleGetFunction @ 2000 => cuModuleGetFunction;
        cuModuleGetGlobal_v2, cuModuleGetGlobal @ 3020 => cuModuleGetGlobal;
        cuModuleLoad, cuModuleLoad @ 2000 => cuModuleLoad;
        cuModuleLoadData, cuModuleLoadData @ 2000 => cuModuleLoadData;
        cuModuleGetLoadingMode, cuModuleGetLoadingMode @ 11070 => cuModuleGetLoadingMode;
        cuModuleGetFunctionCount, cuModuleGetFunctionCount @ 12040 => cuModuleGetFunctionCount;
        cuModuleEnumerateFunctions, cuModuleEnumerateFunctions @ 12040 => cuModuleEnumerateFunctions;
        // Libraries
        cuLibraryLoadData, cuLibraryLoadData @ 12000 => cuLibraryLoadData;
        cuLibraryLoadFromFile, cuLibraryLoadFromFile @ 12000 => cuLibraryLoadFromFile;
        cuLibraryUnload, cuLibraryUnload @ 12000 => cuLibraryUnload;
        cuLibraryGetKernel, cuLibraryGetKernel @ 12000 => cuLibraryGetKernel;
        cuLibraryGetKernelCount, cuLibraryGetKernelCount @ 12040 => cuLibraryGetKernelCount;
        cuLibraryEnumerateKernels, cuLibraryEnumerateKernels @ 12040 => cuLibraryEnumerateKernels;
        cuLibraryGetModule, cuLibraryGetModule @ 12000 => cuLibraryGetModule;
        cuLibraryGetGlobal, cuLibraryGetGlobal @ 12000 => cuLibraryGetGlobal;
        cuKernelGetLibrary, cuKernelGetLibrary @ 12050 => cuKernelGetLibrary;
        cuKernelGetName, cuKernelGetName @ 12030 => cuKernelGetName;
        cuKernelGetParamInfo, cuKernelGetParamInfo @ 12040 => cuKernelGetParamInfo;
        cuKernelGetAttribute, cuKernelGetAttribute @ 12000 => cuKernelGetAttribute;
        cuKernelSetAttribute, cuKernelSetAttribute @ 12000 => cuKernelSetAttribute;
        // Functions
        cuFuncGetAttribute, cuFuncGetAttribute @ 2020 => cuFuncGetAttribute;
        cuFuncLoad, cuFuncLoad @ 12040 => cuFuncLoad;
        cuFuncGetParamInfo, cuFuncGetParamInfo @ 12040 => cuFuncGetParamInfo;
        cuFuncGetName, cuFuncGetName @ 12030 => cuFuncGetName;
        cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor @ 6050 => cuOccupancyMaxActiveBlocksPerMultiprocessor;
        cuKernelGetFunction, cuKernelGetFunction @ 12000 => cuKernelGetFunction;
        cuFuncSetAttribute, cuFuncSetAttribute @ 9000 => cuFuncSetAttribute;
        cuFuncSetCacheConfig, cuFuncSetCacheConfig @ 3000 => cuFuncSetCacheConfig;
        cuFuncGetModule, cuFuncGetModule @ 11000 => cuFuncGetModule;
        cuFuncIsLoaded, cuFuncIsLoaded @ 12040 => cuFuncIsLoaded;
        cuLaunchCooperativeKernel, cuLaunchCooperativeKernel @ 9000 => cuLaunchCooperativeKernel;
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags @ 7000 => cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags;
        cuOccupancyAvailableDynamicSMemPerBlock, cuOccupancyAvailableDynamicSMemPerBlock @ 10020 => cuOccupancyAvailableDynamicSMemPerBlock;
        cuOccupancyMaxPotentialBlockSize, cuOccupancyMaxPotentialBlockSize @ 6050 => cuOccupancyMaxPotentialBlockSize;
        cuOccupancyMaxPotentialBlockSizeWithFlags, cuOccupancyMaxPotentialBlockSizeWithFlags @ 7000 => cuOccupancyMaxPotentialBlockSizeWithFlags;
        // Launches
        cuLaunchKernel, cuLaunchKernel @ 4000 => cuLaunchKernel;
        cuLaunchKernelEx, cuLaunchKernelEx @ 11060 => cuLaunchKernelEx;
        // Graphs
        cuGraphCreate, cuGraphCreate @ 10000 => cuGraphCreate;
        cuGraphDestroy, cuGraphDestroy @ 10000 => cuGraphDestroy;
        cuGraphGetNodes, cuGraphGetNodes @ 10000 => cuGraphGetNodes;
        cuGraphGetEdges, cuGraphGetEdges @ 10000 => cuGraphGetEdges;
        cuGraphGetEdges_v2, cuGraphGetEdges @ 12030 => cuGraphGetEdges_v2;
        cuGraphNodeGetType, cuGraphNodeGetType @ 10000 => cuGraphNodeGetType;
        cuGraphAddKernelNode_v2, cuGraphAddKernelNode @ 12000 => cuGraphAddKernelNode;
        cuGraphKernelNodeGetParams_v2, cuGraphKernelNodeGetParams @ 12000 => cuGraphKernelNodeGetParams;
        cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags @ 11040 => cuGraphInstantiateWithFlags;
        cuGraphExecDestroy, cuGraphExecDestroy @ 10000 => cuGraphExecDestroy;
        cuGraphLaunch, cuGraphLaunch @ 10000 => cuGraphLaunch;
        cuGraphUpload, cuGraphUpload @ 11010 => cuGraphUpload;
        cuUserObjectCreate, cuUserObjectCreate @ 11030 => cuUserObjectCreate;
        cuUserObjectRelease, cuUserObjectRelease @ 11030 => cuUserObjectRelease;
        cuUserObjectRetain, cuUserObjectRetain @ 11030 => cuUserObjectRetain;
        cuGraphRetainUserObject, cuGraphRetainUserObject @ 11030 => cuGraphRetainUserObject;
        cuGraphGetRootNodes, cuGraphGetRootNodes @ 10000 => cuGraphGetRootNodes;
        cuGraphNodeGetDependencies, cuGraphNodeGetDependencies @ 10000 => cuGraphNodeGetDependencies;
        cuGraphNodeGetDependencies_v2, cuGraphNodeGetDependencies @ 12030 => cuGraphNodeGetDependencies_v2;
        cuGraphNodeGetDependentNodes, cuGraphNodeGetDependentNodes @ 10000 => cuGraphNodeGetDependentNodes;
        cuGraphNodeGetDependentNodes_v2, cuGraphNodeGetDependentNodes @ 12030 => cuGraphNodeGetDependentNodes_v2;
        cuGraphClone, cuGraphClone @ 10000 => cuGraphClone;
        cuGraphReleaseUserObject, cuGraphReleaseUserObject @ 11030 => cuGraphReleaseUserObject;
        cuGraphInstantiateWithParams, cuGraphInstantiateWithParams @ 12000 => cuGraphInstantiateWithParams;
        // Nodes
        cuGraphKernelNodeGetAttribute, cuGraphKernelNodeGetAttribute @ 11000 => cuGraphKernelNodeGetAttribute;
        cuGraphMemcpyNodeGetParams, cuGraphMemcpyNodeGetParams @ 10000 => cuGraphMemcpyNodeGetParams;
        cuGraphMemsetNodeGetParams, cuGraphMemsetNodeGetParams @ 10000 => cuGraphMemsetNodeGetParams;
        cuGraphHostNodeGetParams, cuGraphHostNodeGetParams @ 10000 => cuGraphHostNodeGetParams;
        cuGraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph @ 10000 => cuGraphChildGraphNodeGetGraph;
        cuGraphEventRecordNodeGetEvent, cuGraphEventRecordNodeGetEvent @ 11010 => cuGraphEventRecordNodeGetEvent;
        cuGraphEventWaitNodeGetEvent, cuGraphEventWaitNodeGetEvent @ 11010 => cuGraphEventWaitNodeGetEvent;
        cuGraphMemFreeNodeGetParams, cuGraphMemFreeNodeGetParams @ 11040 => cuGraphMemFreeNodeGetParams;
        cuGraphAddEmptyNode, cuGraphAddEmptyNode @ 10000 => cuGraphAddEmptyNode;
        cuGraphAddMemcpyNode, cuGraphAddMemcpyNode @ 10000 => cuGraphAddMemcpyNode;
        cuGraphAddMemsetNode, cuGraphAddMemsetNode @ 10000 => cuGraphAddMemsetNode;
        cuGraphAddHostNode, cuGraphAddHostNode @ 10000 => cuGraphAddHostNode;
        cuGraphAddEventWaitNode, cuGraphAddEventWaitNode @ 11010 => cuGraphAddEventWaitNode;
        cuGraphKernelNodeSetParams_v2, cuGraphKernelNodeSetParams @ 12000 => cuGraphKernelNodeSetParams_v2;
        cuGraphExecKernelNodeSetParams_v2, cuGraphExecKernelNodeSetParams @ 12000 => cuGraphExecKernelNodeSetParams_v2;
    }
}
