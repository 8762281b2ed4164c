//! Memory in stream order.

use std::ffi::c_void;
use std::sync::mpsc::{Receiver, Sender, channel};

use cudarc::driver::sys::{self, CUmemPool_attribute as A};

use super::{bytes, context};

/// Blocks its stream until the other end of the channel goes.
unsafe extern "C" fn wait(until: *mut c_void) {
    // SAFETY: the box that the test gave for this one call.
    let until = unsafe { Box::from_raw(until.cast::<Receiver<()>>()) };
    let _ = until.recv();
}

/// Holds a stream up until what this gives is dropped.
fn hold(stream: sys::CUstream) -> Sender<()> {
    let (release, until) = channel::<()>();
    ok!(sys::cuLaunchHostFunc(
        stream,
        Some(wait),
        Box::into_raw(Box::new(until)).cast()
    ));
    release
}

guest_test! {
    fn memory_is_freed_when_its_stream_comes_to_it() {
        let context = context(0);
        let stream = context.new_stream().unwrap();
        let on = stream.cu_stream();
        let (free, _) = context.mem_get_info().unwrap();
        let mut at = 0;
        ok!(sys::cuMemAllocAsync(&mut at, 1 << 20, on));
        let held = hold(on);
        ok!(sys::cuMemsetD8Async(at, 3, 16, on));
        ok!(sys::cuMemFreeAsync(at, on));
        assert_eq!(context.mem_get_info().unwrap().0, free - (1 << 20));
        // It is on its way out, and freed once.
        refused!(CUDA_ERROR_INVALID_VALUE, sys::cuMemFreeAsync(at, on));
        refused!(CUDA_ERROR_INVALID_VALUE, sys::cuMemFree_v2(at));
        drop(held);
        stream.synchronize().unwrap();
        assert_eq!(context.mem_get_info().unwrap().0, free);
        refused!(CUDA_ERROR_INVALID_VALUE, sys::cuMemFreeAsync(at, on));
    }
}

guest_test! {
    fn a_pool_gives_memory_of_its_device_to_any_stream() {
        let (_there, here) = (context(1), context(0));
        let (mut pool, mut at, mut of) = (std::ptr::null_mut(), 0, 9);
        ok!(sys::cuDeviceGetDefaultMemPool(&mut pool, 1));
        let stream = here.new_stream().unwrap();
        ok!(sys::cuMemAllocFromPoolAsync(&mut at, 64, pool, stream.cu_stream()));
        let ordinal = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
        ok!(sys::cuPointerGetAttribute((&raw mut of).cast(), ordinal, at));
        assert_eq!(of, 1);
        ok!(sys::cuDeviceSetMemPool(1, pool));
        refused!(CUDA_ERROR_INVALID_VALUE, sys::cuDeviceSetMemPool(0, pool));
        ok!(sys::cuMemFree_v2(at));
    }
}

guest_test! {
    fn a_pools_attributes_are_told_again() {
        let _context = context(0);
        let mut pool = std::ptr::null_mut();
        ok!(sys::cuDeviceGetMemPool(&mut pool, 0));
        let mut bytes = u64::MAX;
        let (threshold, of) = (A::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, (&raw mut bytes).cast());
        ok!(sys::cuMemPoolSetAttribute(pool, threshold, of));
        bytes = 0;
        ok!(sys::cuMemPoolGetAttribute(pool, threshold, of));
        assert_eq!(bytes, u64::MAX);
        refused!(CUDA_ERROR_INVALID_VALUE, sys::cuMemPoolGetAttribute(pool, A::CU_MEMPOOL_ATTR_USED_MEM_HIGH, of));
        ok!(sys::cuMemPoolTrimTo(pool, 0));
    }
}

guest_test! {
    fn a_capture_neither_allocates_nor_frees() {
        let context = context(0);
        let stream = context.new_stream().unwrap();
        let (on, mut at) = (stream.cu_stream(), 0);
        ok!(sys::cuMemAllocAsync(&mut at, 64, on));
        stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).unwrap();
        let mut other = 0;
        refused!(CUDA_ERROR_NOT_SUPPORTED, sys::cuMemAllocAsync(&mut other, 64, on));
        refused!(CUDA_ERROR_NOT_SUPPORTED, sys::cuMemFreeAsync(at, on));
        let mut graph = std::ptr::null_mut();
        ok!(sys::cuStreamEndCapture(on, &mut graph));
        ok!(sys::cuMemsetD8_v2(at, 1, 64));
        assert_eq!(bytes(at, 1), [1]);
        ok!(sys::cuMemFreeAsync(at, on));
    }
}
