//! What works before there is a machine: `cuInit` makes it, versions and names of errors need none.

use std::ffi::{CStr, c_char, c_int, c_uint};

use slabfence_emu::entry;
use slabfence_sys::{CUresult, RangeNote};

use crate::process;

/// What every profile serves.
pub const DRIVER_VERSION: c_int = 13_000;

/// `cuInit`: makes the process's machine at the first call.
///
/// # Safety
///
/// None beyond the ABI.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuInit(flags: c_uint) -> CUresult {
    if !process::machine() {
        return CUresult::CUDA_ERROR_NO_DEVICE;
    }
    // SAFETY: takes no pointer.
    unsafe { entry::cuInit::<0>(flags) }
}

/// `cuDriverGetVersion`.
///
/// # Safety
///
/// The driver's contract: `version` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> CUresult {
    if version.is_null() {
        return CUresult::CUDA_ERROR_INVALID_VALUE;
    }
    // SAFETY: not null, and by the contract the caller's to write.
    unsafe { version.write(DRIVER_VERSION) };
    CUresult::CUDA_SUCCESS
}

/// Stores one of an error's two texts; null where the code is not known.
fn tell(to: *mut *const c_char, text: Option<&'static CStr>) -> CUresult {
    if to.is_null() {
        return CUresult::CUDA_ERROR_INVALID_VALUE;
    }
    // SAFETY: not null, and by the contract of both callers theirs to write.
    unsafe { to.write(text.map_or(std::ptr::null(), CStr::as_ptr)) };
    match text {
        Some(_) => CUresult::CUDA_SUCCESS,
        None => CUresult::CUDA_ERROR_INVALID_VALUE,
    }
}

/// `cuGetErrorName`.
///
/// # Safety
///
/// The driver's contract: `name` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(error: CUresult, name: *mut *const c_char) -> CUresult {
    tell(name, entry::describe(error).map(|(name, _)| name))
}

/// `cuGetErrorString`.
///
/// # Safety
///
/// The driver's contract: `text` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(error: CUresult, text: *mut *const c_char) -> CUresult {
    tell(text, entry::describe(error).map(|(_, text)| text))
}

/// Says that this is the emulated driver, and the version of its private entries.
///
/// # Safety
///
/// None beyond the ABI.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slabfenceEmuVersion() -> u32 {
    // SAFETY: takes and touches nothing.
    unsafe { entry::version() }
}

/// What the library says of a range of memory.
///
/// # Safety
///
/// `note` is null or points to a note.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slabfenceEmuAnnounceRange(note: *const RangeNote) -> CUresult {
    // SAFETY: the same contract.
    unsafe { entry::slabfenceEmuAnnounceRange::<0>(note) }
}
