//! Devices that processes number differently, as `CUDA_VISIBLE_DEVICES` makes them do.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use slabfence_emu::{Machine, MachineError, Profile};
use slabfence_sys::*;

use crate::gpu::{BLOCK, Gpu, READWRITE};

const POSIX: CUmemAllocationHandleType =
    CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

fn export(gpu: &Gpu, handle: CUmemGenericAllocationHandle) -> OwnedFd {
    let mut fd = -1i32;
    ok!((gpu.api.cuMemExportToShareableHandle.unwrap())(
        (&raw mut fd).cast(),
        handle,
        POSIX,
        0
    ));
    // SAFETY: the descriptor was just made for this caller to own.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn import(gpu: &Gpu, fd: &OwnedFd) -> (CUresult, CUmemGenericAllocationHandle) {
    let mut handle = CUmemGenericAllocationHandle(0);
    let number = std::ptr::without_provenance_mut(fd.as_raw_fd() as usize);
    let import = gpu.api.cuMemImportFromShareableHandle.unwrap();
    let code = code!(import(&mut handle, number, POSIX));
    (code, handle)
}

fn uuid(gpu: &Gpu, device: i32) -> [u8; 16] {
    let mut uuid = CUuuid::default();
    ok!((gpu.api.cuDeviceGetUuid)(&mut uuid, CUdevice(device)));
    uuid.bytes
}

fn bus(gpu: &Gpu, device: i32) -> i32 {
    let (mut bus, asked) = (0, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
    ok!((gpu.api.cuDeviceGetAttribute)(
        &mut bus,
        asked,
        CUdevice(device)
    ));
    bus
}

/// The device that an address says it is on.
fn device_of(gpu: &Gpu, at: CUdeviceptr) -> i32 {
    let (mut device, asked) = (
        -1i32,
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
    );
    ok!((gpu.api.cuPointerGetAttribute.unwrap())(
        (&raw mut device).cast(),
        asked,
        at
    ));
    device
}

#[test]
fn a_device_is_the_same_one_wherever_it_stands_in_a_list() {
    let all = Gpu::new(3);
    let some = Gpu::seeing(&[2, 0]);
    let mut count = 0;
    ok!((some.api.cuDeviceGetCount)(&mut count));
    assert_eq!(count, 2);
    for (here, there) in [(0, 2), (1, 0)] {
        assert_eq!(uuid(&some, here), uuid(&all, there));
        assert_eq!(bus(&some, here), bus(&all, there));
    }
    assert_ne!(uuid(&some, 0), uuid(&some, 1));
    assert_ne!(bus(&some, 0), bus(&some, 1));
    some.clean();
    all.clean();
}

#[test]
fn memory_of_another_process_is_on_the_device_that_it_was_made_on_whatever_its_number_here() {
    let (one, two) = (Gpu::seeing(&[0, 1]), Gpu::seeing(&[1, 0]));
    for (there, here) in [(0, 1), (1, 0)] {
        let handle = one.create(there);
        let (code, imported) = import(&two, &export(&one, handle));
        assert_eq!(code, CUresult::CUDA_SUCCESS);
        let at = two.reserve(BLOCK);
        ok!((two.api.cuMemMap.unwrap())(at, BLOCK, 0, imported, 0));
        assert_eq!(two.grant(at, here, READWRITE), CUresult::CUDA_SUCCESS);
        assert_eq!(device_of(&two, at), here);
        two.unmap(at);
        ok!((two.api.cuMemRelease.unwrap())(imported));
        ok!((one.api.cuMemRelease.unwrap())(handle));
    }
    one.clean();
    two.clean();
}

#[test]
fn memory_on_a_device_that_a_process_does_not_see_is_refused() {
    let (one, two) = (Gpu::seeing(&[0, 1]), Gpu::seeing(&[1]));
    let handles = [one.create(0), one.create(1)];
    let [hidden, seen] = handles.map(|handle| import(&two, &export(&one, handle)));
    assert_eq!(hidden.0, CUresult::CUDA_ERROR_INVALID_VALUE);
    assert_eq!(seen.0, CUresult::CUDA_SUCCESS);
    ok!((two.api.cuMemRelease.unwrap())(seen.1));
    for handle in handles {
        ok!((one.api.cuMemRelease.unwrap())(handle));
    }
    one.clean();
    two.clean();
}

#[test]
fn a_machine_sees_devices_of_the_host_each_once() {
    let seeing = |boards: &[u32]| {
        let profile = Profile::named("h200-nvlink").expect("a known profile");
        Machine::seeing(profile, boards).map(drop)
    };
    assert_eq!(seeing(&[]), Err(MachineError::Devices(0)));
    for boards in [&[16][..], &[1, 0, 1], &[u32::MAX]] {
        assert_eq!(seeing(boards), Err(MachineError::Seen(boards.to_vec())));
    }
    assert_eq!(
        seeing(&[3, 3]).unwrap_err().to_string(),
        "a machine that sees the devices [3, 3] was asked for: a host has devices 0 to 15, each once"
    );
    assert_eq!(seeing(&[15, 0]), Ok(()));
}
