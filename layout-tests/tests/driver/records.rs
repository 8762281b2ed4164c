//! Structs and identities of the driver's.

use cuda_driver_sys as theirs;
use slabfence::sys as ours;
use slabfence_layout_tests::{extends, same_layout, same_width};

#[test]
fn every_struct_that_both_bindings_have_is_laid_out_alike() {
    same_layout!(ours, theirs: CUuuid { bytes });
    same_layout!(ours, theirs: CUDA_HOST_NODE_PARAMS { fn_, userData });
    same_layout!(ours, theirs: CUDA_MEMSET_NODE_PARAMS {
        dst, pitch, value, elementSize, width, height,
    });
    same_layout!(ours, theirs: CUDA_MEMCPY3D {
        srcXInBytes, srcY, srcZ, srcLOD, srcMemoryType, srcHost, srcDevice, srcArray, reserved0, srcPitch, srcHeight,
        dstXInBytes, dstY, dstZ, dstLOD, dstMemoryType, dstHost, dstDevice, dstArray, reserved1, dstPitch, dstHeight,
        WidthInBytes, Height, Depth,
    });
    same_layout!(ours, theirs: CUDA_MEMCPY2D {
        srcXInBytes, srcY, srcMemoryType, srcHost, srcDevice, srcArray, srcPitch,
        dstXInBytes, dstY, dstMemoryType, dstHost, dstDevice, dstArray, dstPitch,
        WidthInBytes, Height,
    });
    same_layout!(ours, theirs: CUmemLocation { type_, id });
    same_layout!(ours, theirs: CUmemAllocationProp {
        type_, requestedHandleTypes, location, win32HandleMetaData, allocFlags = reserved,
    });
    same_layout!(ours, theirs: CUmemAccessDesc { location, flags });
}

#[test]
fn every_handle_and_identity_that_both_bindings_have_is_as_wide() {
    same_width!(ours, theirs: CUdevice, CUdeviceptr, CUmemGenericAllocationHandle);
    same_width!(ours, theirs: CUcontext, CUmodule, CUfunction, CUarray, CUevent, CUstream);
    same_width!(ours, theirs: CUgraph, CUgraphNode, CUgraphExec, CUhostFn);
}

#[test]
fn the_second_version_of_a_kernel_nodes_parameters_begins_with_the_first() {
    use ours::CUDA_KERNEL_NODE_PARAMS_v2 as Second;
    use theirs::CUDA_KERNEL_NODE_PARAMS as First;
    extends!(Second: First {
        func, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, kernelParams, extra,
    } then kern);
}
