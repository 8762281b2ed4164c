//! What kernels may touch, and what a fault does.

use slabfence_sys::*;

use crate::gpu::{BLOCK, Gpu, PTX, READ, READWRITE};
use crate::stream::Gate;

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
    assert_eq!(code!((gpu.api.cuCtxSynchronize.unwrap())()), code);
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
    ok!((gpu.api.cuCtxSynchronize.unwrap())());
    ok!((gpu.api.cuMemUnmap.unwrap())(at, BLOCK));
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
    ok!((gpu.api.cuCtxSetCurrent.unwrap())(context));
    let at = gpu.alloc(64);
    gpu.free(at);
}

#[test]
fn work_behind_a_fault_is_not_done() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (trap, stream, gate, host) = (
        gpu.function(module, "trap"),
        gpu.stream(),
        Gate::new(),
        gpu.pinned(1),
    );
    gate.close_stream(&gpu, stream);
    assert_eq!(gpu.launch(trap, 1, 1, stream, &[]), CUresult::CUDA_SUCCESS);
    ok!((gpu.api.cuMemsetD32Async.unwrap())(
        CUdeviceptr(host.expose_provenance() as u64),
        1,
        1,
        stream
    ));
    gate.open();
    refused!(
        CUDA_ERROR_LAUNCH_FAILED,
        (gpu.api.cuStreamSynchronize)(stream)
    );
    // SAFETY: the word is live, and nothing runs any more.
    assert_eq!(unsafe { host.read_volatile() }, 0);
}

#[test]
fn a_fill_or_copy_that_faults_ends_and_nobody_waits_for_it() {
    for fills in [true, false] {
        let gpu = Gpu::new(2);
        let host = gpu.pinned(1);
        gpu.on(1);
        let (at, own, gate) = (gpu.mapped(1, &[(1, READWRITE)]), gpu.alloc(64), Gate::new());
        let stream = gpu.stream();
        gate.close_stream(&gpu, stream);
        if fills {
            ok!((gpu.api.cuMemsetD8Async.unwrap())(at, 1, 64, stream));
        } else {
            ok!((gpu.api.cuMemcpyDtoDAsync.unwrap())(own, at, 64, stream));
        }
        gpu.unmap(at);
        gate.open();
        let synchronised = code!((gpu.api.cuStreamSynchronize)(stream));
        assert_eq!(synchronised, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        // Both wait for the device's work, the first for that of all devices.
        gpu.on(0);
        ok!((gpu.api.cuMemFreeHost.unwrap())(host.cast()));
        ok!((gpu.api.cuDevicePrimaryCtxRelease)(CUdevice(1)));
        let words = gpu.machine.faults();
        assert!(words[0].contains("freed or unmapped"), "{words:?}");
        assert_eq!(words.len(), 1);
    }
}
