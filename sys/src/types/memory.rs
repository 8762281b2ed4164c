//! Device memory: addresses, physical allocations, access.

use core::ffi::{c_int, c_void};

/// A device virtual address. Not a Rust pointer: it is never dereferenced on the host.
#[repr(transparent)]
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CUdeviceptr(pub u64);

impl core::fmt::Debug for CUdeviceptr {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "CUdeviceptr({:#x})", self.0)
    }
}

/// A physical allocation made or imported by `cuMem*`. Two imports of the same memory may have
/// different values.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CUmemGenericAllocationHandle(pub u64);

layout!(CUdeviceptr: size 8, align 8);
layout!(CUmemGenericAllocationHandle: size 8, align 8);

flag_word! {
    /// Forms in which an allocation may be exported.
    CUmemAllocationHandleType: u32 {
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1;
        CU_MEM_HANDLE_TYPE_FABRIC = 8;
    }
}

open_enum! {
    /// What a mapping permits.
    CUmemAccess_flags: u32 {
        CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
        CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
        CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
    }
}

open_enum! {
    /// What kind of place a [`CUmemLocation`] names.
    CUmemLocationType: u32 {
        CU_MEM_LOCATION_TYPE_INVALID = 0,
        CU_MEM_LOCATION_TYPE_DEVICE = 1,
        CU_MEM_LOCATION_TYPE_HOST = 2,
        CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
        CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4,
    }
}

open_enum! {
    /// How an allocation's memory is held.
    CUmemAllocationType: u32 {
        CU_MEM_ALLOCATION_TYPE_INVALID = 0,
        /// Stays where it is: the kind this library makes.
        CU_MEM_ALLOCATION_TYPE_PINNED = 1,
        CU_MEM_ALLOCATION_TYPE_MANAGED = 2,
    }
}

open_enum! {
    /// Which granularity is asked for.
    CUmemAllocationGranularity_flags: u32 {
        CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
        CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
    }
}

/// A place where memory lies, or from which it is reached.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(non_snake_case, reason = "keeps the driver's spelling")]
pub struct CUmemLocation {
    /// The kind of place (`type` in C).
    pub type_: CUmemLocationType,
    /// Which one: for a device, its ordinal.
    pub id: c_int,
}

layout!(CUmemLocation: size 8, align 4, type_ @ 0, id @ 4);

/// Allocation flags (`allocFlags` of [`CUmemAllocationProp`]).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(non_snake_case, reason = "keeps the driver's spelling")]
pub struct CUmemAllocationPropFlags {
    /// Compressible memory.
    pub compressionType: u8,
    /// Whether network devices may reach it (GPUDirect RDMA).
    pub gpuDirectRDMACapable: u8,
    /// Special uses.
    pub usage: u16,
    /// Zero.
    pub reserved: [u8; 4],
}

layout!(
    CUmemAllocationPropFlags: size 8, align 2,
    compressionType @ 0, gpuDirectRDMACapable @ 1, usage @ 2, reserved @ 4,
);

/// What `cuMemCreate` is to make. `Default` is all zeros, the state that every field not set must
/// have.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(non_snake_case, reason = "keeps the driver's spelling")]
pub struct CUmemAllocationProp {
    /// How the memory is held (`type` in C).
    pub type_: CUmemAllocationType,
    /// Forms in which it may be exported; a form not asked for here cannot be had later.
    pub requestedHandleTypes: CUmemAllocationHandleType,
    /// Where it lies.
    pub location: CUmemLocation,
    /// Null on Linux.
    pub win32HandleMetaData: *mut c_void,
    /// Flags.
    pub allocFlags: CUmemAllocationPropFlags,
}

layout!(
    CUmemAllocationProp: size 32, align 8,
    type_ @ 0, requestedHandleTypes @ 4, location @ 8, win32HandleMetaData @ 16, allocFlags @ 24,
);

/// The access that one place gets to a mapping.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CUmemAccessDesc {
    /// Who.
    pub location: CUmemLocation,
    /// What is permitted.
    pub flags: CUmemAccess_flags,
}

layout!(CUmemAccessDesc: size 12, align 4, location @ 0, flags @ 8);

flag_word! {
    /// Flags of `cuMemHostAlloc`.
    CUmemHostAlloc_flags: u32 {
        /// Pinned for every context, not only the current one.
        CU_MEMHOSTALLOC_PORTABLE = 1;
        /// Mapped into the device's address space.
        CU_MEMHOSTALLOC_DEVICEMAP = 2;
        /// Write-combining: slow to read on the host.
        CU_MEMHOSTALLOC_WRITECOMBINED = 4;
    }
}

open_enum! {
    /// Whose memory an address is (the value of `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`).
    CUmemorytype: u32 {
        CU_MEMORYTYPE_HOST = 1,
        CU_MEMORYTYPE_DEVICE = 2,
        CU_MEMORYTYPE_ARRAY = 3,
        CU_MEMORYTYPE_UNIFIED = 4,
    }
}

open_enum! {
    /// What `cuPointerGetAttribute` is asked. The type of the answer depends on it.
    CUpointer_attribute: u32 {
        CU_POINTER_ATTRIBUTE_CONTEXT = 1,
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
        CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
        CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
        CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
        CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
        CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
        CU_POINTER_ATTRIBUTE_MAPPED = 13,
        CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
        CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
        CU_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,
        CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
        CU_POINTER_ATTRIBUTE_MAPPING_SIZE = 18,
        CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR = 19,
        CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID = 20,
    }
}
