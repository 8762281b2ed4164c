//! Streams, events, host functions, and their order.

use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use slabfence_sys::*;

use crate::gpu::{Gpu, until};

/// A host function that holds its stream until the test opens it.
pub struct Gate(AtomicBool);

impl Gate {
    pub fn new() -> Gate {
        Gate(AtomicBool::new(false))
    }

    pub fn open(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub fn close_stream(&self, gpu: &Gpu, stream: CUstream) {
        ok!((gpu.api.cuLaunchHostFunc.unwrap())(
            stream,
            Some(hold),
            std::ptr::from_ref(self).cast_mut().cast()
        ));
    }
}

unsafe extern "C" fn hold(gate: *mut c_void) {
    // SAFETY: the test keeps the gate until the stream is idle.
    let gate = unsafe { &*gate.cast::<Gate>() };
    until("the gate to open", || gate.0.load(Ordering::Acquire));
}

static NOTES: Mutex<Vec<usize>> = Mutex::new(Vec::new());

unsafe extern "C" fn note(value: *mut c_void) {
    NOTES.lock().unwrap().push(value.addr());
}

#[test]
fn host_functions_run_in_stream_order_with_their_arguments() {
    let gpu = Gpu::new(1);
    let stream = gpu.stream();
    for value in [71, 72, 73] {
        ok!((gpu.api.cuLaunchHostFunc.unwrap())(
            stream,
            Some(note),
            std::ptr::without_provenance_mut(value)
        ));
    }
    gpu.sync(stream);
    let seen: Vec<usize> = NOTES
        .lock()
        .unwrap()
        .iter()
        .copied()
        .filter(|value| (71..=73).contains(value))
        .collect();
    assert_eq!(seen, [71, 72, 73]);
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuLaunchHostFunc.unwrap())(stream, None, std::ptr::null_mut())
    );
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    gpu.clean();
}

#[test]
fn a_stream_is_not_ready_while_its_work_is_held() {
    let gpu = Gpu::new(1);
    let (stream, at, gate) = (gpu.stream(), gpu.alloc(4), Gate::new());
    gpu.write(at, &[0]);
    ok!((gpu.api.cuStreamQuery.unwrap())(stream));
    gate.close_stream(&gpu, stream);
    ok!((gpu.api.cuMemsetD32Async.unwrap())(at, 5, 1, stream));
    refused!(
        CUDA_ERROR_NOT_READY,
        (gpu.api.cuStreamQuery.unwrap())(stream)
    );
    assert_eq!(
        gpu.read(at, 1),
        [0],
        "the legacy stream does not wait for a non-blocking one"
    );
    gate.open();
    gpu.sync(stream);
    ok!((gpu.api.cuStreamQuery.unwrap())(stream));
    assert_eq!(gpu.read(at, 1), [5]);
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    gpu.free(at);
    gpu.clean();
}

#[test]
fn the_legacy_stream_and_blocking_streams_wait_for_each_other() {
    let gpu = Gpu::new(1);
    let (mut one, mut two) = (CUstream::null(), CUstream::null());
    ok!((gpu.api.cuStreamCreate.unwrap())(
        &mut one,
        CUstream_flags::empty()
    ));
    ok!((gpu.api.cuStreamCreate.unwrap())(
        &mut two,
        CUstream_flags::empty()
    ));
    let (at, gate) = (gpu.alloc(4), Gate::new());
    gate.close_stream(&gpu, one);
    ok!((gpu.api.cuMemsetD32Async.unwrap())(at, 1, 1, one));
    ok!((gpu.api.cuMemsetD32Async.unwrap())(
        at,
        2,
        1,
        CUstream::null()
    ));
    ok!((gpu.api.cuMemsetD32Async.unwrap())(
        CUdeviceptr(at.0),
        3,
        1,
        two
    ));
    refused!(CUDA_ERROR_NOT_READY, (gpu.api.cuStreamQuery.unwrap())(two));
    refused!(
        CUDA_ERROR_NOT_READY,
        (gpu.api.cuStreamQuery.unwrap())(CUstream::LEGACY)
    );
    gate.open();
    gpu.sync(two);
    assert_eq!(gpu.read(at, 1), [3]);
    ok!((gpu.api.cuStreamDestroy.unwrap())(one));
    ok!((gpu.api.cuStreamDestroy.unwrap())(two));
    gpu.free(at);
    gpu.clean();
}

#[test]
fn an_event_orders_one_stream_behind_another() {
    let gpu = Gpu::new(2);
    let (one, at, gate, event) = (gpu.stream(), gpu.alloc(4), Gate::new(), gpu.event());
    ok!((gpu.api.cuEventQuery.unwrap())(event));
    gate.close_stream(&gpu, one);
    ok!((gpu.api.cuMemsetD32Async.unwrap())(at, 1, 1, one));
    ok!((gpu.api.cuEventRecord.unwrap())(event, one));
    gpu.on(1);
    let two = gpu.stream();
    ok!((gpu.api.cuStreamWaitEvent.unwrap())(
        two,
        event,
        CUevent_wait_flags::empty()
    ));
    ok!((gpu.api.cuMemsetD32Async.unwrap())(at, 2, 1, two));
    refused!(CUDA_ERROR_NOT_READY, (gpu.api.cuEventQuery.unwrap())(event));
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        (gpu.api.cuEventRecord.unwrap())(event, two)
    );
    gate.open();
    gpu.sync(two);
    ok!((gpu.api.cuEventQuery.unwrap())(event));
    ok!((gpu.api.cuEventSynchronize.unwrap())(event));
    assert_eq!(gpu.read(at, 1), [2]);
    ok!((gpu.api.cuStreamDestroy.unwrap())(one));
    ok!((gpu.api.cuStreamDestroy.unwrap())(two));
    ok!((gpu.api.cuEventDestroy.unwrap())(event));
    gpu.free(at);
    gpu.clean();
}

#[test]
fn elapsed_time_needs_two_recorded_timing_events() {
    let gpu = Gpu::new(1);
    let (stream, start, end) = (gpu.stream(), gpu.event(), gpu.event());
    let mut took = -1.0;
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        (gpu.api.cuEventElapsedTime.unwrap())(&mut took, start, end)
    );
    ok!((gpu.api.cuEventRecord.unwrap())(start, stream));
    let gate = Gate::new();
    gate.close_stream(&gpu, stream);
    ok!((gpu.api.cuEventRecord.unwrap())(end, stream));
    refused!(
        CUDA_ERROR_NOT_READY,
        (gpu.api.cuEventElapsedTime.unwrap())(&mut took, start, end)
    );
    std::thread::sleep(std::time::Duration::from_millis(5));
    gate.open();
    ok!((gpu.api.cuEventSynchronize.unwrap())(end));
    ok!((gpu.api.cuEventElapsedTime.unwrap())(&mut took, start, end));
    assert!((5.0..5000.0).contains(&took), "{took} ms");
    let mut untimed = CUevent::null();
    ok!((gpu.api.cuEventCreate.unwrap())(
        &mut untimed,
        CUevent_flags::CU_EVENT_DISABLE_TIMING
    ));
    ok!((gpu.api.cuEventRecord.unwrap())(untimed, stream));
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        (gpu.api.cuEventElapsedTime.unwrap())(&mut took, start, untimed)
    );
    for event in [start, end, untimed] {
        ok!((gpu.api.cuEventDestroy.unwrap())(event));
    }
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        (gpu.api.cuEventDestroy.unwrap())(start)
    );
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    gpu.clean();
}

#[test]
fn the_handle_of_a_destroyed_stream_is_the_next_streams_handle() {
    let gpu = Gpu::new(1);
    let first = gpu.stream();
    let (mut id, mut later) = (0, 0);
    ok!((gpu.api.cuStreamGetId.unwrap())(first, &mut id));
    ok!((gpu.api.cuStreamDestroy.unwrap())(first));
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        (gpu.api.cuStreamSynchronize)(first)
    );
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        (gpu.api.cuStreamDestroy.unwrap())(first)
    );
    let second = gpu.stream();
    assert_eq!(second, first);
    ok!((gpu.api.cuStreamGetId.unwrap())(second, &mut later));
    assert_ne!(id, later, "ids are not reused");
    let third = gpu.stream();
    ok!((gpu.api.cuStreamDestroy.unwrap())(second));
    ok!((gpu.api.cuStreamDestroy.unwrap())(third));
    assert_eq!(
        gpu.stream(),
        third,
        "the last one destroyed is the first one reused"
    );
    assert_eq!(gpu.stream(), second);
    ok!((gpu.api.cuStreamDestroy.unwrap())(third));
    ok!((gpu.api.cuStreamDestroy.unwrap())(second));
    gpu.clean();
}

#[test]
fn work_of_a_destroyed_stream_goes_on() {
    let gpu = Gpu::new(1);
    let (stream, at, gate) = (gpu.stream(), gpu.alloc(4), Gate::new());
    gate.close_stream(&gpu, stream);
    ok!((gpu.api.cuMemsetD32Async.unwrap())(at, 9, 1, stream));
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    gate.open();
    ok!((gpu.api.cuCtxSynchronize.unwrap())());
    assert_eq!(gpu.read(at, 1), [9]);
    gpu.free(at);
    gpu.clean();
}

#[test]
fn a_held_host_function_does_not_stop_other_streams() {
    let gpu = Gpu::new(1);
    let (held, free, at, gate) = (gpu.stream(), gpu.stream(), gpu.alloc(4), Gate::new());
    gate.close_stream(&gpu, held);
    ok!((gpu.api.cuMemsetD32Async.unwrap())(at, 4, 1, free));
    gpu.sync(free);
    assert_eq!(gpu.read(at, 1), [4]);
    gate.open();
    gpu.sync(held);
    ok!((gpu.api.cuStreamDestroy.unwrap())(held));
    ok!((gpu.api.cuStreamDestroy.unwrap())(free));
    gpu.free(at);
    gpu.clean();
}

#[test]
fn the_legacy_stream_is_not_destroyed() {
    let gpu = Gpu::new(1);
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        (gpu.api.cuStreamDestroy.unwrap())(CUstream::LEGACY)
    );
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        (gpu.api.cuStreamDestroy.unwrap())(CUstream::null())
    );
    gpu.clean();
}

/// What a host function that calls the driver needs, and what it got.
struct Caller {
    query: pfn::cuCtxSynchronize,
    answer: std::sync::atomic::AtomicU32,
}

unsafe extern "C" fn call_the_driver(caller: *mut c_void) {
    // SAFETY: the test keeps the caller until the stream is idle.
    let caller = unsafe { &*caller.cast::<Caller>() };
    let code = code!((caller.query)());
    caller.answer.store(code.0, Ordering::Release);
}

#[test]
fn a_host_function_must_not_call_the_driver() {
    let gpu = Gpu::new(1);
    let stream = gpu.stream();
    let caller = Caller {
        query: gpu.api.cuCtxSynchronize.unwrap(),
        answer: std::sync::atomic::AtomicU32::new(0),
    };
    let argument = (&raw const caller).cast_mut().cast();
    ok!((gpu.api.cuLaunchHostFunc.unwrap())(
        stream,
        Some(call_the_driver),
        argument
    ));
    gpu.sync(stream);
    let answer = CUresult(caller.answer.load(Ordering::Acquire));
    assert_eq!(answer, CUresult::CUDA_ERROR_NOT_PERMITTED);
    assert_eq!(
        gpu.machine.faults(),
        ["a host function or destructor called the driver"]
    );
}

#[test]
fn work_runs_though_nobody_waits_for_it() {
    let gpu = Gpu::new(1);
    let (stream, host) = (gpu.stream(), gpu.pinned(1));
    let at = CUdeviceptr(host.expose_provenance() as u64);
    // The machine's thread has gone to sleep by then: the call itself must wake it.
    std::thread::sleep(std::time::Duration::from_millis(20));
    ok!((gpu.api.cuMemsetD32Async.unwrap())(at, 8, 1, stream));
    // SAFETY: the word lives until it is freed below; the fill only stores to it.
    until("the fill", || unsafe { host.read_volatile() } == 8);
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    ok!((gpu.api.cuMemFreeHost.unwrap())(host.cast()));
    gpu.clean();
}

#[test]
fn an_event_recorded_anew_is_not_reached_by_its_older_record() {
    let gpu = Gpu::new(1);
    let (one, two, event) = (gpu.stream(), gpu.stream(), gpu.event());
    let (first, second) = (Gate::new(), Gate::new());
    first.close_stream(&gpu, one);
    ok!((gpu.api.cuEventRecord.unwrap())(event, one));
    second.close_stream(&gpu, two);
    ok!((gpu.api.cuEventRecord.unwrap())(event, two));
    first.open();
    gpu.sync(one);
    let mut took = 0.0;
    refused!(CUDA_ERROR_NOT_READY, (gpu.api.cuEventQuery.unwrap())(event));
    refused!(
        CUDA_ERROR_NOT_READY,
        (gpu.api.cuEventElapsedTime.unwrap())(&mut took, event, event)
    );
    second.open();
    ok!((gpu.api.cuEventSynchronize.unwrap())(event));
    ok!((gpu.api.cuEventElapsedTime.unwrap())(
        &mut took, event, event
    ));
    assert_eq!(took, 0.0);
    ok!((gpu.api.cuEventDestroy.unwrap())(event));
    ok!((gpu.api.cuStreamDestroy.unwrap())(one));
    ok!((gpu.api.cuStreamDestroy.unwrap())(two));
    gpu.clean();
}
