//! What must not be called while a stream is captured, and by whom.

use slabfence_sys::*;

use crate::capture_scene::{GLOBAL, RELAXED, Scene, THREAD_LOCAL};

#[test]
fn synchronising_or_querying_a_captured_stream_spoils_the_capture() {
    let scene = Scene::new();
    for call in [
        scene.gpu.api.cuStreamSynchronize,
        scene.gpu.api.cuStreamQuery.unwrap(),
    ] {
        scene.begin(scene.one, RELAXED);
        refused!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, call(scene.one));
        scene.spoilt(scene.one);
    }
    scene.clean();
}

#[test]
fn synchronising_the_context_spoils_the_capture() {
    let scene = Scene::new();
    scene.begin(scene.one, RELAXED);
    refused!(
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        (scene.gpu.api.cuCtxSynchronize.unwrap())()
    );
    scene.spoilt(scene.one);
    scene.clean();
}

#[test]
fn allocating_while_a_global_capture_is_open_spoils_it_from_any_thread() {
    let scene = Scene::new();
    let mut at = CUdeviceptr(0);
    scene.begin(scene.one, GLOBAL);
    refused!(
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        (scene.gpu.api.cuMemAlloc)(&mut at, 64)
    );
    scene.spoilt(scene.one);
    scene.begin(scene.one, GLOBAL);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            scene.gpu.on(0);
            let mut at = CUdeviceptr(0);
            refused!(
                CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                (scene.gpu.api.cuMemAlloc)(&mut at, 64)
            );
        });
    });
    scene.spoilt(scene.one);
    scene.clean();
}

#[test]
fn a_thread_local_capture_forbids_allocating_to_its_own_thread_only() {
    let scene = Scene::new();
    scene.begin(scene.one, THREAD_LOCAL);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            scene.gpu.on(0);
            let at = scene.gpu.alloc(64);
            scene.gpu.free(at);
        });
    });
    assert_eq!(
        scene.status(scene.one),
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
    );
    let mut at = CUdeviceptr(0);
    refused!(
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        (scene.gpu.api.cuMemAlloc)(&mut at, 64)
    );
    scene.spoilt(scene.one);
    scene.clean();
}

#[test]
fn a_relaxed_capture_forbids_no_allocation() {
    let scene = Scene::new();
    scene.begin(scene.one, RELAXED);
    let at = scene.gpu.alloc(64);
    scene.gpu.free(at);
    let graph = scene.gpu.end(scene.one);
    ok!((scene.gpu.api.cuGraphDestroy.unwrap())(graph));
    scene.clean();
}

#[test]
fn a_thread_exchanges_its_mode_to_allocate_during_captures() {
    let scene = Scene::new();
    let exchange = |mut mode: CUstreamCaptureMode| {
        ok!((scene.gpu.api.cuThreadExchangeStreamCaptureMode.unwrap())(
            &mut mode
        ));
        mode
    };
    scene.begin(scene.one, GLOBAL);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            scene.gpu.on(0);
            assert_eq!(exchange(THREAD_LOCAL), GLOBAL);
            let at = scene.gpu.alloc(64);
            scene.gpu.free(at);
            assert_eq!(exchange(GLOBAL), THREAD_LOCAL);
        });
    });
    assert_eq!(exchange(RELAXED), GLOBAL);
    let at = scene.gpu.alloc(64);
    scene.gpu.free(at);
    assert_eq!(exchange(GLOBAL), RELAXED);
    let mut wrong = CUstreamCaptureMode(3);
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (scene.gpu.api.cuThreadExchangeStreamCaptureMode.unwrap())(&mut wrong)
    );
    let graph = scene.gpu.end(scene.one);
    ok!((scene.gpu.api.cuGraphDestroy.unwrap())(graph));
    scene.clean();
}

#[test]
fn the_legacy_stream_may_not_depend_on_a_captured_blocking_stream() {
    let scene = Scene::new();
    let mut blocking = CUstream::null();
    ok!((scene.gpu.api.cuStreamCreate.unwrap())(
        &mut blocking,
        CUstream_flags::empty()
    ));
    scene.gpu.begin(blocking);
    assert_eq!(
        scene.fill(CUstream::null()),
        CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
    );
    scene.spoilt(blocking);
    scene.gpu.begin(scene.one);
    assert_eq!(
        scene.fill(CUstream::null()),
        CUresult::CUDA_SUCCESS,
        "a non-blocking stream is none of its business"
    );
    ok!((scene.gpu.api.cuEventRecord.unwrap())(
        scene.event,
        scene.one
    ));
    let wait = scene.gpu.api.cuStreamWaitEvent.unwrap();
    let none = CUevent_wait_flags::empty();
    refused!(
        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
        wait(CUstream::null(), scene.event, none)
    );
    scene.spoilt(scene.one);
    ok!((scene.gpu.api.cuStreamDestroy.unwrap())(blocking));
    scene.clean();
}

#[test]
fn a_captured_event_is_not_queried_or_awaited_by_the_host() {
    let scene = Scene::new();
    for call in [
        scene.gpu.api.cuEventQuery.unwrap(),
        scene.gpu.api.cuEventSynchronize.unwrap(),
    ] {
        scene.gpu.begin(scene.one);
        ok!((scene.gpu.api.cuEventRecord.unwrap())(
            scene.event,
            scene.one
        ));
        refused!(CUDA_ERROR_CAPTURED_EVENT, call(scene.event));
        scene.spoilt(scene.one);
        refused!(CUDA_ERROR_CAPTURED_EVENT, call(scene.event));
    }
    let wait = scene.gpu.api.cuStreamWaitEvent.unwrap();
    refused!(
        CUDA_ERROR_CAPTURED_EVENT,
        wait(scene.two, scene.event, CUevent_wait_flags::empty())
    );
    ok!((scene.gpu.api.cuEventRecord.unwrap())(
        scene.event,
        scene.one
    ));
    ok!((scene.gpu.api.cuEventSynchronize.unwrap())(scene.event));
    scene.clean();
}

#[test]
fn querying_any_event_is_unsafe_while_a_global_capture_is_open() {
    let scene = Scene::new();
    ok!((scene.gpu.api.cuEventRecord.unwrap())(
        scene.event,
        scene.two
    ));
    scene.begin(scene.one, GLOBAL);
    refused!(
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        (scene.gpu.api.cuEventQuery.unwrap())(scene.event)
    );
    scene.spoilt(scene.one);
    scene.clean();
}
