//! What every entry of the driver does, and therefore how it can fail.

use slabfence::sys::CUresult;

/// When a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// It does nothing.
    Before,
    /// It does its work.
    After,
    /// It takes long, and succeeds. Of exchanges, as what follows.
    Late,
    /// What it gives is cut.
    Truncated,
    /// A bit of what it gives is another.
    Garbled,
    /// It gives what it gave the last time.
    Repeated,
    /// Two parts of what it gives are in each other's place.
    Swapped,
    /// A part of what it gives is not there.
    Short,
    /// It panics, and does nothing.
    Panics,
}

impl When {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Before,
        Self::After,
        Self::Late,
        Self::Truncated,
        Self::Garbled,
        Self::Repeated,
        Self::Swapped,
        Self::Short,
        Self::Panics,
    ];
}

/// The one entry that is none of the driver: an exchange with the other ranks.
pub const EXCHANGE: &str = "all_gather";

/// What calls fail with, in turn: nothing that stands for a broken context, and last a code that no driver has a name for.
const CODES: [CUresult; 5] = [
    CUresult::CUDA_ERROR_OUT_OF_MEMORY,
    CUresult::CUDA_ERROR_NOT_PERMITTED,
    CUresult::CUDA_ERROR_UNKNOWN,
    CUresult(4242),
    CUresult::CUDA_ERROR_INVALID_VALUE,
];

/// The code with which the call of this number of an entry fails.
pub(super) fn code(entry: &str, number: u32) -> CUresult {
    // Of these it is an answer: nothing is mapped there any more, no further parameter, no address of the driver's.
    let answers = ["cuMemUnmap", "cuFuncGetParamInfo", "cuPointerGetAttribute"];
    let codes = match answers.contains(&entry) {
        true => &CODES[..CODES.len() - 1],
        false => &CODES[..],
    };
    codes[number as usize % codes.len()]
}

/// What a call does, and therefore how it can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It tells something.
    Asks,
    /// It gives a handle, which a caller that is told of a failure does not have: it is never failed after its effect.
    Makes,
    /// It changes what exists, takes away what can be asked for again, or waits. What it gives besides is lost where it fails
    /// after that.
    Changes,
    /// It takes an object away. Whoever is told of a failure cannot try again, so failed before its effect it leaks that one.
    Ends,
    /// It brings all ranks' words.
    Meets,
}

impl Effect {
    /// The moments at which a call with this effect can fail.
    pub fn moments(self) -> &'static [When] {
        match self {
            Self::Asks | Self::Makes => &[When::Before],
            Self::Changes | Self::Ends => &[When::Before, When::After],
            Self::Meets => &[
                When::Before,
                When::After,
                When::Late,
                When::Truncated,
                When::Garbled,
                When::Repeated,
                When::Swapped,
                When::Short,
                When::Panics,
            ],
        }
    }

    /// The effect of an entry of the table.
    ///
    /// # Panics
    ///
    /// For an entry that is not told here: it has to be.
    pub fn of(entry: &str) -> Self {
        use Effect::{Asks, Changes, Ends, Makes, Meets};
        match entry {
            EXCHANGE => Meets,
            "cuMemAlloc"
            | "cuMemHostAlloc"
            | "cuMemCreate"
            | "cuMemAddressReserve"
            | "cuMemRetainAllocationHandle"
            | "cuMemExportToShareableHandle"
            | "cuMemImportFromShareableHandle"
            | "cuDevicePrimaryCtxRetain"
            | "cuStreamCreate"
            | "cuEventCreate"
            | "cuModuleLoadDataEx"
            | "cuGraphCreate"
            | "cuGraphAddKernelNode"
            | "cuGraphInstantiateWithFlags"
            | "cuUserObjectCreate" => Makes,
            "cuMemFree"
            | "cuMemFreeHost"
            | "cuMemRelease"
            | "cuMemAddressFree"
            | "cuDevicePrimaryCtxRelease"
            | "cuStreamDestroy"
            | "cuEventDestroy"
            | "cuModuleUnload"
            | "cuGraphDestroy"
            | "cuGraphExecDestroy"
            | "cuUserObjectRelease" => Ends,
            "cuInit"
            | "cuCtxPushCurrent"
            | "cuCtxPopCurrent"
            | "cuCtxSetCurrent"
            | "cuCtxSynchronize"
            | "cuMemcpyHtoD"
            | "cuMemcpyDtoH"
            | "cuMemcpyHtoDAsync"
            | "cuMemcpyDtoHAsync"
            | "cuMemcpyDtoDAsync"
            | "cuMemsetD8Async"
            | "cuMemsetD32Async"
            | "cuMemMap"
            | "cuMemUnmap"
            | "cuMemSetAccess"
            | "cuStreamSynchronize"
            | "cuStreamWaitEvent"
            | "cuLaunchHostFunc"
            | "cuEventRecord"
            | "cuEventSynchronize"
            | "cuStreamBeginCapture"
            | "cuStreamEndCapture"
            | "cuThreadExchangeStreamCaptureMode"
            | "cuFuncLoad"
            | "cuLaunchKernel"
            | "cuLaunchKernelEx"
            | "cuGraphLaunch"
            | "cuGraphUpload"
            | "cuUserObjectRetain"
            | "cuGraphRetainUserObject"
            | "slabfenceEmuAnnounceRange" => Changes,
            "cuStreamQuery"
            | "cuStreamIsCapturing"
            | "cuMemHostGetDevicePointer"
            | "cuMemGetAccess"
            | "cuMemGetAddressRange"
            | "cuMemGetAllocationGranularity"
            | "cuPointerGetAttribute"
            | "cuDriverGetVersion"
            | "cuOccupancyMaxActiveBlocksPerMultiprocessor"
            | "cuKernelGetFunction"
            | "cuEventQuery"
            | "cuEventElapsedTime" => Asks,
            other if other.contains("Get") || other.contains("CanAccess") => Asks,
            "cuDeviceTotalMem" => Asks,
            other => panic!("what does {other} do?"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slabfence::sys::SYMBOLS;

    #[test]
    fn the_effect_of_every_entry_is_told() {
        for symbol in SYMBOLS {
            // Not a call that can fail.
            if symbol.entry != "slabfenceEmuVersion" {
                assert!(!Effect::of(symbol.entry).moments().is_empty());
            }
        }
    }
}
