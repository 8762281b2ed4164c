//! Kernels: launches, what they may touch, and what a fault does.

use std::ffi::c_void;

use slabfence_sys::*;

use crate::gpu::{BLOCK, Gpu, PTX, READ, READWRITE};

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
    ok!((gpu.api.cuStreamDestroy)(stream));
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
        ok!((gpu.api.cuStreamDestroy)(stream));
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
    refused!(CUDA_ERROR_NOT_READY, (gpu.api.cuStreamQuery)(stream));
    // SAFETY: the word lives until it is freed below; the kernel only reads it, atomically.
    unsafe { std::sync::atomic::AtomicU32::from_ptr(flag) }
        .store(1, std::sync::atomic::Ordering::Release);
    gpu.sync(stream);
    ok!((gpu.api.cuStreamDestroy)(stream));
    ok!((gpu.api.cuMemFreeHost)(flag.cast()));
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.clean();
}

/// Launches what must fault, and checks the code of everything after it.
fn broken(gpu: &Gpu, function: CUfunction, params: &[u64], code: CUresult) {
    let stream = gpu.stream();
    assert_eq!(
        gpu.launch(function, 1, 32, stream, params),
        CUresult::CUDA_SUCCESS
    );
    assert_eq!(code!((gpu.api.cuStreamSynchronize)(stream)), code);
    let mut at = CUdeviceptr(0);
    assert_eq!(code!((gpu.api.cuMemAlloc)(&mut at, 64)), code);
    assert_eq!(code!((gpu.api.cuCtxSynchronize)()), code);
    assert_eq!(gpu.launch(function, 1, 32, stream, params), code);
    assert_eq!(gpu.machine.faults().len(), 1);
}

#[test]
fn a_store_through_a_read_only_peer_mapping_breaks_the_context_for_good() {
    let gpu = Gpu::new(2);
    let at = gpu.mapped(0, &[(0, READWRITE), (1, READ)]);
    gpu.write(at, &[6]);
    gpu.on(1);
    let module = gpu.module(PTX);
    let (own, iota, copy) = (
        gpu.alloc(4),
        gpu.function(module, "iota"),
        gpu.function(module, "move"),
    );
    assert_eq!(
        gpu.launch(copy, 1, 1, CUstream::null(), &[own.0, at.0]),
        CUresult::CUDA_SUCCESS
    );
    assert_eq!(gpu.read(own, 1), [6], "reading is allowed");
    broken(&gpu, iota, &[at.0, 1], CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    let words = &gpu.machine.faults()[0];
    for part in [
        "device 1: illegal store",
        "kernel `iota`",
        "device 1 may not write",
        &format!("{:#x}", at.0),
    ] {
        assert!(words.contains(part), "{words}");
    }
    gpu.on(0);
    assert_eq!(gpu.read(at, 1), [6], "the other device's context is whole");
}

#[test]
fn memory_of_another_device_is_not_accessible_without_a_mapping() {
    let gpu = Gpu::new(2);
    let at = gpu.alloc(128);
    gpu.on(1);
    let module = gpu.module(PTX);
    let iota = gpu.function(module, "iota");
    broken(&gpu, iota, &[at.0, 1], CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    let words = &gpu.machine.faults()[0];
    assert!(words.contains("this device has no access to it"), "{words}");
}

#[test]
fn an_access_one_byte_beyond_an_allocation_faults() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (iota, at) = (gpu.function(module, "iota"), gpu.alloc(31 * 4));
    broken(&gpu, iota, &[at.0, 1], CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    let words = &gpu.machine.faults()[0];
    assert!(
        words.contains(&format!(
            "0 bytes past the end of cuMemAlloc memory at {:#x}, 124 bytes",
            at.0
        )),
        "{words}"
    );
}

#[test]
fn an_access_to_freed_memory_says_what_was_there() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (iota, at) = (gpu.function(module, "iota"), gpu.alloc(128));
    gpu.free(at);
    broken(&gpu, iota, &[at.0, 1], CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    assert!(
        gpu.machine.faults()[0].contains("freed or unmapped: was cuMemAlloc memory of device 0")
    );
}

#[test]
fn an_unmapped_alias_faults_while_the_memory_lives_elsewhere() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let iota = gpu.function(module, "iota");
    let at = gpu.mapped(0, &[(0, READWRITE)]);
    assert_eq!(
        gpu.launch(iota, 1, 32, CUstream::null(), &[at.0, 1]),
        CUresult::CUDA_SUCCESS
    );
    ok!((gpu.api.cuCtxSynchronize)());
    ok!((gpu.api.cuMemUnmap)(at, BLOCK));
    broken(&gpu, iota, &[at.0, 1], CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
}

#[test]
fn a_misaligned_access_and_a_trap_break_the_context_with_their_own_codes() {
    let gpu = Gpu::new(2);
    let module = gpu.module(PTX);
    let (iota, at) = (gpu.function(module, "iota"), gpu.alloc(256));
    broken(
        &gpu,
        iota,
        &[at.0 + 2, 1],
        CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
    );
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let trap = gpu.function(module, "trap");
    broken(&gpu, trap, &[], CUresult::CUDA_ERROR_LAUNCH_FAILED);
}

#[test]
fn a_new_primary_context_is_whole_again() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let trap = gpu.function(module, "trap");
    broken(&gpu, trap, &[], CUresult::CUDA_ERROR_LAUNCH_FAILED);
    ok!((gpu.api.cuDevicePrimaryCtxRelease)(CUdevice(0)));
    let mut context = CUcontext::null();
    ok!((gpu.api.cuDevicePrimaryCtxRetain)(
        &mut context,
        CUdevice(0)
    ));
    ok!((gpu.api.cuCtxSetCurrent)(context));
    let at = gpu.alloc(64);
    gpu.free(at);
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
