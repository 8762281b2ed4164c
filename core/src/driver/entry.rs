//! The opened driver and the words of its errors.

use core::ffi::{CStr, c_char, c_int};
use core::fmt;
use std::sync::{Arc, Mutex};

use slabfence_sys::{Api, CUresult, LoadError, MissingSymbol, RangeNote, STUB_LIBRARY_ADVICE};

use super::captures::Captures;
use super::device::DeviceInfo;
use super::fork;
use crate::error::Result;

/// A driver call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverError {
    /// The entry, in the driver's spelling.
    pub call: &'static str,
    /// What it returned.
    pub code: CUresult,
    /// The driver's name of the code.
    pub name: String,
    /// The driver's words for the code.
    pub text: String,
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            call,
            code,
            name,
            text,
        } = self;
        write!(f, "{call} failed: {name} ({}): {text}", code.0)?;
        match *code {
            CUresult::CUDA_ERROR_STUB_LIBRARY => write!(f, "; {STUB_LIBRARY_ADVICE}"),
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                f.write_str("; free device memory or ask for smaller or fewer channels")
            }
            CUresult::CUDA_ERROR_NOT_INITIALIZED => {
                f.write_str("; was the driver first used after a fork?")
            }
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED => {
                f.write_str("; the call is not allowed during a capture: make it before, or after the capture has ended")
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for DriverError {}

impl DriverError {
    /// Whether the context is beyond use, so that nothing runs in it any more. Every other error says of the one call only
    /// that it failed.
    pub fn breaks_context(&self) -> bool {
        matches!(
            self.code,
            CUresult::CUDA_ERROR_DEINITIALIZED
                | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
                | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
                | CUresult::CUDA_ERROR_CONTAINED
                | CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
                | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
                | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
                | CUresult::CUDA_ERROR_ASSERT
                | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
                | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
                | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
                | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
                | CUresult::CUDA_ERROR_INVALID_PC
                | CUresult::CUDA_ERROR_LAUNCH_FAILED
                | CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK
                | CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED
                | CUresult::CUDA_ERROR_EXTERNAL_DEVICE
        )
    }
}

/// An opened and initialised driver. A clone is the same driver.
#[derive(Clone)]
pub struct Driver {
    api: Arc<Api>,
    captures: Arc<Mutex<Captures>>,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("version", &self.version())
            .field("emulated", &self.is_emulated())
            .finish()
    }
}

impl Driver {
    /// Opens this machine's `libcuda.so.1` and initialises it.
    pub fn open() -> Result<Self> {
        fork::refuse()?;
        Self::from_api(Api::open()?.clone())
    }

    /// Initialises a driver whose functions came from elsewhere: an emulated machine, or a host's own loader.
    pub fn from_api(api: Api) -> Result<Self> {
        fork::watch();
        let driver = Self {
            api: Arc::new(api),
            captures: Arc::default(),
        };
        fork::refuse()?;
        // SAFETY: the one argument, flags, must be zero; there is no other condition.
        let code = unsafe { (driver.api.cuInit)(0) };
        if code == CUresult::CUDA_ERROR_STUB_LIBRARY {
            return Err(LoadError::StubLibrary.into());
        }
        driver.check("cuInit", code)?;
        Ok(driver)
    }

    /// The function table.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// The captures of all who opened a device by this driver or a clone.
    pub(super) fn captures(&self) -> &Mutex<Captures> {
        &self.captures
    }

    /// Newest CUDA version that the driver serves: 1000 × major + 10 × minor.
    pub fn version(&self) -> i32 {
        self.api.driver_version
    }

    /// Whether this is slabfence's emulated driver.
    pub fn is_emulated(&self) -> bool {
        self.api.slabfenceEmuVersion.is_some()
    }

    /// Every device that the driver shows, by ordinal.
    pub fn devices(&self) -> Result<Vec<DeviceInfo>> {
        fork::refuse()?;
        let mut count: c_int = 0;
        // SAFETY: `count` is a live out-parameter of the right type.
        let code = unsafe { (self.api.cuDeviceGetCount)(&mut count) };
        self.check("cuDeviceGetCount", code)?;
        let count = u32::try_from(count).unwrap_or(0);
        (0..count)
            .map(|ordinal| DeviceInfo::query(self, ordinal))
            .collect()
    }

    /// Tells an emulated driver's checker what a range of device memory is for. A real driver is told nothing.
    pub(crate) fn announce(&self, note: &RangeNote) -> Result<()> {
        fork::refuse()?;
        let Some(announce) = self.api.slabfenceEmuAnnounceRange else {
            return Ok(());
        };
        // SAFETY: the note is live for the call, which copies it; the driver checks that the range is memory of its own.
        let code = unsafe { announce(note) };
        self.check("slabfenceEmuAnnounceRange", code)
    }

    /// Turns what `call` returned into a result.
    pub(crate) fn check(&self, call: &'static str, code: CUresult) -> Result<()> {
        if code.is_success() {
            return Ok(());
        }
        Err(self.describe(call, code).into())
    }

    /// For `Drop`, which can return nothing: logs what `call` returned, unless it only says that the driver or the
    /// context went first, as it does while a process ends; or that the driver lacks it. Whether nothing is left.
    pub(crate) fn note_drop(
        &self,
        call: &'static str,
        returned: Result<CUresult, MissingSymbol>,
    ) -> bool {
        match returned {
            Ok(code) if code.is_success() || gone(code) => return true,
            Ok(code) => log::error!("while dropping: {}", self.describe(call, code)),
            Err(missing) => log::error!("while dropping: {missing}"),
        }
        false
    }

    fn describe(&self, call: &'static str, code: CUresult) -> DriverError {
        let words = |get: unsafe extern "C" fn(CUresult, *mut *const c_char) -> CUresult| {
            let mut words: *const c_char = core::ptr::null();
            // SAFETY: `words` is a live out-parameter; the call accepts any code.
            let found = unsafe { get(code, &mut words) };
            if !found.is_success() || words.is_null() {
                return None;
            }
            // SAFETY: on success the driver gives "a NULL-terminated string" of its own static memory.
            Some(
                unsafe { CStr::from_ptr(words) }
                    .to_string_lossy()
                    .into_owned(),
            )
        };
        DriverError {
            call,
            code,
            name: words(self.api.cuGetErrorName).unwrap_or_else(|| format!("{code:?}")),
            text: words(self.api.cuGetErrorString)
                .unwrap_or_else(|| "the driver has no words for it".to_owned()),
        }
    }
}

/// Whether a code says that what is to be freed has gone with its driver or context.
pub(crate) fn gone(code: CUresult) -> bool {
    matches!(
        code,
        CUresult::CUDA_ERROR_DEINITIALIZED | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
    )
}
