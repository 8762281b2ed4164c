//! What is known of a mapping after calls that may have failed.

use slabfence_sys::CUresult;

/// Whether the driver holds a mapping. A call that fails may have done its work all the same, and the next one
/// then finds nothing there: `CUDA_ERROR_INVALID_VALUE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    No,
    /// The call that maps or unmaps failed.
    Perhaps,
    Yes,
}

impl Held {
    /// Takes in what an unmapping returned, and gives what there is to report.
    pub(super) fn ended(&mut self, code: CUresult) -> CUresult {
        let nothing_there = *self == Self::Perhaps && code == CUresult::CUDA_ERROR_INVALID_VALUE;
        if code.is_success() || nothing_there {
            *self = Self::No;
            return CUresult::CUDA_SUCCESS;
        }
        *self = Self::Perhaps;
        code
    }
}
