//! How device memory prints.

use core::fmt;

use crate::generated::types::{CUdeviceptr, CUmemGenericAllocationHandle};

impl fmt::Debug for CUdeviceptr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CUdeviceptr({:#x})", self.0)
    }
}

impl fmt::Debug for CUmemGenericAllocationHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CUmemGenericAllocationHandle({})", self.0)
    }
}
