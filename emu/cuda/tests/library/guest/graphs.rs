//! Graphs that are made by hand.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

use cudarc::driver::sys::{self, CUmemorytype};

use super::modules::function;
use super::{bytes, context, filled};

/// A kernel node's parameters.
fn kernel(function: sys::CUfunction, params: *mut *mut c_void) -> sys::CUDA_KERNEL_NODE_PARAMS {
    sys::CUDA_KERNEL_NODE_PARAMS {
        func: function,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 2,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: params,
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    }
}

/// A copy of bytes between places in device memory.
fn copy(to: u64, from: u64, width: usize, height: usize) -> sys::CUDA_MEMCPY3D {
    let device = CUmemorytype::CU_MEMORYTYPE_DEVICE;
    sys::CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: device,
        srcHost: std::ptr::null(),
        srcDevice: from,
        srcArray: std::ptr::null_mut(),
        reserved0: std::ptr::null_mut(),
        srcPitch: 16,
        srcHeight: 1,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: device,
        dstHost: std::ptr::null_mut(),
        dstDevice: to,
        dstArray: std::ptr::null_mut(),
        reserved1: std::ptr::null_mut(),
        dstPitch: 16,
        dstHeight: 1,
        WidthInBytes: width,
        Height: height,
        Depth: 1,
    }
}

static CALLED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn called(_: *mut c_void) {
    CALLED.fetch_add(1, Ordering::Relaxed);
}

/// A fill, behind it a kernel and a host function, behind both a node that does nothing, and last a copy.
struct Made {
    graph: sys::CUgraph,
    /// Fill, kernel, host function, join, copy.
    nodes: [sys::CUgraphNode; 5],
    add: sys::CUfunction,
    at: u64,
    copied: u64,
}

fn made() -> Made {
    let (add, at, copied) = (function(c"add"), filled(8, 0xff), filled(8, 0));
    let (mut graph, none) = (std::ptr::null_mut(), std::ptr::null_mut());
    ok!(sys::cuGraphCreate(&mut graph, 0));
    let mut nodes = [std::ptr::null_mut(); 5];
    let [fill, run, host, join, last] = &mut nodes;
    let params = sys::CUDA_MEMSET_NODE_PARAMS {
        dst: at,
        pitch: 0,
        value: 5,
        elementSize: 4,
        width: 2,
        height: 1,
    };
    ok!(sys::cuGraphAddMemsetNode(
        fill,
        graph,
        std::ptr::null(),
        0,
        &params,
        none
    ));
    let (mut to, mut number) = (at, 10u32);
    let mut arguments: [*mut c_void; 2] = [(&raw mut to).cast(), (&raw mut number).cast()];
    ok!(sys::cuGraphAddKernelNode_v2(
        run,
        graph,
        fill,
        1,
        &kernel(add, arguments.as_mut_ptr())
    ));
    let params = sys::CUDA_HOST_NODE_PARAMS {
        fn_: Some(called),
        userData: std::ptr::null_mut(),
    };
    ok!(sys::cuGraphAddHostNode(host, graph, fill, 1, &params));
    ok!(sys::cuGraphAddEmptyNode(
        join,
        graph,
        [*run, *host].as_ptr(),
        2
    ));
    ok!(sys::cuGraphAddMemcpyNode(
        last,
        graph,
        join,
        1,
        &copy(copied, at, 8, 1),
        none
    ));
    Made {
        graph,
        nodes,
        add,
        at,
        copied,
    }
}

fn launch(exec: sys::CUgraphExec) {
    ok!(sys::cuGraphLaunch(exec, std::ptr::null_mut()));
    ok!(sys::cuStreamSynchronize(std::ptr::null_mut()));
}

fn instantiate(graph: sys::CUgraph) -> sys::CUgraphExec {
    let mut exec = std::ptr::null_mut();
    ok!(sys::cuGraphInstantiateWithFlags(&mut exec, graph, 0));
    exec
}

guest_test! {
    fn nodes_run_in_the_order_of_their_edges() {
        let _context = context(0);
        let made = made();
        launch(instantiate(made.graph));
        assert_eq!(bytes(made.copied, 8), [15, 0, 0, 0, 15, 0, 0, 0]);
        assert_eq!(CALLED.load(Ordering::Relaxed), 1);
    }
}

guest_test! {
    fn roots_and_neighbours_are_told() {
        let _context = context(0);
        let Made { graph, nodes: [fill, run, host, join, last], .. } = made();
        let (mut found, mut count) = ([std::ptr::null_mut(); 3], 3);
        ok!(sys::cuGraphGetRootNodes(graph, found.as_mut_ptr(), &mut count));
        assert_eq!((count, found[0]), (1, fill));
        count = 3;
        ok!(sys::cuGraphNodeGetDependencies_v2(join, found.as_mut_ptr(), std::ptr::null_mut(), &mut count));
        assert_eq!((count, found), (2, [run, host, std::ptr::null_mut()]));
        count = 3;
        ok!(sys::cuGraphNodeGetDependentNodes_v2(join, found.as_mut_ptr(), std::ptr::null_mut(), &mut count));
        assert_eq!((count, found[0]), (1, last));
        let mut kind = sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL;
        ok!(sys::cuGraphNodeGetType(join, &mut kind));
        assert_eq!(kind, sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY);
    }
}

guest_test! {
    fn a_clone_is_a_graph_of_its_own() {
        let _context = context(0);
        let made = made();
        let mut copy = std::ptr::null_mut();
        ok!(sys::cuGraphClone(&mut copy, made.graph));
        ok!(sys::cuGraphDestroy(made.graph));
        let mut count = 0;
        ok!(sys::cuGraphGetNodes(copy, std::ptr::null_mut(), &mut count));
        assert_eq!(count, 5);
        launch(instantiate(copy));
        assert_eq!(bytes(made.copied, 8), [15, 0, 0, 0, 15, 0, 0, 0]);
    }
}

guest_test! {
    fn a_kernels_parameters_are_changed_in_the_executable_alone() {
        let _context = context(0);
        let made = made();
        let exec = instantiate(made.graph);
        let (mut to, mut number) = (made.at, 100u32);
        let mut arguments: [*mut c_void; 2] = [(&raw mut to).cast(), (&raw mut number).cast()];
        let params = kernel(made.add, arguments.as_mut_ptr());
        ok!(sys::cuGraphExecKernelNodeSetParams_v2(exec, made.nodes[1], &params));
        launch(exec);
        assert_eq!(bytes(made.copied, 8), [105, 0, 0, 0, 105, 0, 0, 0]);
        launch(instantiate(made.graph));
        assert_eq!(bytes(made.copied, 8), [15, 0, 0, 0, 15, 0, 0, 0]);
        ok!(sys::cuGraphKernelNodeSetParams_v2(made.nodes[1], &params));
        launch(instantiate(made.graph));
        assert_eq!(bytes(made.copied, 8), [105, 0, 0, 0, 105, 0, 0, 0]);
        refused!(CUDA_ERROR_INVALID_VALUE, sys::cuGraphExecKernelNodeSetParams_v2(exec, made.nodes[0], &params));
    }
}

guest_test! {
    fn an_instantiation_reports_how_it_went() {
        use sys::CUgraphInstantiateResult as R;
        let _context = context(0);
        let made = made();
        let mut params = sys::CUDA_GRAPH_INSTANTIATE_PARAMS {
            flags: 0,
            hUploadStream: std::ptr::null_mut(),
            hErrNode_out: made.nodes[0],
            result_out: R::CUDA_GRAPH_INSTANTIATE_ERROR,
        };
        let mut exec = std::ptr::null_mut();
        ok!(sys::cuGraphInstantiateWithParams(&mut exec, made.graph, &mut params));
        assert_eq!(params.result_out, R::CUDA_GRAPH_INSTANTIATE_SUCCESS);
        assert!(params.hErrNode_out.is_null());
        launch(exec);
        params.flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH.0.into();
        refused!(CUDA_ERROR_INVALID_VALUE, sys::cuGraphInstantiateWithParams(&mut exec, made.graph, &mut params));
        assert_eq!(params.result_out, R::CUDA_GRAPH_INSTANTIATE_ERROR);
    }
}

guest_test! {
    fn nodes_that_the_machine_cannot_have_are_refused() {
        let _context = context(0);
        let made = made();
        let (mut node, none): (_, sys::CUcontext) = (std::ptr::null_mut(), std::ptr::null_mut());
        // Two rows that do not follow each other are no run of bytes.
        let rows = copy(made.copied, made.at, 4, 2);
        refused!(CUDA_ERROR_NOT_SUPPORTED, sys::cuGraphAddMemcpyNode(&mut node, made.graph, none.cast(), 0, &rows, none));
        let odd = sys::CUDA_MEMSET_NODE_PARAMS { dst: made.at, pitch: 0, value: 0, elementSize: 3, width: 1, height: 1 };
        refused!(CUDA_ERROR_INVALID_VALUE, sys::cuGraphAddMemsetNode(&mut node, made.graph, none.cast(), 0, &odd, none));
        let mut count = 0;
        ok!(sys::cuGraphGetNodes(made.graph, std::ptr::null_mut(), &mut count));
        assert_eq!(count, 5);
    }
}
