//! Kernels: launches that run, and launches that are refused.

use std::ffi::c_void;

use slabfence_sys::*;

use crate::gpu::{Gpu, PTX, READWRITE};

#[test]
fn a_grid_runs_every_thread_once() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (iota, at) = (gpu.function(module, "iota"), gpu.alloc(4 * 20_000));
    assert_eq!(
        gpu.launch(iota, 160, 125, CUstream::null(), &[at.0, 3]),
        CUresult::CUDA_SUCCESS
    );
    assert_eq!(gpu.read(at, 20_000), (3..20_003).collect::<Vec<u32>>());
    assert!(gpu.machine.executed() >= 160 * 4, "four warps a block");
    gpu.free(at);
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.clean();
}

#[test]
fn a_grid_larger_than_the_device_runs_in_waves() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (iota, at) = (gpu.function(module, "iota"), gpu.alloc(4 * 10_000));
    assert_eq!(
        gpu.launch(iota, 10_000, 1, CUstream::null(), &[at.0, 0]),
        CUresult::CUDA_SUCCESS
    );
    assert_eq!(
        gpu.read(at, 10_000),
        (0..10_000).collect::<Vec<u32>>(),
        "132 × 32 blocks fit at once"
    );
    gpu.free(at);
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.clean();
}

#[test]
fn warps_of_a_block_meet_at_barriers() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (sum, input, out) = (
        gpu.function(module, "sum"),
        gpu.alloc(4 * 512),
        gpu.alloc(8),
    );
    gpu.write(input, &(0..512).collect::<Vec<u32>>());
    assert_eq!(
        gpu.launch(sum, 2, 256, CUstream::null(), &[out.0, input.0]),
        CUresult::CUDA_SUCCESS
    );
    assert_eq!(gpu.read(out, 2), [255 * 128, 255 * 128 + 256 * 256]);
    gpu.free(input);
    gpu.free(out);
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.clean();
}

#[test]
fn launches_that_cannot_be_are_refused() {
    let gpu = Gpu::new(2);
    let module = gpu.module(PTX);
    let (iota, at) = (gpu.function(module, "iota"), gpu.alloc(4));
    let (mut pointers, null) = (
        [(&raw const at).cast_mut().cast::<c_void>(); 2],
        std::ptr::null_mut(),
    );
    let launch = |function, grid: [u32; 3], block: [u32; 3], shared, params| {
        let ([x, y, z], [a, b, c]) = (grid, block);
        code!((gpu.api.cuLaunchKernel)(
            function,
            x,
            y,
            z,
            a,
            b,
            c,
            shared,
            CUstream::null(),
            params,
            null
        ))
    };
    let params = pointers.as_mut_ptr();
    let bad = CUresult::CUDA_ERROR_INVALID_VALUE;
    assert_eq!(launch(iota, [0, 1, 1], [1, 1, 1], 0, params), bad);
    assert_eq!(launch(iota, [1, 1, 1], [1, 0, 1], 0, params), bad);
    assert_eq!(launch(iota, [1, 65536, 1], [1, 1, 1], 0, params), bad);
    assert_eq!(launch(iota, [1, 1, 1], [1, 1, 65], 0, params), bad);
    assert_eq!(launch(iota, [1, 1, 1], [1025, 1, 1], 0, params), bad);
    assert_eq!(launch(iota, [1, 1, 1], [1024, 2, 1], 0, params), bad);
    assert_eq!(
        launch(iota, [1, 1, 1], [1, 1, 1], (48 << 10) + 1, params),
        bad
    );
    assert_eq!(launch(iota, [1, 1, 1], [1, 1, 1], 0, null), bad);
    let mut holes = [params.cast::<c_void>(), std::ptr::null_mut()];
    assert_eq!(
        launch(iota, [1, 1, 1], [1, 1, 1], 0, holes.as_mut_ptr()),
        bad
    );
    assert_eq!(
        launch(CUfunction::null(), [1; 3], [1; 3], 0, params),
        CUresult::CUDA_ERROR_INVALID_HANDLE
    );
    gpu.on(1);
    let stream = gpu.stream();
    let code = gpu.launch(iota, 1, 1, stream, &[at.0, 0]);
    assert_eq!(
        code,
        CUresult::CUDA_ERROR_INVALID_HANDLE,
        "the function is of device 0"
    );
    let second = gpu.module(PTX);
    let own = gpu.function(second, "iota");
    gpu.on(0);
    let code = gpu.launch(own, 1, 1, stream, &[at.0, 0]);
    assert_eq!(
        code,
        CUresult::CUDA_ERROR_INVALID_HANDLE,
        "the stream is not of the current context"
    );
    gpu.on(1);
    ok!((gpu.api.cuModuleUnload)(second));
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    gpu.on(0);
    gpu.free(at);
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.clean();
}

#[test]
fn parameters_may_come_packed() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (iota, at) = (gpu.function(module, "iota"), gpu.alloc(4));
    let (block, bytes) = ([at.0, 77], 16usize);
    let key = std::ptr::without_provenance_mut::<c_void>;
    let (pointer, size) = (
        block.as_ptr().cast_mut().cast(),
        (&raw const bytes).cast_mut().cast(),
    );
    let mut extra = [key(1), pointer, key(2), size, key(0)];
    let (null, stream) = (std::ptr::null_mut(), CUstream::null());
    ok!((gpu.api.cuLaunchKernel)(
        iota,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        stream,
        null,
        extra.as_mut_ptr()
    ));
    assert_eq!(gpu.read(at, 1), [77]);
    gpu.free(at);
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.clean();
}

#[test]
fn a_cooperative_launch_must_fit_the_device_at_once() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (iota, at) = (gpu.function(module, "iota"), gpu.alloc(4 * 1024 * 264));
    let values = [at.0, 1];
    let mut params =
        [0, 1].map(|i: usize| std::ptr::from_ref(&values[i]).cast_mut().cast::<c_void>());
    let mut attribute = CUlaunchAttribute::cooperative();
    let mut config = CUlaunchConfig {
        gridDimX: 265,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1024,
        blockDimY: 1,
        blockDimZ: 1,
        attrs: &mut attribute,
        numAttrs: 1,
        ..CUlaunchConfig::default()
    };
    let launch = gpu.api.cuLaunchKernelEx.unwrap();
    let null = std::ptr::null_mut();
    refused!(
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
        launch(&config, iota, params.as_mut_ptr(), null)
    );
    config.gridDimX = 264;
    ok!(launch(&config, iota, params.as_mut_ptr(), null));
    assert_eq!(
        gpu.read(CUdeviceptr(at.0 + 4 * 1024 * 263), 1),
        [1024 * 263 + 1]
    );
    gpu.free(at);
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.clean();
}

#[test]
fn kernels_on_two_devices_exchange_flags_through_peer_mappings() {
    let gpu = Gpu::new(2);
    let all = [(0, READWRITE), (1, READWRITE)];
    let flags = [gpu.mapped(0, &all), gpu.mapped(1, &all)];
    let mut parts = Vec::new();
    for (device, &flag) in flags.iter().enumerate() {
        gpu.on(device as i32);
        gpu.write(flag, &[0]);
        let module = gpu.module(PTX);
        parts.push((module, gpu.function(module, "pingpong"), gpu.stream()));
    }
    for (device, &(_, pingpong, stream)) in parts.iter().enumerate() {
        gpu.on(device as i32);
        let params = [
            flags[device].0,
            flags[1 - device].0,
            u64::from(device == 0),
            500,
        ];
        assert_eq!(
            gpu.launch(pingpong, 1, 1, stream, &params),
            CUresult::CUDA_SUCCESS
        );
    }
    // The last flag of the first is set by the second's last store: both must be done before either is read.
    for &(_, _, stream) in &parts {
        gpu.sync(stream);
    }
    for (device, &(module, _, stream)) in parts.iter().enumerate() {
        gpu.on(device as i32);
        assert_eq!(gpu.read(flags[device], 1), [500]);
        ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
        ok!((gpu.api.cuModuleUnload)(module));
        gpu.unmap(flags[device]);
    }
    gpu.clean();
}

#[test]
fn a_kernel_waits_for_the_host_through_page_locked_memory() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (wait, stream, flag) = (gpu.function(module, "await"), gpu.stream(), gpu.pinned(1));
    let at = flag.expose_provenance() as u64;
    assert_eq!(
        gpu.launch(wait, 3, 64, stream, &[at, 1]),
        CUresult::CUDA_SUCCESS
    );
    std::thread::sleep(std::time::Duration::from_millis(20));
    refused!(
        CUDA_ERROR_NOT_READY,
        (gpu.api.cuStreamQuery.unwrap())(stream)
    );
    // SAFETY: the word lives until it is freed below; the kernel only reads it, atomically.
    unsafe { std::sync::atomic::AtomicU32::from_ptr(flag) }
        .store(1, std::sync::atomic::Ordering::Release);
    gpu.sync(stream);
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    ok!((gpu.api.cuMemFreeHost.unwrap())(flag.cast()));
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.clean();
}

#[test]
fn a_machine_is_dropped_while_a_kernel_spins() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (wait, stream, flag) = (gpu.function(module, "await"), gpu.stream(), gpu.pinned(1));
    let at = flag.expose_provenance() as u64;
    assert_eq!(
        gpu.launch(wait, 1, 32, stream, &[at, 1]),
        CUresult::CUDA_SUCCESS
    );
    drop(gpu);
}
