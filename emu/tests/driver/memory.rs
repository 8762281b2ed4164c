//! `cuMemAlloc`, page-locked memory, and what pointers are.

use slabfence_emu::{Machine, MachineError, Profile};
use slabfence_sys::*;

use crate::gpu::Gpu;

#[test]
fn fresh_memory_holds_a_pattern_and_not_zeros() {
    let gpu = Gpu::new(1);
    let at = gpu.alloc(4096);
    assert_eq!(gpu.read(at, 1024), vec![u32::MAX; 1024]);
    gpu.free(at);
    gpu.clean();
}

#[test]
fn memory_keeps_what_was_written() {
    let gpu = Gpu::new(1);
    let at = gpu.alloc(16);
    gpu.write(at, &[1, 2, 3, 4]);
    assert_eq!(gpu.read(CUdeviceptr(at.0 + 8), 2), [3, 4]);
    gpu.free(at);
    gpu.clean();
}

#[test]
fn a_free_of_anything_but_a_live_allocation_is_refused() {
    let gpu = Gpu::new(1);
    let at = gpu.alloc(512);
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemFree)(CUdeviceptr(at.0 + 256))
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemFreeHost.unwrap())(std::ptr::with_exposed_provenance_mut(at.0 as usize))
    );
    gpu.free(at);
    refused!(CUDA_ERROR_INVALID_VALUE, (gpu.api.cuMemFree)(at));
    ok!((gpu.api.cuMemFree)(CUdeviceptr(0)));
    gpu.clean();
}

#[test]
fn freed_addresses_are_not_given_out_again_soon() {
    let gpu = Gpu::new(1);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let at = gpu.alloc(4096);
        assert!(seen.insert(at));
        gpu.free(at);
    }
    gpu.clean();
}

#[test]
fn a_device_has_no_more_memory_than_its_profile_says() {
    let gpu = Gpu::new(1);
    let mut at = CUdeviceptr(0);
    let mut total = 0;
    ok!((gpu.api.cuDeviceTotalMem.unwrap())(&mut total, CUdevice(0)));
    assert_eq!(total as u64, gpu.machine.profile().memory);
    refused!(
        CUDA_ERROR_OUT_OF_MEMORY,
        (gpu.api.cuMemAlloc)(&mut at, total + 1)
    );
    refused!(CUDA_ERROR_INVALID_VALUE, (gpu.api.cuMemAlloc)(&mut at, 0));
    gpu.clean();
}

#[test]
fn a_pointer_tells_its_range_device_and_kind() {
    let gpu = Gpu::new(2);
    gpu.on(1);
    let at = gpu.alloc(1000);
    let inside = CUdeviceptr(at.0 + 999);
    let (mut base, mut bytes) = (CUdeviceptr(0), 0);
    ok!((gpu.api.cuMemGetAddressRange.unwrap())(
        &mut base, &mut bytes, inside
    ));
    assert_eq!((base, bytes), (at, 1000));
    refused!(
        CUDA_ERROR_NOT_FOUND,
        (gpu.api.cuMemGetAddressRange.unwrap())(&mut base, &mut bytes, CUdeviceptr(at.0 + 1000))
    );
    let (mut device, mut kind) = (-1i32, CUmemorytype(0));
    let ordinal = CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    let memory = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    ok!((gpu.api.cuPointerGetAttribute.unwrap())(
        (&raw mut device).cast(),
        ordinal,
        inside
    ));
    ok!((gpu.api.cuPointerGetAttribute.unwrap())(
        (&raw mut kind).cast(),
        memory,
        inside
    ));
    assert_eq!((device, kind), (1, CUmemorytype::CU_MEMORYTYPE_DEVICE));
    let pinned = gpu.pinned(4);
    let host = CUdeviceptr(pinned.expose_provenance() as u64);
    ok!((gpu.api.cuPointerGetAttribute.unwrap())(
        (&raw mut kind).cast(),
        memory,
        host
    ));
    assert_eq!(kind, CUmemorytype::CU_MEMORYTYPE_HOST);
    let local = 0u32;
    let foreign = CUdeviceptr((&raw const local).expose_provenance() as u64);
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuPointerGetAttribute.unwrap())((&raw mut kind).cast(), memory, foreign)
    );
    ok!((gpu.api.cuMemFreeHost.unwrap())(pinned.cast()));
    gpu.free(at);
    gpu.clean();
}

#[test]
fn page_locked_memory_has_one_address_for_host_and_devices() {
    let gpu = Gpu::new(1);
    let host = gpu.pinned(8);
    let mut device = CUdeviceptr(0);
    ok!((gpu.api.cuMemHostGetDevicePointer.unwrap())(
        &mut device,
        host.cast(),
        0
    ));
    assert_eq!(device.0, host.expose_provenance() as u64);
    gpu.write(device, &[5, 6]);
    // SAFETY: the second word of the allocation, which nothing else touches now.
    assert_eq!(unsafe { host.wrapping_add(1).read_volatile() }, 6);
    ok!((gpu.api.cuMemFreeHost.unwrap())(host.cast()));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        (gpu.api.cuMemHostGetDevicePointer.unwrap())(&mut device, host.cast(), 0)
    );
    gpu.clean();
}

#[test]
fn announced_ranges_are_found_by_address_until_they_are_withdrawn() {
    let gpu = Gpu::new(1);
    // SAFETY: takes no argument.
    assert_eq!(unsafe { (gpu.api.slabfenceEmuVersion.unwrap())() }, 1);
    let at = gpu.alloc(4096);
    let announce = gpu.api.slabfenceEmuAnnounceRange.unwrap();
    let note = RangeNote {
        base: at.0 + 128,
        bytes: 256,
        kind: RangeKind::SIGNAL,
        channel: 3,
        ..RangeNote::default()
    };
    ok!(announce(&note));
    assert_eq!(gpu.machine.announced(at.0 + 128 + 255), Some(note));
    assert_eq!(gpu.machine.announced(at.0 + 127), None);
    assert_eq!(gpu.machine.announced(at.0 + 128 + 256), None);
    ok!(announce(&RangeNote {
        kind: RangeKind::FORGET,
        ..note
    }));
    assert_eq!(gpu.machine.announced(at.0 + 128), None);
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        announce(&RangeNote { bytes: 0, ..note })
    );
    refused!(CUDA_ERROR_INVALID_VALUE, announce(std::ptr::null()));
    gpu.free(at);
    gpu.clean();
}

#[test]
fn a_machine_has_one_to_sixteen_devices() {
    let profile = || Profile::named("h200-nvlink").unwrap();
    assert_eq!(
        Machine::new(profile(), 0).err(),
        Some(MachineError::Devices(0))
    );
    assert_eq!(
        Machine::new(profile(), 17).err(),
        Some(MachineError::Devices(17))
    );
    Gpu::new(16).clean();
    assert_eq!(Profile::named("h100"), None);
    assert!(
        Profile::NAMES
            .iter()
            .all(|name| Profile::named(name).is_some_and(|profile| profile.name == *name))
    );
}
