//! A driver for unit tests: it writes down every call, keeps the thread's context stack and capture mode, and fails where
//! it is told to. It has no memory behind its addresses.

#![allow(non_snake_case, reason = "stubs keep the driver's spelling")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "each stub writes through the out-parameters that the wrapper under test passes"
)]

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::IntoRawFd;

use slabfence_sys::*;

use super::{Device, Driver};

/// What the fake's devices have as their granularity.
pub(crate) const GRANULE: usize = 1 << 16;
/// First address that the fake reserves.
pub(crate) const ADDRESS: u64 = 1 << 40;

#[derive(Default)]
struct State {
    log: Vec<String>,
    fail: HashMap<&'static str, CUresult>,
    contexts: Vec<CUcontext>,
    mode: CUstreamCaptureMode,
    handles: usize,
    reserved: u64,
    capturing: bool,
    user_objects: Vec<(usize, CUhostFn)>,
    graphs_holding: usize,
    in_callback: bool,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

fn with<T>(f: impl FnOnce(&mut State) -> T) -> T {
    STATE.with(|state| f(&mut state.borrow_mut()))
}

/// Makes the next calls of `call` on this thread return `code`; success lets them work again.
pub(crate) fn fail(call: &'static str, code: CUresult) {
    with(|state| state.fail.insert(call, code));
}

/// The calls since the last time, with what matters of their arguments.
pub(crate) fn log() -> Vec<String> {
    with(|state| core::mem::take(&mut state.log))
}

/// The calls since the last time, without those that only prepare the thread.
pub(crate) fn calls() -> Vec<String> {
    let quiet = [
        "cuCtxGetCurrent",
        "cuCtxPushCurrent",
        "cuCtxPopCurrent",
        "cuThreadExchangeStreamCaptureMode",
        "cuGetErrorName",
        "cuGetErrorString",
    ];
    let mut calls = log();
    calls.retain(|call| !quiet.iter().any(|name| call.starts_with(name)));
    calls
}

/// This thread's contexts, bottom first, and capture mode.
pub(crate) fn thread_state() -> (Vec<CUcontext>, CUstreamCaptureMode) {
    with(|state| (state.contexts.clone(), state.mode))
}

/// Makes a context of the host's own current.
pub(crate) fn push_foreign() -> CUcontext {
    let context = CUcontext::from_ptr(core::ptr::without_provenance_mut(0xf0));
    with(|state| state.contexts.push(context));
    context
}

/// Sets the host's capture mode.
pub(crate) fn set_mode(mode: CUstreamCaptureMode) {
    with(|state| state.mode = mode);
}

/// Runs the destructors of all user objects, as the driver does when the last graph that holds them dies.
pub(crate) fn end_graphs() {
    let objects = with(|state| core::mem::take(&mut state.user_objects));
    with(|state| state.in_callback = true);
    for (word, destroy) in objects {
        let word = core::ptr::with_exposed_provenance_mut(word);
        unsafe { destroy.expect("a destructor")(word) };
    }
    with(|state| state.in_callback = false);
}

/// Whether this thread is in a driver callback, where no driver call may be made.
pub(crate) fn in_callback() -> bool {
    with(|state| state.in_callback)
}

/// How many references to user objects graphs were given.
pub(crate) fn graphs_holding() -> usize {
    with(|state| state.graphs_holding)
}

/// Its function table.
pub(crate) fn driver_api() -> Api {
    unsafe { Api::load(&mut resolve) }.expect("every required entry is there")
}

/// A driver with two devices, and nothing logged.
pub(crate) fn driver() -> Driver {
    let driver = Driver::from_api(driver_api()).expect("cuInit works");
    log();
    driver
}

/// Its first device, and nothing logged.
pub(crate) fn device() -> Device {
    let device = Device::open(&driver(), 0).expect("device 0 opens");
    log();
    device
}

fn enter(call: &'static str, words: String) -> CUresult {
    with(|state| {
        let space = if words.is_empty() { "" } else { " " };
        state.log.push(format!("{call}{space}{words}"));
        let code = state.fail.get(call).copied();
        code.unwrap_or(CUresult::CUDA_SUCCESS)
    })
}

fn handle() -> *mut c_void {
    with(|state| {
        state.handles += 1;
        core::ptr::without_provenance_mut(state.handles)
    })
}

fn number(handle: *mut c_void) -> usize {
    handle.addr()
}

macro_rules! stubs {
    ($( $name:ident($($arg:ident: $type:ty),*) $(logs($($words:tt)*))? $body:block )*) => {
        $(
            unsafe extern "C" fn $name($($arg: $type),*) -> CUresult {
                let words = String::new() $( + &format!($($words)*) )?;
                let code = enter(stringify!($name), words);
                if code.is_success() { $body }
                code
            }
        )*

        fn resolve(name: &CStr, _version: c_int) -> *const c_void {
            match name.to_str().unwrap_or_default() {
                $( stringify!($name) => { let stub: pfn::$name = $name; stub as *const c_void } )*
                "cuGetErrorName" => cuGetErrorName as *const c_void,
                "cuGetErrorString" => cuGetErrorString as *const c_void,
                _ => core::ptr::null(),
            }
        }
    };
}

stubs! {
    cuInit(_flags: c_uint) {}
    cuDriverGetVersion(version: *mut c_int) { unsafe { *version = 12040 } }
    cuDeviceGetCount(count: *mut c_int) { unsafe { *count = 2 } }
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int) { unsafe { *device = CUdevice(ordinal) } }
    cuDeviceGetName(name: *mut c_char, len: c_int, _device: CUdevice) {
        let text = c"FAKE";
        assert!(len as usize >= text.count_bytes());
        unsafe { core::ptr::copy_nonoverlapping(text.as_ptr(), name, text.count_bytes() + 1) }
    }
    cuDeviceGetUuid(uuid: *mut CUuuid, device: CUdevice) { unsafe { (*uuid).bytes = [device.0 as u8; 16] } }
    cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, _device: CUdevice) {
        unsafe { *value = match attribute {
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => 7,
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => 9,
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => 0,
            _ => 1,
        } }
    }
    cuDeviceTotalMem(bytes: *mut usize, _device: CUdevice) { unsafe { *bytes = 1 << 30 } }
    cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice) logs("{} {}", device.0, peer.0) {
        unsafe { *can = 1 }
    }
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice) {
        unsafe { *context = CUcontext::from_ptr(core::ptr::without_provenance_mut(0xc0 + device.0 as usize)) }
    }
    cuDevicePrimaryCtxRelease(device: CUdevice) logs("{}", device.0) {}
    cuCtxPushCurrent(context: CUcontext) { with(|state| state.contexts.push(context)) }
    cuCtxPopCurrent(context: *mut CUcontext) {
        unsafe { *context = with(|state| state.contexts.pop()).unwrap_or_default() }
    }
    cuCtxGetCurrent(context: *mut CUcontext) {
        unsafe { *context = with(|state| state.contexts.last().copied()).unwrap_or_default() }
    }
    cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode) {
        with(|state| core::mem::swap(&mut state.mode, unsafe { &mut *mode }))
    }
    cuMemGetAllocationGranularity(
        bytes: *mut usize, _prop: *const CUmemAllocationProp, _option: CUmemAllocationGranularity_flags
    ) { unsafe { *bytes = GRANULE } }
    cuMemCreate(handle: *mut CUmemGenericAllocationHandle, bytes: usize, _prop: *const CUmemAllocationProp, _flags: u64)
        logs("{bytes}") { unsafe { *handle = CUmemGenericAllocationHandle(77) } }
    cuMemRelease(handle: CUmemGenericAllocationHandle) logs("{}", handle.0) {}
    cuMemAddressReserve(address: *mut CUdeviceptr, bytes: usize, _alignment: usize, _hint: CUdeviceptr, _flags: u64)
        logs("{bytes}") {
        let offset = with(|state| { let at = state.reserved; state.reserved += bytes as u64; at });
        unsafe { *address = CUdeviceptr(ADDRESS + offset) }
    }
    cuMemAddressFree(address: CUdeviceptr, bytes: usize) logs("{:#x} {bytes}", address.0) {}
    cuMemMap(address: CUdeviceptr, bytes: usize, offset: usize, handle: CUmemGenericAllocationHandle, _flags: u64)
        logs("{:#x} {bytes} {offset} {}", address.0, handle.0) {}
    cuMemExportToShareableHandle(
        to: *mut c_void, handle: CUmemGenericAllocationHandle, kind: CUmemAllocationHandleType, flags: u64
    ) logs("{} {} {flags}", handle.0, kind.bits()) {
        let memory = rustix::fs::memfd_create("fake", rustix::fs::MemfdFlags::empty()).expect("a descriptor");
        unsafe { *to.cast::<c_int>() = memory.into_raw_fd() }
    }
    cuMemImportFromShareableHandle(
        handle: *mut CUmemGenericAllocationHandle, _descriptor: *mut c_void, kind: CUmemAllocationHandleType
    ) logs("{}", kind.bits()) { unsafe { *handle = CUmemGenericAllocationHandle(78) } }
    cuMemUnmap(address: CUdeviceptr, bytes: usize) logs("{:#x} {bytes}", address.0) {}
    cuMemSetAccess(address: CUdeviceptr, bytes: usize, access: *const CUmemAccessDesc, count: usize)
        logs("{:#x} {bytes} {} {:?} {count}", address.0, unsafe { (*access).location.id }, unsafe { (*access).flags }) {}
    cuMemsetD8Async(address: CUdeviceptr, value: u8, count: usize, _stream: CUstream)
        logs("{:#x} {value} {count}", address.0) {}
    cuMemcpyHtoDAsync(to: CUdeviceptr, _from: *const c_void, bytes: usize, _stream: CUstream)
        logs("{:#x} {bytes}", to.0) {}
    cuMemcpyDtoHAsync(_to: *mut c_void, from: CUdeviceptr, bytes: usize, _stream: CUstream)
        logs("{:#x} {bytes}", from.0) {}
    cuMemHostAlloc(host: *mut *mut c_void, bytes: usize, _flags: CUmemHostAlloc_flags) logs("{bytes}") {
        // Words, which the caller accesses as such. The fake does not free them.
        let words = vec![0u64; bytes.div_ceil(8)].leak();
        unsafe { *host = words.as_mut_ptr().cast() }
    }
    cuMemFreeHost(_host: *mut c_void) {}
    cuMemHostGetDevicePointer(address: *mut CUdeviceptr, host: *mut c_void, _flags: c_uint) {
        unsafe { *address = CUdeviceptr(host.addr() as u64) }
    }
    cuMemAlloc(address: *mut CUdeviceptr, bytes: usize) logs("{bytes}") { unsafe { *address = CUdeviceptr(4096) } }
    cuMemFree(address: CUdeviceptr) logs("{}", address.0) {}
    cuStreamCreate(stream: *mut CUstream, flags: CUstream_flags) logs("{}", flags.bits()) {
        unsafe { *stream = CUstream::from_ptr(handle()) }
    }
    cuStreamDestroy(_stream: CUstream) {}
    cuStreamSynchronize(_stream: CUstream) {}
    cuStreamQuery(_stream: CUstream) {}
    cuStreamBeginCapture(_stream: CUstream, _mode: CUstreamCaptureMode) { with(|state| state.capturing = true) }
    cuStreamEndCapture(_stream: CUstream, graph: *mut CUgraph) {
        with(|state| state.capturing = false);
        unsafe { *graph = CUgraph::from_ptr(handle()) }
    }
    cuStreamGetCaptureInfo(
        _stream: CUstream, status: *mut CUstreamCaptureStatus, id: *mut u64, graph: *mut CUgraph,
        _dependencies: *mut *const CUgraphNode, _count: *mut usize
    ) {
        if with(|state| state.capturing) {
            unsafe { *status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE };
            unsafe { *id = 5 };
            unsafe { *graph = CUgraph::from_ptr(core::ptr::without_provenance_mut(0x99)) };
        }
    }
    cuEventCreate(event: *mut CUevent, _flags: CUevent_flags) { unsafe { *event = CUevent::from_ptr(handle()) } }
    cuEventDestroy(_event: CUevent) {}
    cuModuleLoadDataEx(
        module: *mut CUmodule, image: *const c_void, count: c_uint, options: *mut CUjit_option, values: *mut *mut c_void
    ) {
        let text = unsafe { CStr::from_ptr(image.cast()) };
        if text.to_bytes().starts_with(b"broken") {
            assert_eq!((count, unsafe { *options }), (2, CUjit_option::CU_JIT_ERROR_LOG_BUFFER));
            let said = c"ptxas: line 1: no";
            unsafe { core::ptr::copy_nonoverlapping(said.as_ptr(), (*values).cast(), said.count_bytes()) };
            return CUresult::CUDA_ERROR_INVALID_PTX;
        }
        unsafe { *module = CUmodule::from_ptr(handle()) }
    }
    cuModuleUnload(_module: CUmodule) {}
    cuModuleGetFunction(function: *mut CUfunction, _module: CUmodule, name: *const c_char) {
        if unsafe { CStr::from_ptr(name) } == c"absent" {
            return CUresult::CUDA_ERROR_NOT_FOUND;
        }
        unsafe { *function = CUfunction::from_ptr(handle()) }
    }
    cuFuncLoad(_function: CUfunction) {}
    cuFuncGetParamInfo(_function: CUfunction, index: usize, offset: *mut usize, bytes: *mut usize) {
        if index > 0 {
            return CUresult::CUDA_ERROR_INVALID_VALUE;
        }
        unsafe { *offset = 0 };
        unsafe { *bytes = 128 };
    }
    cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int, _function: CUfunction, block: c_int, _shared: usize
    ) { unsafe { *blocks = 2048 / block } }
    cuLaunchKernel(
        _function: CUfunction, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        _stream: CUstream, params: *mut *mut c_void, _extra: *mut *mut c_void
    ) logs("{gx}x{gy}x{gz} {bx}x{by}x{bz} {shared} {:#x}", unsafe { *(*params).cast::<u64>() }) {}
    cuGraphDestroy(_graph: CUgraph) {}
    cuGraphInstantiateWithFlags(exec: *mut CUgraphExec, _graph: CUgraph, _flags: CUgraphInstantiate_flags) {
        unsafe { *exec = CUgraphExec::from_ptr(handle()) }
    }
    cuGraphExecDestroy(_exec: CUgraphExec) {}
    cuUserObjectCreate(
        object: *mut CUuserObject, pointer: *mut c_void, destroy: CUhostFn, references: c_uint, flags: CUuserObject_flags
    ) logs("{references} {}", flags.bits()) {
        with(|state| state.user_objects.push((pointer.expose_provenance(), destroy)));
        unsafe { *object = CUuserObject::from_ptr(handle()) }
    }
    cuUserObjectRelease(object: CUuserObject, _count: c_uint) {
        assert_ne!(number(object.as_ptr()), 0);
        end_graphs();
    }
    cuGraphRetainUserObject(graph: CUgraph, _object: CUuserObject, count: c_uint, flags: CUuserObjectRetain_flags)
        logs("{:#x} {count} {}", number(graph.as_ptr()), flags.bits()) {
        with(|state| state.graphs_holding += count as usize)
    }
}

unsafe extern "C" fn cuGetErrorName(error: CUresult, name: *mut *const c_char) -> CUresult {
    if error != CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        return CUresult::CUDA_ERROR_INVALID_VALUE;
    }
    unsafe { *name = c"CUDA_ERROR_OUT_OF_MEMORY".as_ptr() };
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn cuGetErrorString(error: CUresult, text: *mut *const c_char) -> CUresult {
    if error != CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        return CUresult::CUDA_ERROR_INVALID_VALUE;
    }
    unsafe { *text = c"out of memory".as_ptr() };
    CUresult::CUDA_SUCCESS
}
