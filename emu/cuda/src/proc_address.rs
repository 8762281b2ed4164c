//! `cuGetProcAddress`: functions by symbol and version.

use std::ffi::{CStr, c_char, c_int, c_void};

use slabfence_sys::{CUdriverProcAddress_flags, CUdriverProcAddressQueryResult, CUresult};

use crate::driver::DRIVER_VERSION;
use crate::exports::EXPORTS;

type Answer = CUdriverProcAddressQueryResult;

/// The newest ABI of a symbol that is not above a version.
fn find(symbol: &CStr, version: c_int) -> Result<*const c_void, Answer> {
    let of_symbol = || EXPORTS.iter().filter(|export| export.symbol == symbol);
    let known = of_symbol().filter(|export| export.version <= version);
    match known.max_by_key(|export| export.version) {
        Some(export) => Ok(export.function.address()),
        None if of_symbol().next().is_some() => {
            Err(Answer::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT)
        }
        None => Err(Answer::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
    }
}

/// `cuGetProcAddress` as it is since 12.0: what is not covered is not found.
///
/// # Safety
///
/// The driver's contract: a NUL-terminated symbol; `function` and `status` are null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetProcAddress_v2(
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: CUdriverProcAddress_flags,
    status: *mut Answer,
) -> CUresult {
    let legacy = CUdriverProcAddress_flags::CU_GET_PROC_ADDRESS_LEGACY_STREAM;
    if symbol.is_null() || function.is_null() || version > DRIVER_VERSION {
        return CUresult::CUDA_ERROR_INVALID_VALUE;
    }
    // SAFETY: not null, and by the contract a NUL-terminated string.
    let symbol = unsafe { CStr::from_ptr(symbol) };
    // There is no default stream of each thread's own, and so no functions that mean it.
    let found = match flags.bits() & !legacy.bits() {
        0 => find(symbol, version),
        _ => Err(Answer::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
    };
    let (address, answer, code) = match found {
        Ok(address) => (
            address,
            Answer::CU_GET_PROC_ADDRESS_SUCCESS,
            CUresult::CUDA_SUCCESS,
        ),
        Err(answer) => (std::ptr::null(), answer, CUresult::CUDA_ERROR_NOT_FOUND),
    };
    // SAFETY: not null, and by the contract the caller's to write.
    unsafe { function.write(address.cast_mut()) };
    if !status.is_null() {
        // SAFETY: as above.
        unsafe { status.write(answer) };
    }
    code
}

/// `cuGetProcAddress` as it was in 11.3.
///
/// # Safety
///
/// As of [`cuGetProcAddress_v2`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetProcAddress(
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: CUdriverProcAddress_flags,
) -> CUresult {
    // SAFETY: the same contract.
    unsafe { cuGetProcAddress_v2(symbol, function, version, flags, std::ptr::null_mut()) }
}
