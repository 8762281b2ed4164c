//! The result of every driver call.

use crate::generated::values::CUresult;

impl CUresult {
    /// Whether the call succeeded.
    pub const fn is_success(self) -> bool {
        self.0 == Self::CUDA_SUCCESS.0
    }
}
