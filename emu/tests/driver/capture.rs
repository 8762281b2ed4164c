//! How captures begin, fork, join and end, an error each.

use slabfence_sys::*;

use crate::capture_scene::{GLOBAL, RELAXED, Scene, THREAD_LOCAL};

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
    ok!((scene.gpu.api.cuGraphDestroy.unwrap())(graph));
    scene.clean();
}

#[test]
fn the_legacy_stream_is_not_captured() {
    let scene = Scene::new();
    for stream in [CUstream::null(), CUstream::LEGACY] {
        refused!(
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
            (scene.gpu.api.cuStreamBeginCapture.unwrap())(stream, RELAXED)
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
        (scene.gpu.api.cuStreamEndCapture.unwrap())(scene.one, &mut graph)
    );
    scene.begin(scene.one, GLOBAL);
    refused!(
        CUDA_ERROR_ILLEGAL_STATE,
        (scene.gpu.api.cuStreamBeginCapture.unwrap())(scene.one, GLOBAL)
    );
    let graph = scene.gpu.end(scene.one);
    ok!((scene.gpu.api.cuGraphDestroy.unwrap())(graph));
    scene.clean();
}

#[test]
fn a_stream_that_is_captured_does_not_tell_its_id() {
    let scene = Scene::new();
    let get_id = scene.gpu.api.cuStreamGetId.unwrap();
    let mut id = 0;
    scene.begin(scene.one, THREAD_LOCAL);
    refused!(
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        get_id(scene.one, &mut id)
    );
    ok!(get_id(scene.two, &mut id));
    let graph = scene.gpu.end(scene.one);
    ok!(get_id(scene.one, &mut id));
    ok!((scene.gpu.api.cuGraphDestroy.unwrap())(graph));
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
    ok!((scene.gpu.api.cuGraphGetNodes.unwrap())(
        graph,
        std::ptr::null_mut(),
        &mut nodes
    ));
    ok!((scene.gpu.api.cuGraphGetEdges.unwrap())(
        graph,
        std::ptr::null_mut(),
        std::ptr::null_mut(),
        &mut edges
    ));
    assert_eq!((nodes, edges), (4, 4), "a diamond");
    ok!((scene.gpu.api.cuGraphDestroy.unwrap())(graph));
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
        (scene.gpu.api.cuStreamEndCapture.unwrap())(scene.two, &mut graph)
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
                    code!((scene.gpu.api.cuStreamEndCapture.unwrap())(
                        scene.one, &mut graph
                    )),
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
        ok!((scene.gpu.api.cuGraphDestroy.unwrap())(graph));
    }
    scene.clean();
}

#[test]
fn a_dependency_on_work_outside_the_capture_is_refused() {
    let scene = Scene::new();
    ok!((scene.gpu.api.cuEventRecord.unwrap())(
        scene.event,
        scene.two
    ));
    scene.gpu.begin(scene.one);
    let none = CUevent_wait_flags::empty();
    let wait = scene.gpu.api.cuStreamWaitEvent.unwrap();
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
    ok!((scene.gpu.api.cuGraphGetNodes.unwrap())(
        graph, &mut node, &mut count
    ));
    ok!((scene.gpu.api.cuGraphNodeGetType.unwrap())(node, &mut kind));
    assert_eq!(
        (count, kind),
        (1, CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT)
    );
    ok!((scene.gpu.api.cuGraphDestroy.unwrap())(graph));
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
fn destroying_the_origin_stream_ends_its_capture() {
    let scene = Scene::new();
    let origin = scene.gpu.stream();
    scene.gpu.begin(origin);
    assert_eq!(scene.fill(origin), CUresult::CUDA_SUCCESS);
    assert_eq!(scene.join(scene.two, origin), CUresult::CUDA_SUCCESS);
    ok!((scene.gpu.api.cuStreamDestroy.unwrap())(origin));
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
    ok!((scene.gpu.api.cuStreamDestroy.unwrap())(heir));
    scene.clean();
}

#[test]
fn destroying_a_forked_stream_spoils_the_capture() {
    let scene = Scene::new();
    let fork = scene.gpu.stream();
    scene.gpu.begin(scene.one);
    assert_eq!(scene.fill(scene.one), CUresult::CUDA_SUCCESS);
    assert_eq!(scene.join(fork, scene.one), CUresult::CUDA_SUCCESS);
    ok!((scene.gpu.api.cuStreamDestroy.unwrap())(fork));
    scene.spoilt(scene.one);
    scene.clean();
}

#[test]
fn capture_info_tells_the_graph_and_what_the_next_node_depends_on() {
    let scene = Scene::new();
    let info = scene.gpu.api.cuStreamGetCaptureInfo.unwrap();
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
    ok!((scene.gpu.api.cuGraphGetNodes.unwrap())(
        graph, &mut only, &mut total
    ));
    assert_eq!((total, only), (1, next));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (scene.gpu.api.cuGraphDestroy.unwrap())(graph)
    );
    let ended = scene.gpu.end(scene.one);
    assert_eq!(ended, graph);
    ok!((scene.gpu.api.cuGraphDestroy.unwrap())(graph));
    scene.clean();
}

#[test]
fn the_newer_abis_tell_what_kind_every_dependency_and_edge_is() {
    let scene = Scene::new();
    let info = scene.gpu.api.cuStreamGetCaptureInfo_v3.unwrap();
    let (mut status, mut id, mut graph) = (CUstreamCaptureStatus(99), 0, CUgraph::null());
    let (mut nodes, mut data, mut count) = (std::ptr::null(), std::ptr::null(), 99);
    scene.gpu.begin(scene.one);
    assert_eq!(scene.fill(scene.one), CUresult::CUDA_SUCCESS);
    ok!(info(
        scene.one,
        &mut status,
        &mut id,
        &mut graph,
        &mut nodes,
        &mut data,
        &mut count
    ));
    assert_eq!(count, 1);
    // SAFETY: the driver's array of `count` elements, which is valid until this thread's next such call.
    let kind: CUgraphEdgeData = unsafe { data.read() };
    assert_eq!(kind, CUgraphEdgeData::default());
    assert_eq!(scene.fill(scene.one), CUresult::CUDA_SUCCESS);
    let graph = scene.gpu.end(scene.one);
    let (mut from, mut to, mut edges) = ([CUgraphNode::null(); 2], [CUgraphNode::null(); 2], 2);
    let mut kinds = [CUgraphEdgeData {
        from_port: 9,
        ..CUgraphEdgeData::default()
    }; 3];
    let list = scene.gpu.api.cuGraphGetEdges_v2.unwrap();
    ok!(list(
        graph,
        from.as_mut_ptr(),
        to.as_mut_ptr(),
        kinds.as_mut_ptr(),
        &mut edges
    ));
    assert_eq!(edges, 1);
    assert!(from[0] != to[0] && !from[0].is_null() && !to[0].is_null());
    assert_eq!(kinds.map(|kind| kind.from_port), [0, 0, 9]);
    ok!((scene.gpu.api.cuGraphDestroy.unwrap())(graph));
    scene.clean();
}
