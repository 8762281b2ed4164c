//! Copies and fills in stream order.

use slabfence_sys::*;

use crate::gpu::Gpu;
use crate::stream::Gate;

#[test]
fn pageable_memory_is_read_before_an_asynchronous_copy_returns() {
    let gpu = Gpu::new(1);
    let (stream, at, gate) = (gpu.stream(), gpu.alloc(8), Gate::new());
    gate.close_stream(&gpu, stream);
    let mut words = [1u32, 2];
    ok!((gpu.api.cuMemcpyHtoDAsync.unwrap())(
        at,
        words.as_ptr().cast(),
        8,
        stream
    ));
    words.fill(9);
    gate.open();
    gpu.sync(stream);
    assert_eq!(gpu.read(at, 2), [1, 2]);
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    gpu.free(at);
    gpu.clean();
}

#[test]
fn page_locked_memory_is_read_when_the_copy_runs() {
    let gpu = Gpu::new(1);
    let (stream, at, gate, host) = (gpu.stream(), gpu.alloc(4), Gate::new(), gpu.pinned(1));
    gate.close_stream(&gpu, stream);
    ok!((gpu.api.cuMemcpyHtoDAsync.unwrap())(
        at,
        host.cast(),
        4,
        stream
    ));
    // SAFETY: the copy is held behind the gate; nothing else touches the word.
    unsafe { host.write_volatile(6) };
    gate.open();
    gpu.sync(stream);
    assert_eq!(gpu.read(at, 1), [6]);
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    ok!((gpu.api.cuMemFreeHost.unwrap())(host.cast()));
    gpu.free(at);
    gpu.clean();
}

#[test]
fn an_asynchronous_copy_to_pageable_memory_has_arrived_when_it_returns() {
    let gpu = Gpu::new(1);
    let (stream, at) = (gpu.stream(), gpu.alloc(4));
    let mut word = 0u32;
    ok!((gpu.api.cuMemsetD32Async.unwrap())(at, 3, 1, stream));
    ok!((gpu.api.cuMemcpyDtoHAsync.unwrap())(
        (&raw mut word).cast(),
        at,
        4,
        stream
    ));
    assert_eq!(word, 3);
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    gpu.free(at);
    gpu.clean();
}

#[test]
fn fills_and_device_copies_touch_exactly_their_bytes() {
    let gpu = Gpu::new(2);
    let one = gpu.alloc(16);
    gpu.on(1);
    let two = gpu.alloc(16);
    let stream = gpu.stream();
    gpu.write(one, &[1, 2, 3, 4]);
    gpu.write(two, &[0; 4]);
    ok!((gpu.api.cuMemsetD8Async.unwrap())(
        CUdeviceptr(one.0 + 5),
        0xab,
        2,
        stream
    ));
    ok!((gpu.api.cuMemcpyDtoDAsync.unwrap())(
        CUdeviceptr(two.0 + 4),
        one,
        8,
        stream
    ));
    ok!((gpu.api.cuMemsetD32Async.unwrap())(
        CUdeviceptr(two.0 + 12),
        0x0102_0304,
        1,
        stream
    ));
    gpu.sync(stream);
    assert_eq!(gpu.read(two, 4), [0, 1, 0x00ab_ab02, 0x0102_0304]);
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemsetD32Async.unwrap())(CUdeviceptr(two.0 + 2), 0, 1, stream)
    );
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    gpu.free(one);
    gpu.free(two);
    gpu.clean();
}

#[test]
fn a_copy_beyond_an_allocation_is_refused() {
    let gpu = Gpu::new(1);
    let (at, other) = (gpu.alloc(12), gpu.alloc(64));
    let words = [0u32; 4];
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemcpyHtoD.unwrap())(at, words.as_ptr().cast(), 13)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemcpyDtoDAsync.unwrap())(at, other, 16, CUstream::null())
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemcpyHtoD.unwrap())(at, std::ptr::null(), 4)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemsetD8Async.unwrap())(at, 0, 13, CUstream::null())
    );
    gpu.free(at);
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemcpyHtoD.unwrap())(at, words.as_ptr().cast(), 4)
    );
    gpu.free(other);
    gpu.clean();
}
