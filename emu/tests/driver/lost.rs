//! Paths that are granted and do not work.

use slabfence_emu::{Lost, MachineError};
use slabfence_sys::*;

use crate::gpu::{BLOCK, Gpu, PTX, READWRITE};

/// Lets a kernel of a device add to the first word, which it loads and stores.
fn add(gpu: &Gpu, device: i32, at: CUdeviceptr, value: u64) {
    gpu.on(device);
    let module = gpu.module(PTX);
    let stream = gpu.stream();
    let add = gpu.function(module, "add");
    assert_eq!(
        gpu.launch(add, 1, 32, stream, &[at.0, value]),
        CUresult::CUDA_SUCCESS
    );
    gpu.sync(stream);
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.on(0);
}

fn shared(gpu: &Gpu, word: u32) -> CUdeviceptr {
    let at = gpu.mapped(0, &[(0, READWRITE), (1, READWRITE)]);
    gpu.write(at, &[word]);
    at
}

#[test]
fn stores_of_one_device_to_one_mapping_are_lost_and_everything_else_arrives() {
    let gpu = Gpu::new(2);
    let (broken, whole) = (shared(&gpu, 5), shared(&gpu, 5));
    let middle = broken.0 + BLOCK as u64 / 2;
    assert_eq!(gpu.machine.lose(Lost::Stores, 1, middle), Ok(()));
    // It still sees what is there.
    for at in [broken, whole] {
        add(&gpu, 1, at, 2);
    }
    assert_eq!(
        (gpu.read(broken, 1), gpu.read(whole, 1)),
        (vec![5], vec![7])
    );
    add(&gpu, 0, broken, 10);
    assert_eq!(gpu.read(broken, 1), [15]);
    gpu.unmap(broken);
    gpu.unmap(whole);
    // A later mapping is another, wherever it is.
    let later = shared(&gpu, 1);
    add(&gpu, 1, later, 2);
    assert_eq!(gpu.read(later, 1), [3]);
    gpu.unmap(later);
    gpu.clean();
}

#[test]
fn lost_loads_give_zeros_and_stores_arrive() {
    let gpu = Gpu::new(2);
    let at = shared(&gpu, 5);
    assert_eq!(gpu.machine.lose(Lost::Loads, 1, at.0), Ok(()));
    add(&gpu, 1, at, 2);
    assert_eq!(gpu.read(at, 1), [2]);
    assert_eq!(gpu.machine.lose(Lost::Stores, 1, at.0), Ok(()));
    add(&gpu, 1, at, 3);
    add(&gpu, 1, at, 3);
    assert_eq!(gpu.read(at, 1), [2]);
    gpu.unmap(at);
    gpu.clean();
}

#[test]
fn only_what_there_is_can_be_lost() {
    let gpu = Gpu::new(2);
    let at = shared(&gpu, 0);
    let lose = |device, address| gpu.machine.lose(Lost::Stores, device, address);
    assert_eq!(lose(2, at.0), Err(MachineError::Device(2)));
    let beyond = at.0 + BLOCK as u64;
    assert_eq!(lose(1, beyond), Err(MachineError::Address(beyond)));
    gpu.unmap(at);
    assert_eq!(lose(1, at.0), Err(MachineError::Address(at.0)));
    gpu.clean();
}
