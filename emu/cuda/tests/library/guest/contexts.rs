//! Contexts, devices, streams and events.

use std::ffi::CStr;

use cudarc::driver::sys::{self, CUlimit};

use super::context;

guest_test! {
    fn settings_of_a_context_are_told_again() {
        let context = context(0);
        assert_eq!(context.get_limit(CUlimit::CU_LIMIT_STACK_SIZE), Ok(1024));
        context.set_limit(CUlimit::CU_LIMIT_STACK_SIZE, 4096).unwrap();
        assert_eq!(context.get_limit(CUlimit::CU_LIMIT_STACK_SIZE), Ok(4096));
        // Devices of compute capability 9.0 have no such limit.
        let depth = context.get_limit(CUlimit::CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH).unwrap_err();
        assert_eq!(depth.0, sys::CUresult::CUDA_ERROR_UNSUPPORTED_LIMIT);
        let shared = sys::CUfunc_cache::CU_FUNC_CACHE_PREFER_SHARED;
        context.set_cache_config(shared).unwrap();
        assert_eq!(context.get_cache_config(), Ok(shared));
        ok!(sys::cuCtxSetFlags(sys::CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC as u32));
        let mut flags = 0;
        ok!(sys::cuCtxGetFlags(&mut flags));
        assert_eq!(flags, 4);
        refused!(CUDA_ERROR_INVALID_VALUE, sys::cuCtxSetFlags(0x100));
    }
}

guest_test! {
    fn a_reset_ends_a_context_however_often_it_is_retained() {
        let context = context(0);
        let state = || {
            let (mut flags, mut active) = (9, 9);
            ok!(sys::cuDevicePrimaryCtxGetState(0, &mut flags, &mut active));
            (flags, active)
        };
        ok!(sys::cuDevicePrimaryCtxSetFlags_v2(0, 2));
        let mut again = std::ptr::null_mut();
        ok!(sys::cuDevicePrimaryCtxRetain(&mut again, 0));
        assert_eq!((again, state()), (context.cu_ctx(), (2, 1)));
        context.set_limit(CUlimit::CU_LIMIT_STACK_SIZE, 4096).unwrap();
        ok!(sys::cuDevicePrimaryCtxReset_v2(0));
        assert_eq!(state(), (2, 0));
        refused!(CUDA_ERROR_CONTEXT_IS_DESTROYED, sys::cuCtxSynchronize());
        ok!(sys::cuDevicePrimaryCtxReset_v2(0));
        ok!(sys::cuDevicePrimaryCtxRetain(&mut again, 0));
        assert_eq!(context.get_limit(CUlimit::CU_LIMIT_STACK_SIZE), Ok(1024));
        // cudarc releases what it retained when it drops the context.
    }
}

guest_test! {
    fn a_device_is_found_by_its_bus_id() {
        let _context = context(0);
        let mut name = [0; 32];
        ok!(sys::cuDeviceGetPCIBusId(name.as_mut_ptr(), 32, 1));
        // SAFETY: the driver wrote a string.
        assert_eq!(unsafe { CStr::from_ptr(name.as_ptr()) }, c"0000:02:00.0");
        let mut device = 9;
        ok!(sys::cuDeviceGetByPCIBusId(&mut device, name.as_ptr()));
        assert_eq!(device, 1);
        refused!(CUDA_ERROR_INVALID_DEVICE, sys::cuDeviceGetByPCIBusId(&mut device, c"0000:03:00.0".as_ptr()));
    }
}

guest_test! {
    fn a_stream_tells_what_it_was_made_with() {
        let context = context(1);
        let made = |kind: sys::CUstream_flags| {
            let mut stream = std::ptr::null_mut();
            ok!(sys::cuStreamCreateWithPriority(&mut stream, kind as u32, -5));
            stream
        };
        let told = |stream| {
            let (mut flags, mut priority, mut of, mut device) = (9, 9, std::ptr::null_mut(), 9);
            ok!(sys::cuStreamGetFlags(stream, &mut flags));
            ok!(sys::cuStreamGetPriority(stream, &mut priority));
            ok!(sys::cuStreamGetCtx(stream, &mut of));
            ok!(sys::cuStreamGetDevice(stream, &mut device));
            (flags, priority, of, device)
        };
        let blocking = made(sys::CUstream_flags::CU_STREAM_DEFAULT);
        let other = made(sys::CUstream_flags::CU_STREAM_NON_BLOCKING);
        assert_eq!(told(blocking), (0, 0, context.cu_ctx(), 1));
        assert_eq!(told(other), (1, 0, context.cu_ctx(), 1));
        assert_eq!(told(std::ptr::null_mut()), (0, 0, context.cu_ctx(), 1));
    }
}

guest_test! {
    fn an_event_is_recorded_for_outside_only_where_nothing_is_captured() {
        let context = context(0);
        let stream = context.new_stream().unwrap();
        let event = context.new_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT)).unwrap();
        ok!(sys::cuEventRecordWithFlags(event.cu_event(), stream.cu_stream(), 1));
        event.synchronize().unwrap();
        let later = context.new_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT)).unwrap();
        later.record(&stream).unwrap();
        assert!(event.elapsed_ms(&later).unwrap() >= 0.0);
        stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).unwrap();
        refused!(CUDA_ERROR_NOT_SUPPORTED, sys::cuEventRecordWithFlags(event.cu_event(), stream.cu_stream(), 1));
        refused!(CUDA_ERROR_INVALID_VALUE, sys::cuEventRecordWithFlags(event.cu_event(), stream.cu_stream(), 2));
    }
}

guest_test! {
    fn a_function_that_is_not_covered_says_so() {
        let _context = context(0);
        let mut context = std::ptr::null_mut();
        refused!(CUDA_ERROR_NOT_SUPPORTED, sys::cuCtxCreate_v4(&mut context, std::ptr::null_mut(), 0, 0));
        let mut at = 0;
        refused!(CUDA_ERROR_NOT_SUPPORTED, sys::cuMemAllocManaged(&mut at, 4, 1));
    }
}
