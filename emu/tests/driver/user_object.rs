//! User objects follow graphs and execs, and die once.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

use slabfence_sys::*;

use crate::gpu::{Gpu, until};
use crate::stream::Gate;

unsafe extern "C" fn count(counter: *mut c_void) {
    // SAFETY: the test keeps the counter until the destructor has run.
    unsafe { &*counter.cast::<AtomicU32>() }.fetch_add(1, Ordering::Release);
}

fn object(gpu: &Gpu, counter: &AtomicU32, references: u32) -> CUuserObject {
    let mut object = CUuserObject::null();
    let pointer = std::ptr::from_ref(counter).cast_mut().cast();
    let flags = CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC;
    ok!((gpu.api.cuUserObjectCreate.unwrap())(
        &mut object,
        pointer,
        Some(count),
        references,
        flags
    ));
    object
}

const MOVE: CUuserObjectRetain_flags = CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE;

#[test]
fn the_destructor_runs_once_on_the_last_release() {
    let gpu = Gpu::new(1);
    let counter = AtomicU32::new(0);
    let object = object(&gpu, &counter, 1);
    ok!((gpu.api.cuUserObjectRetain.unwrap())(object, 2));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuUserObjectRelease.unwrap())(object, 4)
    );
    ok!((gpu.api.cuUserObjectRelease.unwrap())(object, 2));
    assert_eq!(counter.load(Ordering::Acquire), 0);
    ok!((gpu.api.cuUserObjectRelease.unwrap())(object, 1));
    until("the destructor", || counter.load(Ordering::Acquire) == 1);
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        (gpu.api.cuUserObjectRelease.unwrap())(object, 1)
    );
    gpu.clean();
    assert_eq!(counter.load(Ordering::Acquire), 1);
}

#[test]
fn an_object_outlives_its_graph_in_the_execs_made_from_it() {
    let gpu = Gpu::new(1);
    let (counter, mut graph) = (AtomicU32::new(0), CUgraph::null());
    let object = object(&gpu, &counter, 1);
    ok!((gpu.api.cuGraphCreate.unwrap())(&mut graph, 0));
    ok!((gpu.api.cuGraphRetainUserObject.unwrap())(
        graph, object, 1, MOVE
    ));
    let exec = gpu.instantiate(graph);
    ok!((gpu.api.cuGraphDestroy.unwrap())(graph));
    assert_eq!(gpu.machine.live().user_objects, 1);
    ok!((gpu.api.cuGraphExecDestroy.unwrap())(exec));
    until("the destructor", || counter.load(Ordering::Acquire) == 1);
    gpu.clean();
}

#[test]
fn an_exec_that_runs_keeps_its_objects_until_it_is_done() {
    let gpu = Gpu::new(1);
    let (counter, gate, stream) = (AtomicU32::new(0), Gate::new(), gpu.stream());
    let object = object(&gpu, &counter, 1);
    gpu.begin(stream);
    gate.close_stream(&gpu, stream);
    let graph = gpu.end(stream);
    ok!((gpu.api.cuGraphRetainUserObject.unwrap())(
        graph,
        object,
        1,
        CUuserObjectRetain_flags::empty()
    ));
    ok!((gpu.api.cuUserObjectRelease.unwrap())(object, 1));
    let exec = gpu.instantiate(graph);
    ok!((gpu.api.cuGraphDestroy.unwrap())(graph));
    ok!((gpu.api.cuGraphLaunch.unwrap())(exec, stream));
    ok!((gpu.api.cuGraphExecDestroy.unwrap())(exec));
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        (gpu.api.cuGraphLaunch.unwrap())(exec, stream)
    );
    assert_eq!(
        (gpu.machine.live().execs, counter.load(Ordering::Acquire)),
        (1, 0)
    );
    gate.open();
    gpu.sync(stream);
    until("the destructor", || counter.load(Ordering::Acquire) == 1);
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    gpu.clean();
}

#[test]
fn a_graph_takes_no_references_that_the_caller_does_not_have() {
    let gpu = Gpu::new(1);
    let (counter, mut graph) = (AtomicU32::new(0), CUgraph::null());
    let object = object(&gpu, &counter, 1);
    ok!((gpu.api.cuGraphCreate.unwrap())(&mut graph, 0));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuGraphRetainUserObject.unwrap())(graph, object, 2, MOVE)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuGraphRetainUserObject.unwrap())(graph, object, 0, MOVE)
    );
    ok!((gpu.api.cuGraphDestroy.unwrap())(graph));
    ok!((gpu.api.cuUserObjectRelease.unwrap())(object, 1));
    until("the destructor", || counter.load(Ordering::Acquire) == 1);
    gpu.clean();
}
