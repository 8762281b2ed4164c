//! Holding a thread where it has locks.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Instant;

use slabfence::group::{Bootstrap, BootstrapError};
use slabfence::sys::{Api, CUdeviceptr, CUresult, pfn};

/// Before an exchange with the other ranks.
pub static EXCHANGE: Gate = Gate::new();
/// Before memory is unmapped.
pub static UNMAP: Gate = Gate::new();

/// Holds the first thread that comes after it was shut.
pub struct Gate {
    shut: AtomicBool,
    reached: Barrier,
    opened: Barrier,
}

impl Gate {
    const fn new() -> Self {
        Self {
            shut: AtomicBool::new(false),
            reached: Barrier::new(2),
            opened: Barrier::new(2),
        }
    }

    pub fn shut(&self) {
        self.shut.store(true, Ordering::Release);
    }

    /// Waits until a thread is held.
    pub fn reached(&self) {
        self.reached.wait();
    }

    /// Lets the held thread go on.
    pub fn open(&self) {
        self.opened.wait();
    }

    fn pass(&self) {
        if self.shut.swap(false, Ordering::AcqRel) {
            self.reached.wait();
            self.opened.wait();
        }
    }
}

/// A bootstrap with a gate.
pub struct Gated(pub Arc<dyn Bootstrap>);

impl Bootstrap for Gated {
    fn all_gather(&self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, BootstrapError> {
        EXCHANGE.pass();
        self.0.all_gather(bytes, deadline)
    }

    fn folder(&self) -> Option<&Path> {
        self.0.folder()
    }
}

static ORIGINAL: OnceLock<pfn::cuMemUnmap> = OnceLock::new();

#[allow(unsafe_code, reason = "stands in for an entry of the driver")]
unsafe extern "C" fn unmap(at: CUdeviceptr, bytes: usize) -> CUresult {
    UNMAP.pass();
    let Some(original) = ORIGINAL.get() else {
        return CUresult::CUDA_ERROR_UNKNOWN;
    };
    // SAFETY: the caller's arguments, by the caller's word.
    unsafe { original(at, bytes) }
}

/// A driver with a gate.
pub fn gated(mut api: Api) -> Api {
    if let Some(original) = api.cuMemUnmap {
        ORIGINAL.get_or_init(|| original);
        api.cuMemUnmap = Some(unmap);
    }
    api
}
