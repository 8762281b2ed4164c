//! The function table: one line per driver entry, with the version of the ABI it is asked for.
//!
//! The version is that of the signature written here (`PFN_<name>_v<version>` in the toolkit's
//! `cudaTypedefs.h`), never the newest one: `cuGetProcAddress` refuses a version above the driver's
//! own, and a symbol asked for without a version is its *oldest* ABI, with 32-bit addresses in some
//! cases.
//!
//! Required is only what nothing can do without: under a profiler or debugger a library that lacks
//! entries may stand in for the driver. Whoever calls an optional entry gets a [`MissingSymbol`]
//! where it is absent.

#![allow(
    non_snake_case,
    non_camel_case_types,
    reason = "entries keep the driver's spelling"
)]

use core::any::Any;
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::Arc;

use crate::error::{LoadError, MissingSymbol};
use crate::types::*;

/// An entry of the table, for whoever provides or checks one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// The entry's name in [`Api`]: the symbol, with a suffix where the table has a second version
    /// of it.
    pub entry: &'static str,
    /// The symbol that is asked for.
    pub name: &'static CStr,
    /// The version it is asked for with: 1000 × major + 10 × minor. Zero for the entries that only
    /// an emulated driver has.
    pub version: c_int,
    /// Whether a table without it is refused.
    pub required: bool,
}

/// A name as the C string that it is.
const fn c_name(with_nul: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(with_nul.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("an entry's name has no NUL inside and one at its end"),
    }
}

/// The symbol behind an entry: of the same name, but for a second version of one that the table has
/// already.
macro_rules! symbol_of {
    ($entry:ident) => {
        const { c_name(concat!(stringify!($entry), "\0")) }
    };
    ($entry:ident $symbol:ident) => {
        const { c_name(concat!(stringify!($symbol), "\0")) }
    };
}

macro_rules! driver_table {
    (
        required { $( $req:ident @ $req_version:literal: fn($($req_arg:ident: $req_type:ty),* $(,)?) -> $req_ret:ty; )* }
        optional { $( $opt:ident $(as $opt_symbol:ident)? @ $opt_version:literal: fn($($opt_arg:ident: $opt_type:ty),* $(,)?) -> $opt_ret:ty; )* }
    ) => {
        /// The type of every entry, by the entry's name. A driver written in Rust can be checked
        /// against it.
        pub mod pfn {
            use super::*;
            $(
                #[doc = concat!("`", stringify!($req), "` with the ABI of version ", stringify!($req_version), ".")]
                pub type $req = unsafe extern "C" fn($($req_arg: $req_type),*) -> $req_ret;
            )*
            $(
                #[doc = concat!("`", stringify!($opt), "` with the ABI of version ", stringify!($opt_version), ".")]
                pub type $opt = unsafe extern "C" fn($($opt_arg: $opt_type),*) -> $opt_ret;
            )*
        }

        /// Every entry, in the order of the table.
        pub const SYMBOLS: &[Symbol] = &[
            $( Symbol {
                entry: stringify!($req),
                name: symbol_of!($req),
                version: $req_version,
                required: true,
            }, )*
            $( Symbol {
                entry: stringify!($opt),
                name: symbol_of!($opt $($opt_symbol)?),
                version: $opt_version,
                required: false,
            }, )*
        ];

        /// The driver's functions, each with the ABI of the version it was asked for.
        ///
        /// An optional entry is a field (`None` where the driver lacks it) and a method of the same
        /// name, which gives the function or the error that names it: `let load =
        /// api.cuFuncLoad()?;`. A required one is a function: without it there is no table.
        #[derive(Clone)]
        pub struct Api {
            /// What `cuDriverGetVersion` gave: 1000 × major + 10 × minor of the newest CUDA the
            /// driver serves.
            pub driver_version: c_int,
            /// What the functions belong to, where they belong to something.
            pub(crate) owner: Option<Arc<dyn Any + Send + Sync>>,
            $(
                #[doc = concat!("`", stringify!($req), "`, version ", stringify!($req_version), ", required.")]
                pub $req: pfn::$req,
            )*
            $(
                #[doc = concat!("`", stringify!($opt), "`, version ", stringify!($opt_version), ", optional.")]
                pub $opt: Option<pfn::$opt>,
            )*
        }

        impl Api {
            /// Fills the table from `lookup`, which gives null for what it does not have.
            ///
            /// # Safety
            ///
            /// What `lookup` gives for a name and version is null, or a function of that name's ABI
            /// at that version which stays where it is until the process ends.
            pub(crate) unsafe fn from_lookup(
                driver_version: c_int,
                lookup: &mut dyn FnMut(&CStr, c_int) -> *const c_void,
            ) -> Result<Self, LoadError> {
                Ok(Self {
                    driver_version,
                    owner: None,
                    $( $req: {
                        let address = lookup(symbol_of!($req), $req_version);
                        if address.is_null() {
                            let (name, needs) = (stringify!($req), $req_version);
                            return Err(LoadError::MissingSymbol(MissingSymbol { name, needs, driver: driver_version }));
                        }
                        // SAFETY: not null, and by this function's contract a function of this
                        // type.
                        unsafe { core::mem::transmute::<*const c_void, pfn::$req>(address) }
                    }, )*
                    $( $opt: {
                        let address = lookup(symbol_of!($opt $($opt_symbol)?), $opt_version);
                        // SAFETY: null is `None` in this type; anything else is a function of it,
                        // by the contract.
                        unsafe { core::mem::transmute::<*const c_void, Option<pfn::$opt>>(address) }
                    }, )*
                })
            }

            /// Names of the optional entries that this driver lacks.
            pub fn absent(&self) -> Vec<&'static str> {
                let entries = [ $( (stringify!($opt), self.$opt.is_none()) ),* ];
                entries.iter().filter(|(_, absent)| *absent).map(|(name, _)| *name).collect()
            }

            $(
                #[doc = concat!("`", stringify!($opt), "`, or what is missing and which driver has it.")]
                pub fn $opt(&self) -> Result<pfn::$opt, MissingSymbol> {
                    let (name, needs) = (stringify!($opt), $opt_version);
                    self.$opt.ok_or(MissingSymbol { name, needs, driver: self.driver_version })
                }
            )*
        }
    };
}

driver_table! {
    required {
        // Driver
        cuInit @ 2000: fn(flags: c_uint) -> CUresult;
        cuDriverGetVersion @ 2020: fn(version: *mut c_int) -> CUresult;
        cuGetErrorName @ 6000: fn(error: CUresult, name: *mut *const c_char) -> CUresult;
        cuGetErrorString @ 6000: fn(error: CUresult, text: *mut *const c_char) -> CUresult;

        // Devices
        cuDeviceGetCount @ 2000: fn(count: *mut c_int) -> CUresult;
        cuDeviceGet @ 2000: fn(device: *mut CUdevice, ordinal: c_int) -> CUresult;
        cuDeviceGetName @ 2000: fn(name: *mut c_char, len: c_int, device: CUdevice) -> CUresult;
        cuDeviceGetUuid @ 11040: fn(uuid: *mut CUuuid, device: CUdevice) -> CUresult;
        cuDeviceGetAttribute @ 2000: fn(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice) -> CUresult;

        // Contexts
        cuDevicePrimaryCtxRetain @ 7000: fn(context: *mut CUcontext, device: CUdevice) -> CUresult;
        cuDevicePrimaryCtxRelease @ 11000: fn(device: CUdevice) -> CUresult;
        cuCtxPushCurrent @ 4000: fn(context: CUcontext) -> CUresult;
        cuCtxPopCurrent @ 4000: fn(context: *mut CUcontext) -> CUresult;
        cuCtxGetCurrent @ 4000: fn(context: *mut CUcontext) -> CUresult;

        // Memory: allocations, copies, fills
        cuMemAlloc @ 3020: fn(address: *mut CUdeviceptr, bytes: usize) -> CUresult;
        cuMemFree @ 3020: fn(address: CUdeviceptr) -> CUresult;

        // Streams and events
        cuStreamSynchronize @ 2000: fn(stream: CUstream) -> CUresult;

        // Code
        cuModuleLoadDataEx @ 2010:
            fn(module: *mut CUmodule, image: *const c_void, count: c_uint, options: *mut CUjit_option,
                values: *mut *mut c_void) -> CUresult;
        cuModuleUnload @ 2000: fn(module: CUmodule) -> CUresult;
        cuModuleGetFunction @ 2000: fn(function: *mut CUfunction, module: CUmodule, name: *const c_char) -> CUresult;
        cuLaunchKernel @ 4000:
            fn(function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
                block_z: c_uint, shared_bytes: c_uint, stream: CUstream, params: *mut *mut c_void,
                extra: *mut *mut c_void) -> CUresult;
    }
    optional {
        // Devices
        cuDeviceCanAccessPeer @ 4000: fn(can: *mut c_int, device: CUdevice, peer: CUdevice) -> CUresult;
        cuDeviceGetP2PAttribute @ 8000:
            fn(value: *mut c_int, attribute: CUdevice_P2PAttribute, source: CUdevice, destination: CUdevice) -> CUresult;
        cuDeviceTotalMem @ 3020: fn(bytes: *mut usize, device: CUdevice) -> CUresult;

        // Contexts
        cuCtxSetCurrent @ 4000: fn(context: CUcontext) -> CUresult;
        cuCtxGetDevice @ 2000: fn(device: *mut CUdevice) -> CUresult;
        cuCtxSynchronize @ 2000: fn() -> CUresult;
        cuCtxGetId @ 12000: fn(context: CUcontext, id: *mut u64) -> CUresult;

        // Memory: allocations, copies, fills
        cuMemHostAlloc @ 2020: fn(pointer: *mut *mut c_void, bytes: usize, flags: CUmemHostAlloc_flags) -> CUresult;
        cuMemFreeHost @ 2000: fn(pointer: *mut c_void) -> CUresult;
        cuMemHostGetDevicePointer @ 3020: fn(address: *mut CUdeviceptr, pointer: *mut c_void, flags: c_uint) -> CUresult;
        cuMemcpyHtoD @ 3020: fn(to: CUdeviceptr, from: *const c_void, bytes: usize) -> CUresult;
        cuMemcpyDtoH @ 3020: fn(to: *mut c_void, from: CUdeviceptr, bytes: usize) -> CUresult;
        cuMemcpyHtoDAsync @ 3020: fn(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream) -> CUresult;
        cuMemcpyDtoHAsync @ 3020: fn(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream) -> CUresult;
        cuMemcpyDtoDAsync @ 3020: fn(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream) -> CUresult;
        cuMemsetD8Async @ 3020: fn(address: CUdeviceptr, value: u8, count: usize, stream: CUstream) -> CUresult;
        cuMemsetD32Async @ 3020: fn(address: CUdeviceptr, value: c_uint, count: usize, stream: CUstream) -> CUresult;
        cuPointerGetAttribute @ 4000:
            fn(data: *mut c_void, attribute: CUpointer_attribute, address: CUdeviceptr) -> CUresult;
        cuMemGetAddressRange @ 3020: fn(base: *mut CUdeviceptr, bytes: *mut usize, address: CUdeviceptr) -> CUresult;

        // Memory: physical allocations and mappings
        cuMemCreate @ 10020:
            fn(handle: *mut CUmemGenericAllocationHandle, bytes: usize, prop: *const CUmemAllocationProp, flags: u64)
                -> CUresult;
        cuMemRelease @ 10020: fn(handle: CUmemGenericAllocationHandle) -> CUresult;
        cuMemAddressReserve @ 10020:
            fn(address: *mut CUdeviceptr, bytes: usize, alignment: usize, hint: CUdeviceptr, flags: u64) -> CUresult;
        cuMemAddressFree @ 10020: fn(address: CUdeviceptr, bytes: usize) -> CUresult;
        cuMemMap @ 10020:
            fn(address: CUdeviceptr, bytes: usize, offset: usize, handle: CUmemGenericAllocationHandle, flags: u64)
                -> CUresult;
        cuMemUnmap @ 10020: fn(address: CUdeviceptr, bytes: usize) -> CUresult;
        cuMemSetAccess @ 10020:
            fn(address: CUdeviceptr, bytes: usize, access: *const CUmemAccessDesc, count: usize) -> CUresult;
        cuMemGetAccess @ 10020: fn(flags: *mut u64, location: *const CUmemLocation, address: CUdeviceptr) -> CUresult;
        cuMemGetAllocationGranularity @ 10020:
            fn(bytes: *mut usize, prop: *const CUmemAllocationProp, option: CUmemAllocationGranularity_flags) -> CUresult;
        cuMemRetainAllocationHandle @ 11000:
            fn(handle: *mut CUmemGenericAllocationHandle, address: *mut c_void) -> CUresult;
        cuMemExportToShareableHandle @ 10020:
            fn(shareable: *mut c_void, handle: CUmemGenericAllocationHandle, kind: CUmemAllocationHandleType, flags: u64)
                -> CUresult;
        cuMemImportFromShareableHandle @ 10020:
            fn(handle: *mut CUmemGenericAllocationHandle, os_handle: *mut c_void, kind: CUmemAllocationHandleType)
                -> CUresult;

        // Streams and events
        cuStreamCreate @ 2000: fn(stream: *mut CUstream, flags: CUstream_flags) -> CUresult;
        cuStreamDestroy @ 4000: fn(stream: CUstream) -> CUresult;
        cuStreamQuery @ 2000: fn(stream: CUstream) -> CUresult;
        cuStreamGetId @ 12000: fn(stream: CUstream, id: *mut u64) -> CUresult;
        cuStreamWaitEvent @ 3020: fn(stream: CUstream, event: CUevent, flags: CUevent_wait_flags) -> CUresult;
        cuLaunchHostFunc @ 10000: fn(stream: CUstream, function: CUhostFn, user_data: *mut c_void) -> CUresult;
        cuEventCreate @ 2000: fn(event: *mut CUevent, flags: CUevent_flags) -> CUresult;
        cuEventDestroy @ 4000: fn(event: CUevent) -> CUresult;
        cuEventRecord @ 2000: fn(event: CUevent, stream: CUstream) -> CUresult;
        cuEventQuery @ 2000: fn(event: CUevent) -> CUresult;
        cuEventSynchronize @ 2000: fn(event: CUevent) -> CUresult;
        cuEventElapsedTime @ 2000: fn(milliseconds: *mut f32, start: CUevent, end: CUevent) -> CUresult;

        // Capture
        cuStreamIsCapturing @ 10000: fn(stream: CUstream, status: *mut CUstreamCaptureStatus) -> CUresult;
        cuStreamBeginCapture @ 10010: fn(stream: CUstream, mode: CUstreamCaptureMode) -> CUresult;
        cuStreamEndCapture @ 10000: fn(stream: CUstream, graph: *mut CUgraph) -> CUresult;
        cuThreadExchangeStreamCaptureMode @ 10010: fn(mode: *mut CUstreamCaptureMode) -> CUresult;
        cuStreamGetCaptureInfo @ 11030:
            fn(stream: CUstream, status: *mut CUstreamCaptureStatus, id: *mut u64, graph: *mut CUgraph,
                dependencies: *mut *const CUgraphNode, count: *mut usize) -> CUresult;
        cuStreamGetCaptureInfo_v3 as cuStreamGetCaptureInfo @ 12030:
            fn(stream: CUstream, status: *mut CUstreamCaptureStatus, id: *mut u64, graph: *mut CUgraph,
                dependencies: *mut *const CUgraphNode, data: *mut *const CUgraphEdgeData, count: *mut usize) -> CUresult;

        // Code
        cuModuleGetGlobal @ 3020:
            fn(address: *mut CUdeviceptr, bytes: *mut usize, module: CUmodule, name: *const c_char) -> CUresult;
        cuFuncGetAttribute @ 2020:
            fn(value: *mut c_int, attribute: CUfunction_attribute, function: CUfunction) -> CUresult;
        cuFuncLoad @ 12040: fn(function: CUfunction) -> CUresult;
        cuFuncGetParamInfo @ 12040:
            fn(function: CUfunction, index: usize, offset: *mut usize, bytes: *mut usize) -> CUresult;
        cuFuncGetName @ 12030: fn(name: *mut *const c_char, function: CUfunction) -> CUresult;
        cuLaunchKernelEx @ 11060:
            fn(config: *const CUlaunchConfig, function: CUfunction, params: *mut *mut c_void, extra: *mut *mut c_void)
                -> CUresult;
        cuOccupancyMaxActiveBlocksPerMultiprocessor @ 6050:
            fn(blocks: *mut c_int, function: CUfunction, block_size: c_int, shared_bytes: usize) -> CUresult;

        // Graphs
        cuGraphCreate @ 10000: fn(graph: *mut CUgraph, flags: c_uint) -> CUresult;
        cuGraphDestroy @ 10000: fn(graph: CUgraph) -> CUresult;
        cuGraphGetNodes @ 10000: fn(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) -> CUresult;
        cuGraphGetEdges @ 10000:
            fn(graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, count: *mut usize) -> CUresult;
        cuGraphGetEdges_v2 as cuGraphGetEdges @ 12030:
            fn(graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, data: *mut CUgraphEdgeData,
                count: *mut usize) -> CUresult;
        cuGraphNodeGetType @ 10000: fn(node: CUgraphNode, kind: *mut CUgraphNodeType) -> CUresult;
        cuGraphAddKernelNode @ 12000:
            fn(node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, count: usize,
                params: *const CUDA_KERNEL_NODE_PARAMS_v2) -> CUresult;
        cuGraphKernelNodeGetParams @ 12000: fn(node: CUgraphNode, params: *mut CUDA_KERNEL_NODE_PARAMS_v2) -> CUresult;
        cuGraphInstantiateWithFlags @ 11040:
            fn(exec: *mut CUgraphExec, graph: CUgraph, flags: CUgraphInstantiate_flags) -> CUresult;
        cuGraphExecDestroy @ 10000: fn(exec: CUgraphExec) -> CUresult;
        cuGraphLaunch @ 10000: fn(exec: CUgraphExec, stream: CUstream) -> CUresult;
        cuGraphUpload @ 11010: fn(exec: CUgraphExec, stream: CUstream) -> CUresult;
        cuUserObjectCreate @ 11030:
            fn(object: *mut CUuserObject, pointer: *mut c_void, destroy: CUhostFn, references: c_uint,
                flags: CUuserObject_flags) -> CUresult;
        cuUserObjectRelease @ 11030: fn(object: CUuserObject, count: c_uint) -> CUresult;
        cuUserObjectRetain @ 11030: fn(object: CUuserObject, count: c_uint) -> CUresult;
        cuGraphRetainUserObject @ 11030:
            fn(graph: CUgraph, object: CUuserObject, count: c_uint, flags: CUuserObjectRetain_flags) -> CUresult;
        cuGraphKernelNodeGetAttribute @ 11000:
            fn(node: CUgraphNode, attribute: CUlaunchAttributeID, value: *mut CUlaunchAttributeValue) -> CUresult;
        cuGraphMemcpyNodeGetParams @ 10000: fn(node: CUgraphNode, params: *mut CUDA_MEMCPY3D) -> CUresult;
        cuGraphMemsetNodeGetParams @ 10000: fn(node: CUgraphNode, params: *mut CUDA_MEMSET_NODE_PARAMS) -> CUresult;
        cuGraphHostNodeGetParams @ 10000: fn(node: CUgraphNode, params: *mut CUDA_HOST_NODE_PARAMS) -> CUresult;
        cuGraphChildGraphNodeGetGraph @ 10000: fn(node: CUgraphNode, graph: *mut CUgraph) -> CUresult;
        cuGraphEventRecordNodeGetEvent @ 11010: fn(node: CUgraphNode, event: *mut CUevent) -> CUresult;
        cuGraphEventWaitNodeGetEvent @ 11010: fn(node: CUgraphNode, event: *mut CUevent) -> CUresult;
        cuGraphMemFreeNodeGetParams @ 11040: fn(node: CUgraphNode, address: *mut CUdeviceptr) -> CUresult;
        cuKernelGetFunction @ 12000: fn(function: *mut CUfunction, kernel: CUkernel) -> CUresult;

        // Private to the emulated driver: absent, and asked for without a version, on every other
        slabfenceEmuVersion @ 0: fn() -> u32;
        slabfenceEmuAnnounceRange @ 0: fn(note: *const RangeNote) -> CUresult;
    }
}
