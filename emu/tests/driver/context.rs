//! Primary contexts, the current one, and calls without one.

use slabfence_sys::*;

use crate::gpu::Gpu;

#[test]
fn calls_before_init_are_refused() {
    let machine =
        slabfence_emu::Machine::new(slabfence_emu::Profile::named("h200-nvlink").unwrap(), 1)
            .unwrap();
    let api = machine.api().unwrap();
    let mut count = 0;
    refused!(
        CUDA_ERROR_NOT_INITIALIZED,
        (api.cuDeviceGetCount)(&mut count)
    );
    refused!(CUDA_ERROR_INVALID_VALUE, (api.cuInit)(1));
    ok!((api.cuInit)(0));
    ok!((api.cuDeviceGetCount)(&mut count));
    assert_eq!(count, 1);
}

#[test]
fn work_without_a_current_context_is_refused() {
    let gpu = Gpu::new(1);
    let mut old = CUcontext::null();
    ok!((gpu.api.cuCtxPopCurrent)(&mut old));
    let mut at = CUdeviceptr(0);
    refused!(
        CUDA_ERROR_INVALID_CONTEXT,
        (gpu.api.cuMemAlloc)(&mut at, 64)
    );
    refused!(
        CUDA_ERROR_INVALID_CONTEXT,
        (gpu.api.cuCtxPopCurrent)(&mut old)
    );
    refused!(
        CUDA_ERROR_INVALID_CONTEXT,
        (gpu.api.cuCtxSynchronize.unwrap())()
    );
    gpu.clean();
}

#[test]
fn what_is_current_is_a_stack_per_thread() {
    let gpu = Gpu::new(2);
    let current = || {
        let mut device = CUdevice(-1);
        let code = code!((gpu.api.cuCtxGetDevice.unwrap())(&mut device));
        (code, device.0)
    };
    let mut second = CUcontext::null();
    ok!((gpu.api.cuDevicePrimaryCtxRetain)(&mut second, CUdevice(1)));
    assert_eq!(current(), (CUresult::CUDA_SUCCESS, 0));
    ok!((gpu.api.cuCtxPushCurrent)(second));
    assert_eq!(current(), (CUresult::CUDA_SUCCESS, 1));
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(current(), (CUresult::CUDA_ERROR_INVALID_CONTEXT, -1)));
    });
    let mut popped = CUcontext::null();
    ok!((gpu.api.cuCtxPopCurrent)(&mut popped));
    assert_eq!(popped, second);
    assert_eq!(current(), (CUresult::CUDA_SUCCESS, 0));
    ok!((gpu.api.cuDevicePrimaryCtxRelease)(CUdevice(1)));
    gpu.clean();
}

#[test]
fn a_primary_context_ends_with_its_last_reference_and_the_next_one_has_another_id() {
    let gpu = Gpu::new(1);
    let (mut again, mut id, mut later) = (CUcontext::null(), 0, 0);
    ok!((gpu.api.cuCtxGetId.unwrap())(CUcontext::null(), &mut id));
    ok!((gpu.api.cuDevicePrimaryCtxRetain)(&mut again, CUdevice(0)));
    ok!((gpu.api.cuDevicePrimaryCtxRelease)(CUdevice(0)));
    ok!((gpu.api.cuCtxSynchronize.unwrap())());
    ok!((gpu.api.cuDevicePrimaryCtxRelease)(CUdevice(0)));
    refused!(
        CUDA_ERROR_CONTEXT_IS_DESTROYED,
        (gpu.api.cuCtxSynchronize.unwrap())()
    );
    refused!(
        CUDA_ERROR_INVALID_CONTEXT,
        (gpu.api.cuDevicePrimaryCtxRelease)(CUdevice(0))
    );
    ok!((gpu.api.cuDevicePrimaryCtxRetain)(&mut again, CUdevice(0)));
    ok!((gpu.api.cuCtxGetId.unwrap())(again, &mut later));
    assert_ne!(id, later);
    gpu.clean();
}

#[test]
fn what_goes_with_its_context_is_counted_as_abandoned() {
    let gpu = Gpu::new(1);
    gpu.alloc(64);
    gpu.stream();
    gpu.event();
    ok!((gpu.api.cuDevicePrimaryCtxRelease)(CUdevice(0)));
    assert_eq!(
        gpu.machine.live(),
        slabfence_emu::Live {
            abandoned: 3,
            ..Default::default()
        }
    );
}

#[test]
fn two_machines_in_one_process_know_nothing_of_each_other() {
    let (one, two) = (Gpu::new(1), Gpu::new(1));
    let stream = one.stream();
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        (two.api.cuStreamSynchronize)(stream)
    );
    let at = one.alloc(64);
    refused!(CUDA_ERROR_INVALID_VALUE, (two.api.cuMemFree)(at));
    one.free(at);
    ok!((one.api.cuStreamDestroy.unwrap())(stream));
    one.clean();
    two.clean();
}

#[test]
fn a_dropped_machine_answers_that_it_is_gone() {
    let gpu = Gpu::new(1);
    let Gpu { api, machine, .. } = gpu;
    drop(machine);
    refused!(CUDA_ERROR_DEINITIALIZED, (api.cuCtxSynchronize.unwrap())());
    // However many machines come after it: none of them gets a call that was meant for the first.
    for _ in 0..20 {
        let later = Gpu::new(1);
        refused!(CUDA_ERROR_DEINITIALIZED, (api.cuCtxSynchronize.unwrap())());
        later.clean();
    }
}

#[test]
fn devices_say_that_they_are_emulated_and_what_their_profile_is() {
    for (profile, name, sms, native, capability) in [
        ("h200-nvlink", "EMULATED H200 (h200-nvlink)", 132, 1, 9),
        (
            "sm120-pcie",
            "EMULATED RTX PRO 6000 (sm120-pcie)",
            188,
            0,
            12,
        ),
    ] {
        let gpu = Gpu::of(profile, 2);
        let mut text = [0u8; 64];
        ok!((gpu.api.cuDeviceGetName)(
            text.as_mut_ptr().cast(),
            64,
            CUdevice(1)
        ));
        assert_eq!(
            std::ffi::CStr::from_bytes_until_nul(&text)
                .unwrap()
                .to_str(),
            Ok(name)
        );
        ok!((gpu.api.cuDeviceGetName)(
            text.as_mut_ptr().cast(),
            9,
            CUdevice(1)
        ));
        assert_eq!(
            std::ffi::CStr::from_bytes_until_nul(&text)
                .unwrap()
                .to_bytes(),
            b"EMULATED"
        );
        let attribute = |asked| {
            let mut value = -1;
            ok!((gpu.api.cuDeviceGetAttribute)(
                &mut value,
                asked,
                CUdevice(0)
            ));
            value
        };
        assert_eq!(
            attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            sms
        );
        assert_eq!(
            attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            capability
        );
        let (mut atomics, mut can) = (-1, -1);
        let asked = CUdevice_P2PAttribute::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
        ok!((gpu.api.cuDeviceGetP2PAttribute.unwrap())(
            &mut atomics,
            asked,
            CUdevice(0),
            CUdevice(1)
        ));
        assert_eq!(atomics, native);
        ok!((gpu.api.cuDeviceCanAccessPeer.unwrap())(
            &mut can,
            CUdevice(0),
            CUdevice(1)
        ));
        assert_eq!(can, 1);
        refused!(
            CUDA_ERROR_INVALID_DEVICE,
            (gpu.api.cuDeviceCanAccessPeer.unwrap())(&mut can, CUdevice(0), CUdevice(2))
        );
        let (mut first, mut second) = (CUuuid::default(), CUuuid::default());
        ok!((gpu.api.cuDeviceGetUuid)(&mut first, CUdevice(0)));
        ok!((gpu.api.cuDeviceGetUuid)(&mut second, CUdevice(1)));
        assert_ne!(first, second);
        gpu.clean();
    }
}

#[test]
fn null_results_are_invalid_arguments() {
    let gpu = Gpu::new(1);
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuDeviceGetCount)(std::ptr::null_mut())
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemAlloc)(std::ptr::null_mut(), 64)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuStreamCreate.unwrap())(std::ptr::null_mut(), CUstream_flags::empty())
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuDevicePrimaryCtxRetain)(std::ptr::null_mut(), CUdevice(0))
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuDriverGetVersion)(std::ptr::null_mut())
    );
    gpu.clean();
}

#[test]
fn codes_have_their_names_and_texts() {
    let gpu = Gpu::new(1);
    let mut text = std::ptr::null();
    ok!((gpu.api.cuGetErrorName)(
        CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE,
        &mut text
    ));
    // SAFETY: the driver's names are static, NUL-terminated.
    let name = unsafe { std::ffi::CStr::from_ptr(text) };
    assert_eq!(name.to_bytes(), b"CUDA_ERROR_STREAM_CAPTURE_MERGE");
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuGetErrorName)(CUresult(123_456), &mut text)
    );
    assert!(text.is_null());
    gpu.clean();
}

#[test]
fn every_entry_of_the_table_is_there() {
    let gpu = Gpu::new(1);
    assert_eq!(gpu.api.absent(), Vec::<&str>::new());
    assert!(gpu.api.is_emulated());
    assert_eq!(gpu.api.driver_version, 13000);
    gpu.clean();
}
