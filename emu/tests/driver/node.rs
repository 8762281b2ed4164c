//! What nodes say of themselves.

use std::ffi::c_void;

use slabfence_sys::*;

use crate::gpu::{Gpu, PTX};

unsafe extern "C" fn nothing(_: *mut c_void) {}

#[test]
fn nodes_of_each_kind_answer_their_own_getter_and_no_other() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (add, stream, at) = (gpu.function(module, "add"), gpu.stream(), gpu.alloc(64));
    gpu.begin(stream);
    assert_eq!(
        gpu.launch(add, 1, 32, stream, &[at.0, 5]),
        CUresult::CUDA_SUCCESS
    );
    ok!((gpu.api.cuMemcpyDtoDAsync.unwrap())(
        CUdeviceptr(at.0 + 32),
        at,
        16,
        stream
    ));
    ok!((gpu.api.cuMemsetD32Async.unwrap())(at, 7, 3, stream));
    let argument = std::ptr::without_provenance_mut(9);
    ok!((gpu.api.cuLaunchHostFunc.unwrap())(
        stream,
        Some(nothing),
        argument
    ));
    let graph = gpu.end(stream);

    let edges = gpu.api.cuGraphGetEdges_v2.expect("the entry");
    let none = std::ptr::null_mut();
    let mut count = 0;
    ok!(edges(graph, none, none, std::ptr::null_mut(), &mut count));
    assert_eq!(count, 3);
    let (mut from, mut to) = ([CUgraphNode::null(); 4], [CUgraphNode::null(); 4]);
    let dirty = CUgraphEdgeData {
        from_port: 9,
        ..CUgraphEdgeData::default()
    };
    let mut data = [dirty; 4];
    count = 4;
    let (first, second) = (from.as_mut_ptr(), to.as_mut_ptr());
    ok!(edges(graph, first, second, data.as_mut_ptr(), &mut count));
    assert_eq!(count, 3);
    assert_eq!(from[1..3], to[..2]);
    assert_eq!(data[..3], [CUgraphEdgeData::default(); 3]);
    let [kernel, copy, fill] = [from[0], from[1], from[2]];
    let host = to[2];

    let get = gpu.api.cuGraphMemcpyNodeGetParams.expect("the entry");
    let mut params = CUDA_MEMCPY3D::default();
    ok!(get(copy, &mut params));
    assert_eq!(
        params,
        CUDA_MEMCPY3D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcDevice: at,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstDevice: CUdeviceptr(at.0 + 32),
            WidthInBytes: 16,
            Height: 1,
            Depth: 1,
            ..CUDA_MEMCPY3D::default()
        }
    );
    refused!(CUDA_ERROR_INVALID_VALUE, get(fill, &mut params));

    let get = gpu.api.cuGraphMemsetNodeGetParams.expect("the entry");
    let mut params = CUDA_MEMSET_NODE_PARAMS::default();
    ok!(get(fill, &mut params));
    assert_eq!(
        params,
        CUDA_MEMSET_NODE_PARAMS {
            dst: at,
            pitch: 0,
            value: 7,
            elementSize: 4,
            width: 3,
            height: 1,
        }
    );
    refused!(CUDA_ERROR_INVALID_VALUE, get(host, &mut params));

    let get = gpu.api.cuGraphHostNodeGetParams.expect("the entry");
    let mut params = CUDA_HOST_NODE_PARAMS::default();
    ok!(get(host, &mut params));
    assert_eq!(params.userData, argument);
    assert_eq!(
        params.fn_.map(|f| f as usize),
        Some(nothing as *const () as usize)
    );
    refused!(CUDA_ERROR_INVALID_VALUE, get(kernel, &mut params));

    let get = gpu.api.cuGraphKernelNodeGetAttribute.expect("the entry");
    let mut value = CUlaunchAttributeValue { pad: [0xff; 64] };
    let asked = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    ok!(get(kernel, asked, &mut value));
    // SAFETY: the call stored this member.
    assert_eq!(unsafe { value.cooperative }, 0);
    refused!(CUDA_ERROR_INVALID_VALUE, get(copy, asked, &mut value));

    ok!((gpu.api.cuGraphDestroy.unwrap())(graph));
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.free(at);
    gpu.clean();
}

#[test]
fn a_cooperative_launch_is_told_by_its_node() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let (add, stream, at) = (gpu.function(module, "add"), gpu.stream(), gpu.alloc(64));
    gpu.begin(stream);
    let mut attribute = CUlaunchAttribute::cooperative();
    let config = CUlaunchConfig {
        gridDimX: 2,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 32,
        blockDimY: 1,
        blockDimZ: 1,
        hStream: stream,
        attrs: &mut attribute,
        numAttrs: 1,
        ..CUlaunchConfig::default()
    };
    let values = [at.0, 5];
    let mut params =
        [&values[0], &values[1]].map(|value| std::ptr::from_ref(value).cast_mut().cast());
    let launch = gpu.api.cuLaunchKernelEx.expect("the entry");
    ok!(launch(
        &config,
        add,
        params.as_mut_ptr(),
        std::ptr::null_mut()
    ));
    let graph = gpu.end(stream);
    let (mut node, mut count) = (CUgraphNode::null(), 1);
    ok!((gpu.api.cuGraphGetNodes.unwrap())(
        graph, &mut node, &mut count
    ));
    let get = gpu.api.cuGraphKernelNodeGetAttribute.expect("the entry");
    let mut value = CUlaunchAttributeValue::default();
    ok!(get(
        node,
        CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
        &mut value
    ));
    // SAFETY: the call stored this member.
    assert_eq!(unsafe { value.cooperative }, 1);
    ok!((gpu.api.cuGraphDestroy.unwrap())(graph));
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.free(at);
    gpu.clean();
}
