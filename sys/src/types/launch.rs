//! Launches with attributes (`cuLaunchKernelEx`).

use core::ffi::{c_int, c_uint};

use super::{CUevent, CUstream};

open_enum! {
    /// Which attribute a [`CUlaunchAttribute`] sets, and so which member of its value counts.
    CUlaunchAttributeID: u32 {
        CU_LAUNCH_ATTRIBUTE_IGNORE = 0,
        CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW = 1,
        CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
        CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY = 3,
        CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
        CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 5,
        CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
        CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7,
        CU_LAUNCH_ATTRIBUTE_PRIORITY = 8,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP = 9,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN = 10,
        CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION = 11,
        CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12,
        CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE = 13,
        CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 14,
    }
}

/// Cluster dimensions, in blocks.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CUlaunchClusterDim {
    /// Width.
    pub x: c_uint,
    /// Height.
    pub y: c_uint,
    /// Depth.
    pub z: c_uint,
}

layout!(CUlaunchClusterDim: size 12, align 4, x @ 0, y @ 4, z @ 8);

/// An event recorded when a kernel's blocks trigger it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(non_snake_case, reason = "keeps the driver's spelling")]
pub struct CUlaunchProgrammaticEvent {
    /// The event.
    pub event: CUevent,
    /// As for `cuEventRecordWithFlags`.
    pub flags: c_int,
    /// Non-zero: at the start of the blocks, not at their trigger.
    pub triggerAtBlockStart: c_int,
}

layout!(CUlaunchProgrammaticEvent: size 16, align 8, event @ 0, flags @ 8, triggerAtBlockStart @ 12);

/// An attribute's value. Begin with `default()`, which is all zeros, then set one member.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_snake_case, reason = "keeps the driver's spelling")]
pub union CUlaunchAttributeValue {
    /// All of it.
    pub pad: [u8; 64],
    /// Cooperative launch: non-zero to ask for it.
    pub cooperative: c_int,
    /// Cluster dimensions.
    pub clusterDim: CUlaunchClusterDim,
    /// Non-zero: the kernel may start before the one in front of it has ended.
    pub programmaticStreamSerializationAllowed: c_int,
    /// The event to record.
    pub programmaticEvent: CUlaunchProgrammaticEvent,
    /// Priority within the stream's range.
    pub priority: c_int,
    /// Memory synchronisation domain.
    pub memSyncDomain: c_uint,
}

layout!(
    CUlaunchAttributeValue: size 64, align 8,
    pad @ 0, cooperative @ 0, clusterDim @ 0, programmaticStreamSerializationAllowed @ 0, programmaticEvent @ 0,
    priority @ 0, memSyncDomain @ 0,
);

impl Default for CUlaunchAttributeValue {
    fn default() -> Self {
        Self { pad: [0; 64] }
    }
}

/// One attribute of a launch.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CUlaunchAttribute {
    /// Which.
    pub id: CUlaunchAttributeID,
    /// Zero.
    pub pad: [u8; 4],
    /// Its value.
    pub value: CUlaunchAttributeValue,
}

layout!(CUlaunchAttribute: size 72, align 8, id @ 0, pad @ 4, value @ 8);

impl CUlaunchAttribute {
    /// Programmatic dependent launch: the kernel may start before its predecessor in the stream has
    /// ended, and must therefore execute `griddepcontrol.wait` before it touches what that one
    /// writes.
    pub fn programmatic_stream_serialization() -> Self {
        let mut value = CUlaunchAttributeValue::default();
        value.programmaticStreamSerializationAllowed = 1;
        let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        Self {
            id,
            pad: [0; 4],
            value,
        }
    }

    /// A launch whose blocks are all resident at once, or that fails.
    pub fn cooperative() -> Self {
        let mut value = CUlaunchAttributeValue::default();
        value.cooperative = 1;
        Self {
            id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
            pad: [0; 4],
            value,
        }
    }
}

impl core::fmt::Debug for CUlaunchAttribute {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // The value is left out: which member it is depends on `id`.
        f.debug_struct("CUlaunchAttribute")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl core::fmt::Debug for CUlaunchAttributeValue {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("CUlaunchAttributeValue { .. }")
    }
}

/// A launch.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(non_snake_case, reason = "keeps the driver's spelling")]
pub struct CUlaunchConfig {
    /// Grid width in blocks.
    pub gridDimX: c_uint,
    /// Grid height in blocks.
    pub gridDimY: c_uint,
    /// Grid depth in blocks.
    pub gridDimZ: c_uint,
    /// Block width in threads.
    pub blockDimX: c_uint,
    /// Block height in threads.
    pub blockDimY: c_uint,
    /// Block depth in threads.
    pub blockDimZ: c_uint,
    /// Dynamic shared memory per block, in bytes.
    pub sharedMemBytes: c_uint,
    /// The stream.
    pub hStream: CUstream,
    /// The attributes; read during the call only.
    pub attrs: *mut CUlaunchAttribute,
    /// How many attributes.
    pub numAttrs: c_uint,
}

layout!(
    CUlaunchConfig: size 56, align 8,
    gridDimX @ 0, gridDimY @ 4, gridDimZ @ 8, blockDimX @ 12, blockDimY @ 16, blockDimZ @ 20, sharedMemBytes @ 24,
    hStream @ 32, attrs @ 40, numAttrs @ 48,
);
