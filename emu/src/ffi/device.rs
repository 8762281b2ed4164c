//! What devices say of themselves.

use std::ffi::{c_char, c_int};

use slabfence_sys::{CUdevice, CUdevice_P2PAttribute, CUdevice_attribute, CUuuid};

use super::pointer::{put, put_text};
use crate::code::{Code, Status};
use crate::occupancy::{REGISTERS, RESERVED_SHARED};
use crate::profile::Profile;

/// An attribute's value. A device that is asked for an attribute that this table lacks says so, as an old driver would.
fn attribute(profile: &Profile, board: u32, asked: CUdevice_attribute) -> Status<c_int> {
    use CUdevice_attribute as A;
    let value = match asked {
        A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK => 1024,
        A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X | A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y => 1024,
        A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z => 64,
        A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X => i32::MAX as u32,
        A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y | A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z => 65535,
        A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK => 48 << 10,
        A::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY => 64 << 10,
        A::CU_DEVICE_ATTRIBUTE_WARP_SIZE => 32,
        A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK => REGISTERS,
        A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR => REGISTERS,
        A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE => 1_000_000,
        A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => profile.sm_count,
        A::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT | A::CU_DEVICE_ATTRIBUTE_INTEGRATED => 0,
        A::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY | A::CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS => 1,
        A::CU_DEVICE_ATTRIBUTE_COMPUTE_MODE | A::CU_DEVICE_ATTRIBUTE_ECC_ENABLED => 0,
        A::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID => 1 + board,
        A::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID | A::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID => 0,
        A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE => 50 << 20,
        A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR => profile.threads_per_sm,
        A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT | A::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING => 1,
        A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => profile.compute_capability.0,
        A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => profile.compute_capability.1,
        A::CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY => 0,
        A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR => profile.shared_per_sm,
        A::CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED => 0,
        A::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM => 1,
        A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH => 1,
        A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN => profile.shared_per_cta_optin,
        A::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED => 1,
        A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED => 1,
        A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED => 1,
        A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR => profile.ctas_per_sm,
        A::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK => RESERVED_SHARED,
        A::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH
        | A::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS
        | A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_MPS_ENABLED
        | A::CU_DEVICE_ATTRIBUTE_NUMA_CONFIG
        | A::CU_DEVICE_ATTRIBUTE_NUMA_ID => 0,
        A::CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT => 1,
        A::CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID => return Ok(-1),
        _ => return Err(Code::INVALID_VALUE),
    };
    i32::try_from(value).map_err(|_| Code::INVALID_VALUE)
}

entries! {
    fn cuDeviceGetCount(call, count: *mut c_int) {
        let (state, _) = call.split();
        state.ready()?;
        put(count, state.devices.len() as c_int)
    }

    fn cuDeviceGet(call, device: *mut CUdevice, ordinal: c_int) {
        let found = call.split().0.device(ordinal)?;
        put(device, CUdevice(found as c_int))
    }

    fn cuDeviceGetName(call, name: *mut c_char, len: c_int, device: CUdevice) {
        let (state, _) = call.split();
        state.device(device.0)?;
        let room = usize::try_from(len).map_err(|_| Code::INVALID_VALUE)?;
        put_text(name, room, state.profile.device_name).map(drop)
    }

    fn cuDeviceGetUuid(call, to: *mut CUuuid, device: CUdevice) {
        let (state, _) = call.split();
        let board = state.memory.board(state.device(device.0)?);
        put(to, CUuuid { bytes: state.profile.uuid(board) })
    }

    fn cuDeviceGetAttribute(call, value: *mut c_int, asked: CUdevice_attribute, device: CUdevice) {
        let (state, _) = call.split();
        let board = state.memory.board(state.device(device.0)?);
        put(value, attribute(&state.profile, board, asked)?)
    }

    fn cuDeviceCanAccessPeer(call, can: *mut c_int, device: CUdevice, peer: CUdevice) {
        let (state, _) = call.split();
        let (device, peer) = (state.device(device.0)?, state.device(peer.0)?);
        put(can, c_int::from(device != peer))
    }

    fn cuDeviceGetP2PAttribute(call, value: *mut c_int, asked: CUdevice_P2PAttribute, source: CUdevice, to: CUdevice) {
        use CUdevice_P2PAttribute as P;
        let (state, _) = call.split();
        if state.device(source.0)? == state.device(to.0)? {
            return Err(Code::INVALID_DEVICE);
        }
        let native = c_int::from(state.profile.native_peer_atomics);
        put(value, match asked {
            P::CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK => 0,
            P::CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED => 1,
            P::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED => native,
            P::CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED => native,
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    fn cuDeviceTotalMem(call, bytes: *mut usize, device: CUdevice) {
        let (state, _) = call.split();
        state.device(device.0)?;
        put(bytes, state.memory.capacity as usize)
    }
}
