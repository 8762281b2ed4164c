//! Physical allocations, mappings and access rights.

use std::os::fd::{FromRawFd, OwnedFd};

use slabfence_sys::*;

use crate::gpu::{BLOCK, Gpu, NONE, READ, READWRITE, prop};

#[test]
fn sizes_and_addresses_must_be_multiples_of_the_granularity() {
    let gpu = Gpu::new(1);
    let mut granularity = 0;
    let option = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
    ok!((gpu.api.cuMemGetAllocationGranularity.unwrap())(
        &mut granularity,
        &prop(0),
        option
    ));
    assert_eq!(granularity, BLOCK);
    let (mut handle, mut at) = (CUmemGenericAllocationHandle(0), CUdeviceptr(0));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemCreate.unwrap())(&mut handle, BLOCK / 2, &prop(0), 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemCreate.unwrap())(&mut handle, 0, &prop(0), 0)
    );
    refused!(
        CUDA_ERROR_INVALID_DEVICE,
        (gpu.api.cuMemCreate.unwrap())(&mut handle, BLOCK, &prop(1), 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemAddressReserve.unwrap())(&mut at, BLOCK + 4096, 0, CUdeviceptr(0), 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemAddressReserve.unwrap())(&mut at, BLOCK, 3, CUdeviceptr(0), 0)
    );
    let handle = gpu.create(0);
    let at = gpu.reserve(2 * BLOCK);
    assert_eq!(at.0 % BLOCK as u64, 0);
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemMap.unwrap())(CUdeviceptr(at.0 + 4096), BLOCK, 0, handle, 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemMap.unwrap())(at, BLOCK, BLOCK, handle, 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemMap.unwrap())(at, 2 * BLOCK, 0, handle, 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemMap.unwrap())(CUdeviceptr(at.0 + 2 * BLOCK as u64), BLOCK, 0, handle, 0)
    );
    ok!((gpu.api.cuMemRelease.unwrap())(handle));
    ok!((gpu.api.cuMemAddressFree.unwrap())(at, 2 * BLOCK));
    gpu.clean();
}

#[test]
fn memory_lives_while_it_is_mapped_and_a_second_release_is_refused() {
    let gpu = Gpu::new(1);
    let (at, handle) = (gpu.reserve(BLOCK), gpu.create(0));
    ok!((gpu.api.cuMemMap.unwrap())(at, BLOCK, 0, handle, 0));
    ok!((gpu.api.cuMemRelease.unwrap())(handle));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemRelease.unwrap())(handle)
    );
    assert_eq!(gpu.grant(at, 0, READWRITE), CUresult::CUDA_SUCCESS);
    gpu.write(at, &[42]);
    assert_eq!(gpu.read(at, 1), [42]);
    let mut again = CUmemGenericAllocationHandle(0);
    let address = std::ptr::with_exposed_provenance_mut(at.0 as usize + 5);
    ok!((gpu.api.cuMemRetainAllocationHandle.unwrap())(
        &mut again, address
    ));
    assert_eq!(again, handle);
    gpu.unmap(at);
    ok!((gpu.api.cuMemRelease.unwrap())(again));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemRelease.unwrap())(again)
    );
    gpu.clean();
}

#[test]
fn one_allocation_mapped_twice_is_the_same_memory() {
    let gpu = Gpu::new(1);
    let (one, two, handle) = (gpu.reserve(BLOCK), gpu.reserve(BLOCK), gpu.create(0));
    for at in [one, two] {
        ok!((gpu.api.cuMemMap.unwrap())(at, BLOCK, 0, handle, 0));
        assert_eq!(gpu.grant(at, 0, READWRITE), CUresult::CUDA_SUCCESS);
    }
    assert_eq!(
        gpu.read(two, 1),
        [u32::MAX],
        "fresh memory holds the pattern"
    );
    gpu.write(one, &[7]);
    assert_eq!(gpu.read(two, 1), [7]);
    ok!((gpu.api.cuMemRelease.unwrap())(handle));
    gpu.unmap(one);
    gpu.unmap(two);
    gpu.clean();
}

#[test]
fn only_whole_mappings_are_unmapped() {
    let gpu = Gpu::new(1);
    let at = gpu.reserve(3 * BLOCK);
    let mut handle = CUmemGenericAllocationHandle(0);
    ok!((gpu.api.cuMemCreate.unwrap())(
        &mut handle,
        2 * BLOCK,
        &prop(0),
        0
    ));
    ok!((gpu.api.cuMemMap.unwrap())(at, 2 * BLOCK, 0, handle, 0));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemMap.unwrap())(CUdeviceptr(at.0 + BLOCK as u64), BLOCK, 0, handle, 0)
    );
    ok!((gpu.api.cuMemRelease.unwrap())(handle));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemUnmap.unwrap())(at, BLOCK)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemUnmap.unwrap())(at, 3 * BLOCK)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemUnmap.unwrap())(CUdeviceptr(at.0 + BLOCK as u64), BLOCK)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemAddressFree.unwrap())(at, 3 * BLOCK)
    );
    ok!((gpu.api.cuMemUnmap.unwrap())(at, 2 * BLOCK));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemUnmap.unwrap())(at, 2 * BLOCK)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemAddressFree.unwrap())(at, BLOCK)
    );
    ok!((gpu.api.cuMemAddressFree.unwrap())(at, 3 * BLOCK));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemAddressFree.unwrap())(at, 3 * BLOCK)
    );
    gpu.clean();
}

#[test]
fn adjacent_mappings_are_granted_and_unmapped_in_one_call() {
    let gpu = Gpu::new(1);
    let at = gpu.reserve(2 * BLOCK);
    for part in 0..2 {
        let handle = gpu.create(0);
        ok!((gpu.api.cuMemMap.unwrap())(
            CUdeviceptr(at.0 + part * BLOCK as u64),
            BLOCK,
            0,
            handle,
            0
        ));
        ok!((gpu.api.cuMemRelease.unwrap())(handle));
    }
    let access = CUmemAccessDesc {
        location: crate::gpu::place(0),
        flags: READWRITE,
    };
    ok!((gpu.api.cuMemSetAccess.unwrap())(at, 2 * BLOCK, &access, 1));
    let across = CUdeviceptr(at.0 + BLOCK as u64 - 8);
    gpu.write(across, &[1, 2, 3, 4]);
    assert_eq!(gpu.read(across, 4), [1, 2, 3, 4]);
    ok!((gpu.api.cuMemUnmap.unwrap())(at, 2 * BLOCK));
    ok!((gpu.api.cuMemAddressFree.unwrap())(at, 2 * BLOCK));
    gpu.clean();
}

#[test]
fn access_is_set_per_device_and_on_mapped_memory_only() {
    let gpu = Gpu::new(2);
    let at = gpu.reserve(BLOCK);
    assert_eq!(
        gpu.grant(at, 0, READWRITE),
        CUresult::CUDA_ERROR_INVALID_VALUE
    );
    let handle = gpu.create(0);
    ok!((gpu.api.cuMemMap.unwrap())(at, BLOCK, 0, handle, 0));
    ok!((gpu.api.cuMemRelease.unwrap())(handle));
    let access = |device| {
        let mut flags = 99;
        ok!((gpu.api.cuMemGetAccess.unwrap())(
            &mut flags,
            &crate::gpu::place(device),
            at
        ));
        CUmemAccess_flags(flags as u32)
    };
    assert_eq!((access(0), access(1)), (NONE, NONE));
    let mut word = 0u32;
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemcpyDtoH.unwrap())((&raw mut word).cast(), at, 4)
    );
    assert_eq!(gpu.grant(at, 0, READWRITE), CUresult::CUDA_SUCCESS);
    assert_eq!(gpu.grant(at, 1, READ), CUresult::CUDA_SUCCESS);
    assert_eq!((access(0), access(1)), (READWRITE, READ));
    assert_eq!(gpu.grant(at, 2, READ), CUresult::CUDA_ERROR_INVALID_DEVICE);
    assert_eq!(
        gpu.grant(at, 1, CUmemAccess_flags(2)),
        CUresult::CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(gpu.grant(at, 1, NONE), CUresult::CUDA_SUCCESS);
    assert_eq!((access(0), access(1)), (READWRITE, NONE));
    gpu.unmap(at);
    gpu.clean();
}

#[test]
fn an_exported_descriptor_imports_as_the_same_memory_and_keeps_it_alive() {
    let gpu = Gpu::new(2);
    let other = Gpu::new(2);
    let handle = gpu.create(1);
    let posix = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    let mut fd = -1i32;
    ok!((gpu.api.cuMemExportToShareableHandle.unwrap())(
        (&raw mut fd).cast(),
        handle,
        posix,
        0
    ));
    // SAFETY: the descriptor was just made for this caller to own.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let (ours, theirs) = (gpu.reserve(BLOCK), other.reserve(BLOCK));
    ok!((gpu.api.cuMemMap.unwrap())(ours, BLOCK, 0, handle, 0));
    ok!((gpu.api.cuMemRelease.unwrap())(handle));
    assert_eq!(gpu.grant(ours, 0, READWRITE), CUresult::CUDA_SUCCESS);
    let mut imported = CUmemGenericAllocationHandle(0);
    let number = std::os::fd::AsRawFd::as_raw_fd(&fd) as usize;
    let import = other.api.cuMemImportFromShareableHandle.unwrap();
    ok!(import(
        &mut imported,
        std::ptr::without_provenance_mut(number),
        posix
    ));
    drop(fd);
    ok!((other.api.cuMemMap.unwrap())(theirs, BLOCK, 0, imported, 0));
    ok!((other.api.cuMemRelease.unwrap())(imported));
    assert_eq!(other.grant(theirs, 0, READWRITE), CUresult::CUDA_SUCCESS);
    let mut device = -1i32;
    let ordinal = CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    ok!((other.api.cuPointerGetAttribute.unwrap())(
        (&raw mut device).cast(),
        ordinal,
        theirs
    ));
    assert_eq!(device, 1, "the owner travels with the descriptor");
    gpu.write(ours, &[11, 12]);
    assert_eq!(other.read(theirs, 2), [11, 12]);
    gpu.unmap(ours);
    assert_eq!(other.read(theirs, 2), [11, 12]);
    other.unmap(theirs);
    gpu.clean();
    other.clean();
}

#[test]
fn a_descriptor_of_anything_else_is_refused() {
    let gpu = Gpu::new(1);
    let posix = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    let import = gpu.api.cuMemImportFromShareableHandle.unwrap();
    let mut handle = CUmemGenericAllocationHandle(0);
    let file = std::fs::File::open("/dev/null").unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&file) as usize;
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        import(&mut handle, std::ptr::without_provenance_mut(number), posix)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        import(
            &mut handle,
            std::ptr::without_provenance_mut(0x7fff_fff0),
            posix
        )
    );
    gpu.clean();
}

#[test]
fn memory_not_made_for_export_is_not_exported() {
    let gpu = Gpu::new(1);
    let mut handle = CUmemGenericAllocationHandle(0);
    let private = CUmemAllocationProp {
        requestedHandleTypes: CUmemAllocationHandleType::empty(),
        ..prop(0)
    };
    ok!((gpu.api.cuMemCreate.unwrap())(
        &mut handle,
        BLOCK,
        &private,
        0
    ));
    let posix = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    let mut fd = -1i32;
    let export = gpu.api.cuMemExportToShareableHandle.unwrap();
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        export((&raw mut fd).cast(), handle, posix, 0)
    );
    ok!((gpu.api.cuMemRelease.unwrap())(handle));
    gpu.clean();
}
