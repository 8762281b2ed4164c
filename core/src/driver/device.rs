//! Devices and their primary contexts.

use core::ffi::{c_char, c_int};
use core::fmt;
use std::sync::{Arc, OnceLock};

use slabfence_sys::{
    Api, CUcontext, CUdevice, CUdevice_P2PAttribute, CUdevice_attribute, CUresult, CUstream,
    CUstream_flags, CUuuid, MissingSymbol,
};

use super::context::{ContextGuard, SetupGuard};
use super::entry::{Driver, gone};
use super::{fork, vmm};
use crate::error::{Error, Result};

/// What a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Number in this process. Other processes may number the same devices differently.
    pub ordinal: u32,
    /// The product's name.
    pub name: String,
    /// Identity, the same in every process.
    pub uuid: CUuuid,
    /// Compute capability, major and minor.
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub sm_count: u32,
    /// Memory, bytes.
    pub total_memory: u64,
    /// Whether `cuMemCreate` and its family work.
    pub virtual_memory: bool,
    /// Whether allocations can be exported as POSIX file descriptors.
    pub posix_handles: bool,
}

impl DeviceInfo {
    pub(crate) fn query(driver: &Driver, ordinal: u32) -> Result<Self> {
        let api = driver.api();
        let device = handle(driver, ordinal)?;
        let attribute = |which| attribute(driver, device, which);

        let mut name = [0 as c_char; 256];
        // SAFETY: the buffer has the length that is given with it; the driver terminates what it writes.
        let code =
            unsafe { (api.cuDeviceGetName)(name.as_mut_ptr(), name.len() as c_int - 1, device) };
        driver.check("cuDeviceGetName", code)?;
        let name: Vec<u8> = name
            .iter()
            .take_while(|&&c| c != 0)
            .map(|&c| c as u8)
            .collect();

        let mut uuid = CUuuid::default();
        // SAFETY: `uuid` is a live out-parameter of the driver's layout.
        let code = unsafe { (api.cuDeviceGetUuid)(&mut uuid, device) };
        driver.check("cuDeviceGetUuid", code)?;

        let mut total_memory = 0usize;
        // SAFETY: `total_memory` is a live out-parameter of the right type.
        let code = unsafe { (api.cuDeviceTotalMem()?)(&mut total_memory, device) };
        driver.check("cuDeviceTotalMem", code)?;

        use CUdevice_attribute as A;
        Ok(Self {
            ordinal,
            name: String::from_utf8_lossy(&name).into_owned(),
            uuid,
            compute_capability: (
                attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            sm_count: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            total_memory: total_memory as u64,
            virtual_memory: attribute(A::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)?
                != 0,
            posix_handles: attribute(
                A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
            )? != 0,
        })
    }
}

fn handle(driver: &Driver, ordinal: u32) -> Result<CUdevice> {
    let wanted = c_int::try_from(ordinal).map_err(|_| Error::Argument {
        operation: "Device::open",
        what: format!("ordinal {ordinal} is no device"),
    })?;
    let mut device = CUdevice::default();
    // SAFETY: `device` is a live out-parameter; the driver refuses an ordinal that it does not have.
    let code = unsafe { (driver.api().cuDeviceGet)(&mut device, wanted) };
    driver.check("cuDeviceGet", code)?;
    Ok(device)
}

/// An attribute; a negative value, which none of ours has, counts as zero.
fn attribute(driver: &Driver, device: CUdevice, which: CUdevice_attribute) -> Result<u32> {
    let mut value: c_int = 0;
    // SAFETY: `value` is a live out-parameter; the driver refuses a device or attribute that it does not know.
    let code = unsafe { (driver.api().cuDeviceGetAttribute)(&mut value, which, device) };
    driver.check("cuDeviceGetAttribute", code)?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// A device with its primary context retained: the context that the CUDA runtime and every framework use. A clone is the
/// same device; the last one to go releases the context.
#[derive(Clone)]
pub struct Device {
    inner: Arc<Inner>,
}

struct Inner {
    driver: Driver,
    info: DeviceInfo,
    handle: CUdevice,
    context: CUcontext,
    /// Stream of this library's own blocking copies: never the legacy default stream, which would wait for, or break,
    /// the host's captures.
    service: OnceLock<CUstream>,
    granularity: OnceLock<usize>,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.inner.info).finish()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if fork::forked() {
            return;
        }
        let api = self.driver.api();
        if let Some(&stream) = self.service.get() {
            // SAFETY: made by this device, never handed out, and nobody else can use it any more. A stream knows its
            // context: none need be current.
            let destroyed = api
                .cuStreamDestroy()
                .map(|destroy| unsafe { destroy(stream) });
            self.driver.note_drop("cuStreamDestroy", destroyed);
        }
        // SAFETY: pairs with the retain in `Device::open`; whatever was made in the context holds this device.
        let code = unsafe { (api.cuDevicePrimaryCtxRelease)(self.handle) };
        self.driver.note_drop("cuDevicePrimaryCtxRelease", Ok(code));
    }
}

impl Device {
    /// Retains the primary context of the device with this ordinal.
    pub fn open(driver: &Driver, ordinal: u32) -> Result<Self> {
        fork::refuse()?;
        let info = DeviceInfo::query(driver, ordinal)?;
        let handle = handle(driver, ordinal)?;
        let mut context = CUcontext::null();
        // SAFETY: `context` is a live out-parameter, `handle` came from `cuDeviceGet`.
        let code = unsafe { (driver.api().cuDevicePrimaryCtxRetain)(&mut context, handle) };
        driver.check("cuDevicePrimaryCtxRetain", code)?;
        let inner = Inner {
            driver: driver.clone(),
            info,
            handle,
            context,
            service: OnceLock::new(),
            granularity: OnceLock::new(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// What the device is.
    pub fn info(&self) -> &DeviceInfo {
        &self.inner.info
    }

    /// Number of the device in this process.
    pub fn ordinal(&self) -> u32 {
        self.inner.info.ordinal
    }

    /// The driver that has the device.
    pub fn driver(&self) -> &Driver {
        &self.inner.driver
    }

    /// The primary context, for hosts that make driver calls of their own. It stays retained while this device lives.
    pub fn context(&self) -> CUcontext {
        self.inner.context
    }

    pub(crate) fn api(&self) -> &Api {
        self.inner.driver.api()
    }

    pub(crate) fn check(&self, call: &'static str, code: CUresult) -> Result<()> {
        self.inner.driver.check(call, code)
    }

    /// Makes the primary context current on this thread until the guard is dropped; what was current before is then
    /// current again. Free of cost where it is current already.
    pub fn bind(&self) -> Result<ContextGuard<'_>> {
        ContextGuard::enter(self)
    }

    /// [`bind`](Self::bind), with this thread's calls allowed although other threads capture. For set-up and teardown.
    pub(crate) fn setup(&self) -> Result<SetupGuard<'_>> {
        SetupGuard::enter(self)
    }

    /// [`setup`](Self::setup) for calls that have to end soon: nothing that graphs have let go of is dropped.
    pub(super) fn observe(&self) -> Result<SetupGuard<'_>> {
        SetupGuard::enter_only(self)
    }

    /// Runs `free` with the context current, from `Drop`: never panics, logs a failure or a missing entry, does nothing in
    /// a forked child. Whether nothing is left for this process.
    pub(crate) fn teardown(
        &self,
        call: &'static str,
        free: impl FnOnce(&Api) -> Result<CUresult, MissingSymbol>,
    ) -> bool {
        if fork::forked() {
            return true;
        }
        // A drop cannot be called again, so it makes a second attempt itself.
        match self.setup().or_else(|_| self.setup()) {
            Ok(_guard) => self.inner.driver.note_drop(call, free(self.api())),
            Err(Error::Driver(error)) if gone(error.code) => true,
            Err(error) => {
                log::error!("{call} while dropping: {error}");
                false
            }
        }
    }

    /// Waits until everything enqueued in the context has ended. Unbounded. Captures on other devices are left alone.
    pub fn synchronize(&self) -> Result<()> {
        let _guard = self.setup()?;
        self.wait()
    }

    /// [`synchronize`](Self::synchronize) that drops nothing which graphs have let go of: somebody with a lock waits for it.
    pub(crate) fn synchronize_only(&self) -> Result<()> {
        let _guard = self.observe()?;
        self.wait()
    }

    fn wait(&self) -> Result<()> {
        // SAFETY: the primary context is current; the call has no argument.
        let code = unsafe { (self.api().cuCtxSynchronize()?)() };
        self.check("cuCtxSynchronize", code)
    }

    /// Whether kernels on the device `ordinal` can be let into this device's memory. True for itself.
    pub fn is_accessible_from(&self, ordinal: u32) -> Result<bool> {
        fork::refuse()?;
        if ordinal == self.ordinal() {
            return Ok(true);
        }
        let peer = handle(&self.inner.driver, ordinal)?;
        let mut can: c_int = 0;
        // SAFETY: `can` is a live out-parameter; both devices came from `cuDeviceGet`.
        let code =
            unsafe { (self.api().cuDeviceCanAccessPeer()?)(&mut can, peer, self.inner.handle) };
        self.check("cuDeviceCanAccessPeer", code)?;
        Ok(can != 0)
    }

    /// Whether the link to the device `ordinal` carries atomics, and with them single 16-byte accesses. True for itself.
    pub fn native_atomics_to(&self, ordinal: u32) -> Result<bool> {
        fork::refuse()?;
        if ordinal == self.ordinal() {
            return Ok(true);
        }
        let peer = handle(&self.inner.driver, ordinal)?;
        let mut native: c_int = 0;
        let which = CUdevice_P2PAttribute::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
        // SAFETY: `native` is a live out-parameter; both devices came from `cuDeviceGet`.
        let code = unsafe {
            (self.api().cuDeviceGetP2PAttribute()?)(&mut native, which, self.inner.handle, peer)
        };
        self.check("cuDeviceGetP2PAttribute", code)?;
        Ok(native != 0)
    }

    /// Bytes of which physical allocations and their mappings are multiples.
    pub fn granularity(&self) -> Result<usize> {
        fork::refuse()?;
        if let Some(&bytes) = self.inner.granularity.get() {
            return Ok(bytes);
        }
        let bytes = vmm::granularity(self)?;
        Ok(*self.inner.granularity.get_or_init(|| bytes))
    }

    /// The stream of this library's own blocking copies.
    pub(crate) fn service(&self) -> Result<CUstream> {
        if let Some(&stream) = self.inner.service.get() {
            return Ok(stream);
        }
        let _guard = self.setup()?;
        // What could not be freed is not made.
        let destroy = self.api().cuStreamDestroy()?;
        let mut stream = CUstream::null();
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING;
        // SAFETY: `stream` is a live out-parameter and the primary context is current.
        let code = unsafe { (self.api().cuStreamCreate()?)(&mut stream, flags) };
        self.check("cuStreamCreate", code)?;
        let kept = *self.inner.service.get_or_init(|| stream);
        if kept != stream {
            // SAFETY: another thread was first; this one's stream was never used.
            let code = unsafe { destroy(stream) };
            self.driver().note_drop("cuStreamDestroy", Ok(code));
        }
        Ok(kept)
    }
}
