//! Both collectives between processes, and what those ask the driver for to reach each other.

use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use slabfence::sys::{
    Api, CUdevice, CUmemAllocationHandleType, CUmemGenericAllocationHandle, CUresult, pfn,
};
use slabfence_tests::captured::gathers_and_reduces;
use slabfence_tests::ranks::Member;

use super::Outcome;
use super::part::Part;

/// Runs them, and tells which devices were asked to reach which, and how much memory was imported.
pub fn run(part: &Part, member: &Member) -> Outcome {
    gathers_and_reduces(member, part.transport())?;
    let asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let version = member.device.driver().version();
    println!("CUDA {version}, device {}", member.device.ordinal());
    println!("reach: {asked:?}");
    println!("imported: {}", imported());
    Ok(())
}

/// How many allocations of other processes were imported.
pub fn imported() -> u32 {
    IMPORTED.load(Ordering::Relaxed)
}

/// Pairs of devices of which the second was asked to be reached from the first.
static ASKED: Mutex<BTreeSet<(c_int, c_int)>> = Mutex::new(BTreeSet::new());
static ACCESS: OnceLock<pfn::cuDeviceCanAccessPeer> = OnceLock::new();
/// Allocations of other processes that were imported.
static IMPORTED: AtomicU32 = AtomicU32::new(0);
static IMPORT: OnceLock<pfn::cuMemImportFromShareableHandle> = OnceLock::new();

#[allow(unsafe_code, reason = "stands in for an entry of the driver")]
unsafe extern "C" fn can_access(can: *mut c_int, device: CUdevice, peer: CUdevice) -> CUresult {
    let Some(original) = ACCESS.get() else {
        return CUresult::CUDA_ERROR_UNKNOWN;
    };
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    asked.insert((device.0, peer.0));
    // SAFETY: the caller's arguments, by the caller's word.
    unsafe { original(can, device, peer) }
}

#[allow(unsafe_code, reason = "stands in for an entry of the driver")]
unsafe extern "C" fn import(
    handle: *mut CUmemGenericAllocationHandle,
    descriptor: *mut c_void,
    kind: CUmemAllocationHandleType,
) -> CUresult {
    let Some(original) = IMPORT.get() else {
        return CUresult::CUDA_ERROR_UNKNOWN;
    };
    // SAFETY: the caller's arguments, by the caller's word.
    let code = unsafe { original(handle, descriptor, kind) };
    if code == CUresult::CUDA_SUCCESS {
        IMPORTED.fetch_add(1, Ordering::Relaxed);
    }
    code
}

/// A driver that keeps what it is asked for.
pub fn watched(mut api: Api) -> Api {
    if let Some(original) = api.cuDeviceCanAccessPeer {
        ACCESS.get_or_init(|| original);
        api.cuDeviceCanAccessPeer = Some(can_access);
    }
    if let Some(original) = api.cuMemImportFromShareableHandle {
        IMPORT.get_or_init(|| original);
        api.cuMemImportFromShareableHandle = Some(import);
    }
    api
}
