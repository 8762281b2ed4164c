//! The rules of stream capture, an error each.

use slabfence_sys::*;

use crate::gpu::Gpu;

const GLOBAL: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
const THREAD_LOCAL: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
const RELAXED: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;

/// Two streams, an event and a word of memory.
struct Scene {
    gpu: Gpu,
    one: CUstream,
    two: CUstream,
    event: CUevent,
    at: CUdeviceptr,
}

impl Scene {
    fn new() -> Scene {
        let gpu = Gpu::new(1);
        let (one, two, event, at) = (gpu.stream(), gpu.stream(), gpu.event(), gpu.alloc(64));
        Scene {
            gpu,
            one,
            two,
            event,
            at,
        }
    }

    fn begin(&self, stream: CUstream, mode: CUstreamCaptureMode) {
        ok!((self.gpu.api.cuStreamBeginCapture)(stream, mode));
    }

    fn fill(&self, stream: CUstream) -> CUresult {
        code!((self.gpu.api.cuMemsetD32Async)(self.at, 1, 1, stream))
    }

    /// `waiter` waits for what `stream` has now.
    fn join(&self, waiter: CUstream, stream: CUstream) -> CUresult {
        ok!((self.gpu.api.cuEventRecord)(self.event, stream));
        code!((self.gpu.api.cuStreamWaitEvent)(
            waiter,
            self.event,
            CUevent_wait_flags::empty()
        ))
    }

    fn status(&self, stream: CUstream) -> CUstreamCaptureStatus {
        let mut status = CUstreamCaptureStatus(99);
        ok!((self.gpu.api.cuStreamIsCapturing)(stream, &mut status));
        status
    }

    /// The capture of `stream` must end with this code, without a graph, and leave the stream usable.
    fn ends_with(&self, stream: CUstream, code: CUresult) {
        let mut graph = CUgraph::from_ptr(std::ptr::without_provenance_mut(1));
        assert_eq!(
            code!((self.gpu.api.cuStreamEndCapture)(stream, &mut graph)),
            code
        );
        assert!(graph.is_null());
        assert_eq!(
            self.status(stream),
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
        );
        assert_eq!(self.fill(stream), CUresult::CUDA_SUCCESS);
    }

    fn spoilt(&self, stream: CUstream) {
        assert_eq!(
            self.status(stream),
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED
        );
        assert_eq!(
            self.fill(stream),
            CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
        );
        self.ends_with(stream, CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }

    fn clean(self) {
        ok!((self.gpu.api.cuStreamDestroy)(self.one));
        ok!((self.gpu.api.cuStreamDestroy)(self.two));
        ok!((self.gpu.api.cuEventDestroy)(self.event));
        self.gpu.free(self.at);
        self.gpu.clean();
    }
}

#[test]
fn captured_work_is_not_done() {
    let scene = Scene::new();
    scene.gpu.write(scene.at, &[7]);
    scene.gpu.begin(scene.one);
    assert_eq!(scene.fill(scene.one), CUresult::CUDA_SUCCESS);
    assert_eq!(
        scene.status(scene.one),
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
    );
    let graph = scene.gpu.end(scene.one);
    scene.gpu.sync(scene.one);
    assert_eq!(scene.gpu.read(scene.at, 1), [7]);
    ok!((scene.gpu.api.cuGraphDestroy)(graph));
    scene.clean();
}

#[test]
fn the_legacy_stream_is_not_captured() {
    let scene = Scene::new();
    for stream in [CUstream::null(), CUstream::LEGACY] {
        refused!(
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
            (scene.gpu.api.cuStreamBeginCapture)(stream, RELAXED)
        );
    }
    scene.clean();
}

#[test]
fn a_stream_is_captured_once_and_ended_once() {
    let scene = Scene::new();
    let mut graph = CUgraph::null();
    refused!(
        CUDA_ERROR_ILLEGAL_STATE,
        (scene.gpu.api.cuStreamEndCapture)(scene.one, &mut graph)
    );
    scene.begin(scene.one, GLOBAL);
    refused!(
        CUDA_ERROR_ILLEGAL_STATE,
        (scene.gpu.api.cuStreamBeginCapture)(scene.one, GLOBAL)
    );
    let graph = scene.gpu.end(scene.one);
    ok!((scene.gpu.api.cuGraphDestroy)(graph));
    scene.clean();
}

#[test]
fn synchronising_or_querying_a_captured_stream_spoils_the_capture() {
    let scene = Scene::new();
    for call in [
        scene.gpu.api.cuStreamSynchronize,
        scene.gpu.api.cuStreamQuery,
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
        (scene.gpu.api.cuCtxSynchronize)()
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
    ok!((scene.gpu.api.cuGraphDestroy)(graph));
    scene.clean();
}

#[test]
fn a_thread_exchanges_its_mode_to_allocate_during_captures() {
    let scene = Scene::new();
    let exchange = |mut mode: CUstreamCaptureMode| {
        ok!((scene.gpu.api.cuThreadExchangeStreamCaptureMode)(&mut mode));
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
        (scene.gpu.api.cuThreadExchangeStreamCaptureMode)(&mut wrong)
    );
    let graph = scene.gpu.end(scene.one);
    ok!((scene.gpu.api.cuGraphDestroy)(graph));
    scene.clean();
}

#[test]
fn a_fork_that_is_joined_becomes_part_of_the_graph() {
    let scene = Scene::new();
    scene.gpu.begin(scene.one);
    assert_eq!(scene.fill(scene.one), CUresult::CUDA_SUCCESS);
    assert_eq!(scene.join(scene.two, scene.one), CUresult::CUDA_SUCCESS);
    assert_eq!(
        scene.status(scene.two),
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
    );
    assert_eq!(scene.fill(scene.two), CUresult::CUDA_SUCCESS);
    assert_eq!(scene.fill(scene.one), CUresult::CUDA_SUCCESS);
    assert_eq!(scene.join(scene.one, scene.two), CUresult::CUDA_SUCCESS);
    assert_eq!(scene.fill(scene.one), CUresult::CUDA_SUCCESS);
    let graph = scene.gpu.end(scene.one);
    assert_eq!(
        scene.status(scene.two),
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
    );
    let (mut nodes, mut edges) = (0, 0);
    ok!((scene.gpu.api.cuGraphGetNodes)(
        graph,
        std::ptr::null_mut(),
        &mut nodes
    ));
    ok!((scene.gpu.api.cuGraphGetEdges)(
        graph,
        std::ptr::null_mut(),
        std::ptr::null_mut(),
        &mut edges
    ));
    assert_eq!((nodes, edges), (4, 4), "a diamond");
    ok!((scene.gpu.api.cuGraphDestroy)(graph));
    scene.clean();
}

#[test]
fn a_fork_that_is_not_joined_ends_the_capture_without_a_graph() {
    let scene = Scene::new();
    scene.gpu.begin(scene.one);
    assert_eq!(scene.fill(scene.one), CUresult::CUDA_SUCCESS);
    assert_eq!(scene.join(scene.two, scene.one), CUresult::CUDA_SUCCESS);
    assert_eq!(scene.fill(scene.two), CUresult::CUDA_SUCCESS);
    scene.ends_with(scene.one, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    assert_eq!(
        scene.status(scene.two),
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
    );
    scene.clean();
}

#[test]
fn a_capture_is_ended_in_the_stream_that_began_it() {
    let scene = Scene::new();
    scene.gpu.begin(scene.one);
    assert_eq!(scene.join(scene.two, scene.one), CUresult::CUDA_SUCCESS);
    let mut graph = CUgraph::null();
    refused!(
        CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
        (scene.gpu.api.cuStreamEndCapture)(scene.two, &mut graph)
    );
    scene.spoilt(scene.one);
    scene.clean();
}

#[test]
fn a_capture_is_ended_by_the_thread_that_began_it_unless_it_is_relaxed() {
    let scene = Scene::new();
    for (mode, code) in [
        (GLOBAL, CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD),
        (
            THREAD_LOCAL,
            CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
        ),
        (RELAXED, CUresult::CUDA_SUCCESS),
    ] {
        scene.begin(scene.one, mode);
        let scene = &scene;
        let graph = std::thread::scope(|scope| {
            let other = scope.spawn(move || {
                let mut graph = CUgraph::null();
                assert_eq!(
                    code!((scene.gpu.api.cuStreamEndCapture)(scene.one, &mut graph)),
                    code
                );
                graph
            });
            other.join().expect("the other thread's assertions hold")
        });
        let graph = if graph.is_null() {
            scene.gpu.end(scene.one)
        } else {
            graph
        };
        ok!((scene.gpu.api.cuGraphDestroy)(graph));
    }
    scene.clean();
}

#[test]
fn a_dependency_on_work_outside_the_capture_is_refused() {
    let scene = Scene::new();
    ok!((scene.gpu.api.cuEventRecord)(scene.event, scene.two));
    scene.gpu.begin(scene.one);
    let none = CUevent_wait_flags::empty();
    let wait = scene.gpu.api.cuStreamWaitEvent;
    refused!(
        CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
        wait(scene.one, scene.event, none)
    );
    scene.spoilt(scene.one);
    scene.gpu.begin(scene.one);
    ok!(wait(
        scene.one,
        scene.event,
        CUevent_wait_flags::CU_EVENT_WAIT_EXTERNAL
    ));
    let graph = scene.gpu.end(scene.one);
    let (mut node, mut count, mut kind) = (CUgraphNode::null(), 1, CUgraphNodeType(99));
    ok!((scene.gpu.api.cuGraphGetNodes)(
        graph, &mut node, &mut count
    ));
    ok!((scene.gpu.api.cuGraphNodeGetType)(node, &mut kind));
    assert_eq!(
        (count, kind),
        (1, CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT)
    );
    ok!((scene.gpu.api.cuGraphDestroy)(graph));
    scene.clean();
}

#[test]
fn two_captures_do_not_merge() {
    let scene = Scene::new();
    scene.gpu.begin(scene.one);
    scene.gpu.begin(scene.two);
    assert_eq!(scene.fill(scene.two), CUresult::CUDA_SUCCESS);
    assert_eq!(
        scene.join(scene.one, scene.two),
        CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE
    );
    scene.spoilt(scene.one);
    scene.spoilt(scene.two);
    scene.clean();
}

#[test]
fn the_legacy_stream_may_not_depend_on_a_captured_blocking_stream() {
    let scene = Scene::new();
    let mut blocking = CUstream::null();
    ok!((scene.gpu.api.cuStreamCreate)(
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
    ok!((scene.gpu.api.cuEventRecord)(scene.event, scene.one));
    let wait = scene.gpu.api.cuStreamWaitEvent;
    let none = CUevent_wait_flags::empty();
    refused!(
        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
        wait(CUstream::null(), scene.event, none)
    );
    scene.spoilt(scene.one);
    ok!((scene.gpu.api.cuStreamDestroy)(blocking));
    scene.clean();
}

#[test]
fn a_captured_event_is_not_queried_or_awaited_by_the_host() {
    let scene = Scene::new();
    for call in [scene.gpu.api.cuEventQuery, scene.gpu.api.cuEventSynchronize] {
        scene.gpu.begin(scene.one);
        ok!((scene.gpu.api.cuEventRecord)(scene.event, scene.one));
        refused!(CUDA_ERROR_CAPTURED_EVENT, call(scene.event));
        scene.spoilt(scene.one);
        refused!(CUDA_ERROR_CAPTURED_EVENT, call(scene.event));
    }
    let wait = scene.gpu.api.cuStreamWaitEvent;
    refused!(
        CUDA_ERROR_CAPTURED_EVENT,
        wait(scene.two, scene.event, CUevent_wait_flags::empty())
    );
    ok!((scene.gpu.api.cuEventRecord)(scene.event, scene.one));
    ok!((scene.gpu.api.cuEventSynchronize)(scene.event));
    scene.clean();
}

#[test]
fn querying_any_event_is_unsafe_while_a_global_capture_is_open() {
    let scene = Scene::new();
    ok!((scene.gpu.api.cuEventRecord)(scene.event, scene.two));
    scene.begin(scene.one, GLOBAL);
    refused!(
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        (scene.gpu.api.cuEventQuery)(scene.event)
    );
    scene.spoilt(scene.one);
    scene.clean();
}

#[test]
fn destroying_the_origin_stream_ends_its_capture() {
    let scene = Scene::new();
    let origin = scene.gpu.stream();
    scene.gpu.begin(origin);
    assert_eq!(scene.fill(origin), CUresult::CUDA_SUCCESS);
    assert_eq!(scene.join(scene.two, origin), CUresult::CUDA_SUCCESS);
    ok!((scene.gpu.api.cuStreamDestroy)(origin));
    assert_eq!(
        scene.status(scene.two),
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
    );
    let heir = scene.gpu.stream();
    assert_eq!(heir, origin, "the handle is recycled, the capture is not");
    assert_eq!(
        scene.status(heir),
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
    );
    ok!((scene.gpu.api.cuStreamDestroy)(heir));
    scene.clean();
}

#[test]
fn destroying_a_forked_stream_spoils_the_capture() {
    let scene = Scene::new();
    let fork = scene.gpu.stream();
    scene.gpu.begin(scene.one);
    assert_eq!(scene.fill(scene.one), CUresult::CUDA_SUCCESS);
    assert_eq!(scene.join(fork, scene.one), CUresult::CUDA_SUCCESS);
    ok!((scene.gpu.api.cuStreamDestroy)(fork));
    scene.spoilt(scene.one);
    scene.clean();
}

#[test]
fn capture_info_tells_the_graph_and_what_the_next_node_depends_on() {
    let scene = Scene::new();
    let info = scene.gpu.api.cuStreamGetCaptureInfo;
    let (mut status, mut id, mut graph) = (CUstreamCaptureStatus(99), 0, CUgraph::null());
    let (mut nodes, mut count) = (std::ptr::null(), 99);
    ok!(info(
        scene.one,
        &mut status,
        &mut id,
        &mut graph,
        &mut nodes,
        &mut count
    ));
    assert_eq!(status, CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE);
    scene.gpu.begin(scene.one);
    ok!(info(
        scene.one,
        &mut status,
        &mut id,
        &mut graph,
        &mut nodes,
        &mut count
    ));
    assert_eq!(
        (status, count),
        (CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE, 0)
    );
    assert_ne!(id, 0);
    assert_eq!(scene.fill(scene.one), CUresult::CUDA_SUCCESS);
    let same = id;
    ok!(info(
        scene.one,
        &mut status,
        &mut id,
        &mut graph,
        &mut nodes,
        &mut count
    ));
    assert_eq!((id, count), (same, 1));
    // SAFETY: the driver's array, which is valid until this thread's next such call.
    let next = unsafe { nodes.read() };
    let (mut only, mut total) = (CUgraphNode::null(), 1);
    ok!((scene.gpu.api.cuGraphGetNodes)(
        graph, &mut only, &mut total
    ));
    assert_eq!((total, only), (1, next));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (scene.gpu.api.cuGraphDestroy)(graph)
    );
    let ended = scene.gpu.end(scene.one);
    assert_eq!(ended, graph);
    ok!((scene.gpu.api.cuGraphDestroy)(graph));
    scene.clean();
}
