//! Launch attributes (`cuLaunchKernelEx`).

use crate::generated::types::{CUlaunchAttribute, CUlaunchAttributeValue};
use crate::generated::values::CUlaunchAttributeID;

impl Default for CUlaunchAttributeValue {
    fn default() -> Self {
        Self { pad: [0; 64] }
    }
}

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
