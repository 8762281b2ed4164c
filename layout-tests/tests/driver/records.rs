//! Structs and identities of the driver's.

use core::mem::offset_of;

use cuda_driver_sys as theirs;
use slabfence::sys as ours;
use slabfence_layout_tests::same_layout;

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
    same_layout!(ours, theirs: CUmemLocation { type_, id });
    same_layout!(ours, theirs: CUmemAllocationProp {
        type_, requestedHandleTypes, location, win32HandleMetaData, allocFlags = reserved,
    });
    same_layout!(ours, theirs: CUmemAccessDesc { location, flags });
}

/// Proves that types of one name are of one size and alignment.
macro_rules! as_wide {
    ($($name:ident),* $(,)?) => { $(
        static_assertions::assert_eq_size!(ours::$name, theirs::$name);
        static_assertions::assert_eq_align!(ours::$name, theirs::$name);
    )* };
}

#[test]
fn every_handle_and_identity_that_both_bindings_have_is_as_wide() {
    as_wide!(CUdevice, CUdeviceptr, CUmemGenericAllocationHandle);
    as_wide!(CUcontext, CUmodule, CUfunction, CUarray, CUevent, CUstream);
    as_wide!(CUgraph, CUgraphNode, CUgraphExec, CUhostFn);
}

#[test]
fn the_second_version_of_a_kernel_nodes_parameters_begins_with_the_first() {
    use ours::CUDA_KERNEL_NODE_PARAMS_v2 as Second;
    use theirs::CUDA_KERNEL_NODE_PARAMS as First;
    macro_rules! same_offset {
        ($($field:ident),* $(,)?) => { $(
            static_assertions::const_assert_eq!(offset_of!(Second, $field), offset_of!(First, $field));
        )* };
    }
    same_offset!(
        func, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ
    );
    same_offset!(sharedMemBytes, kernelParams, extra);
    static_assertions::const_assert_eq!(offset_of!(Second, kern), size_of::<First>());
}
