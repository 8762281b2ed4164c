//! Stands in for the driver calls of an enqueue, on threads that ask for it.

#![allow(unsafe_code, reason = "stands in for C functions")]

use std::cell::Cell;
use std::ffi::{c_uint, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::OnceLock;

use slabfence::sys::{
    Api, CUcontext, CUfunction, CUgraph, CUgraphEdgeData, CUgraphNode, CUresult, CUstream,
    CUstreamCaptureStatus,
};

thread_local! {
    /// The context that is current while the calls of this thread are stubs.
    static CURRENT: Cell<Option<CUcontext>> = const { Cell::new(None) };
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// The driver calls of this thread are stubs while this lives.
pub struct On(PhantomData<*const ()>);

impl On {
    /// With this context current, as it is in a thread that serves one device.
    pub fn new(current: CUcontext) -> Self {
        CURRENT.set(Some(current));
        Self(PhantomData)
    }
}

impl Drop for On {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

/// Stubs that this thread has called.
pub fn calls() -> u64 {
    CALLS.get()
}

/// The table that the stubs stand before.
static REAL: OnceLock<Api> = OnceLock::new();

macro_rules! stubs {
    ($($real:expr => $entry:ident($($name:ident: $type:ty),* $(,)?) $body:expr;)*) => {
        $(
            unsafe extern "C" fn $entry($($name: $type),*) -> CUresult {
                if let Some(current) = CURRENT.get() {
                    CALLS.set(CALLS.get() + 1);
                    let body: fn(CUcontext, $($type),*) = $body;
                    body(current, $($name),*);
                    return CUresult::CUDA_SUCCESS;
                }
                let real: fn(&Api) -> Option<unsafe extern "C" fn($($type),*) -> CUresult> = $real;
                match REAL.get().and_then(real) {
                    // SAFETY: the caller's arguments, handed on as they are.
                    Some(function) => unsafe { function($($name),*) },
                    None => CUresult::CUDA_ERROR_NOT_SUPPORTED,
                }
            }
        )*
    };
}

stubs! {
    |api| Some(api.cuCtxGetCurrent) => get_current(context: *mut CUcontext) |current, context| {
        // SAFETY: the caller's live out-parameter.
        unsafe { context.write(current) }
    };
    |api| api.cuStreamGetCaptureInfo_v3 => get_capture_info(
        stream: CUstream, status: *mut CUstreamCaptureStatus, id: *mut u64, graph: *mut CUgraph,
        nodes: *mut *const CUgraphNode, edges: *mut *const CUgraphEdgeData, count: *mut usize,
    ) |_, _, status, _, _, _, _, _| {
        // SAFETY: the caller's live out-parameter.
        unsafe { status.write(CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE) }
    };
    |api| Some(api.cuLaunchKernel) => launch_kernel(
        function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
        block_z: c_uint, shared: c_uint, stream: CUstream, params: *mut *mut c_void, extra: *mut *mut c_void,
    ) |_, _, _, _, _, _, _, _, _, _, _, _| {};
}

/// Puts the stubs into the table.
pub fn place(api: &mut Api) {
    REAL.get_or_init(|| api.clone());
    api.cuCtxGetCurrent = get_current;
    api.cuStreamGetCaptureInfo_v3 = Some(get_capture_info);
    api.cuLaunchKernel = launch_kernel;
}

/// The launch call alone.
pub fn launch(stream: CUstream) -> Result<(), CUresult> {
    let function = CUfunction::null();
    // SAFETY: the stub does nothing with what it gets.
    let code = unsafe {
        launch_kernel(
            function,
            1,
            1,
            1,
            288,
            1,
            1,
            0,
            stream,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    };
    match code.is_success() {
        true => Ok(()),
        false => Err(code),
    }
}
