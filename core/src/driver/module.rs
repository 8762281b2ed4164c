//! Loaded code and launches.

use core::ffi::{CStr, c_int, c_void};
use core::fmt;
use std::ffi::CString;
use std::sync::Arc;

use slabfence_ptx::Image;
use slabfence_sys::{CUfunction, CUjit_option, CUmodule, CUresult};

use super::device::Device;
use super::kernel_node::param_layout;
use super::stream::Stream;
use crate::error::{Error, Result};
use crate::layout::DeviceStruct;

/// Bytes of the buffer for what the driver's compiler says.
const JIT_LOG_BYTES: usize = 8192;

/// Code that cannot run on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageError {
    /// Name of the image.
    pub image: String,
    /// The device it was to run on, in words.
    pub device: String,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            image,
            device,
            what,
        } = self;
        write!(f, "kernel image `{image}` on {device}: {what}")
    }
}

impl std::error::Error for ImageError {}

/// A loaded image. A clone is the same module; it is unloaded when the last clone and the last [`Kernel`] have gone.
#[derive(Clone, Debug)]
pub struct Module {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    device: Device,
    name: String,
    raw: CUmodule,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: loaded by `Module::load_bytes`, unloaded only here; every kernel holds this.
        self.device.teardown("cuModuleUnload", |api| unsafe {
            Ok((api.cuModuleUnload)(self.raw))
        });
    }
}

impl Module {
    /// Loads one of the shipped images: its cubin, or its PTX on the emulated driver, which has no machine code.
    ///
    /// # Errors
    ///
    /// [`Error::Image`] with the list of those that exist when no cubin fits the device. The driver's compiler is not
    /// asked: what runs is what was checked.
    pub fn load(device: &Device, image: &Image) -> Result<Self> {
        if device.driver().is_emulated() {
            return Self::from_ptx(device, image.name, image.ptx);
        }
        let (major, minor) = device.info().compute_capability;
        match image.cubin_for(major, minor) {
            Ok(cubin) => Self::from_cubin(device, image.name, cubin),
            Err(unsupported) => {
                Err(image_error(device, image.name, unsupported.to_string()).into())
            }
        }
    }

    /// Loads PTX text, which the driver compiles. `name` is for errors.
    pub fn from_ptx(device: &Device, name: &str, ptx: &str) -> Result<Self> {
        let text = CString::new(ptx)
            .map_err(|_| image_error(device, name, "the PTX text has a NUL inside".to_owned()))?;
        Self::load_bytes(device, name, text.as_bytes_with_nul())
    }

    /// Loads machine code. `name` is for errors.
    pub fn from_cubin(device: &Device, name: &str, cubin: &[u8]) -> Result<Self> {
        const HEADER: usize = 64;
        if cubin.len() < HEADER || !cubin.starts_with(b"\x7fELF") {
            let what = format!("{} bytes that are no ELF file", cubin.len());
            return Err(image_error(device, name, what).into());
        }
        Self::load_bytes(device, name, cubin)
    }

    fn load_bytes(device: &Device, name: &str, bytes: &[u8]) -> Result<Self> {
        let _guard = device.setup()?;
        let mut log = vec![0u8; JIT_LOG_BYTES];
        let mut options = [
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values: [*mut c_void; 2] = [
            log.as_mut_ptr().cast(),
            // A number that travels as a pointer; one byte stays zero, so that the text always ends.
            core::ptr::without_provenance_mut(JIT_LOG_BYTES - 1),
        ];
        let mut raw = CUmodule::null();
        // SAFETY: the image is terminated text or an ELF file, the two forms that the call tells apart itself; the options
        // and their values have the length given; the log has the room that the second option states.
        let code = unsafe {
            (device.api().cuModuleLoadDataEx)(
                &mut raw,
                bytes.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if let Err(error) = device.check("cuModuleLoadDataEx", code) {
            let log = CStr::from_bytes_until_nul(&log).unwrap_or_default();
            let log = log.to_string_lossy();
            let mut what = error.to_string();
            if !log.trim().is_empty() {
                what = format!("{what}; the compiler says: {}", log.trim());
            }
            return Err(image_error(device, name, what).into());
        }
        Ok(Self {
            inner: Arc::new(Inner {
                device: device.clone(),
                name: name.to_owned(),
                raw,
            }),
        })
    }

    /// Name of the image.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The device it is loaded on.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Finds a kernel and loads its code now: code that is first loaded inside a capture, or while a kernel waits for a
    /// peer, can deadlock.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let device = &self.inner.device;
        let missing =
            |what: &str| image_error(device, &self.inner.name, format!("{what} `{name}`"));
        let symbol = CString::new(name).map_err(|_| missing("no kernel can be called"))?;
        let _guard = device.setup()?;
        let mut raw = CUfunction::null();
        // SAFETY: the module is loaded; `raw` is a live out-parameter; the name is terminated.
        let code = unsafe {
            (device.api().cuModuleGetFunction)(&mut raw, self.inner.raw, symbol.as_ptr())
        };
        if code == CUresult::CUDA_ERROR_NOT_FOUND {
            return Err(missing("it has no kernel").into());
        }
        device.check("cuModuleGetFunction", code)?;
        if let Some(load) = device.api().cuFuncLoad {
            // SAFETY: a function of the loaded module.
            let code = unsafe { load(raw) };
            device.check("cuFuncLoad", code)?;
        }
        Ok(Kernel {
            module: self.clone(),
            name: name.to_owned(),
            raw,
            params: param_layout(device, raw)?,
        })
    }
}

fn image_error(device: &Device, image: &str, what: String) -> ImageError {
    let info = device.info();
    let (major, minor) = info.compute_capability;
    ImageError {
        image: image.to_owned(),
        device: format!(
            "device {} ({}, compute capability {major}.{minor})",
            info.ordinal, info.name
        ),
        what,
    }
}

/// A loaded kernel of a module.
#[derive(Clone, Debug)]
pub struct Kernel {
    module: Module,
    name: String,
    raw: CUfunction,
    /// Offset and size of each parameter, where the driver tells.
    params: Option<Vec<(usize, usize)>>,
}

impl Kernel {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// How many CTAs of `block_threads` threads the whole device holds at once.
    pub fn max_resident_ctas(&self, block_threads: u32) -> Result<u32> {
        let device = self.module.device();
        let threads = c_int::try_from(block_threads).map_err(|_| Error::Argument {
            operation: "Kernel::max_resident_ctas",
            what: format!("{block_threads} threads are no CTA"),
        })?;
        let _guard = device.bind()?;
        let mut ctas: c_int = 0;
        // SAFETY: `ctas` is a live out-parameter; the function is loaded.
        let code = unsafe {
            (device.api().cuOccupancyMaxActiveBlocksPerMultiprocessor()?)(
                &mut ctas, self.raw, threads, 0,
            )
        };
        device.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", code)?;
        let per_sm = u32::try_from(ctas).unwrap_or(0);
        Ok(per_sm.saturating_mul(device.info().sm_count))
    }

    /// Enqueues one launch of `grid` CTAs of `block` threads with `params` as the kernel's only parameter.
    ///
    /// # Safety
    ///
    /// What the kernel does with `params` is sound: the addresses in it are of live memory of the right size until the
    /// launch, or every execution of the graph that it is captured into, has ended. The module outlives them too.
    pub unsafe fn launch<T: DeviceStruct>(
        &self,
        stream: &Stream,
        grid: u32,
        block: u32,
        params: &T,
    ) -> Result<()> {
        if let Some(layout) = &self.params
            && *layout != [(0, size_of::<T>())]
        {
            return Err(Error::Argument {
                operation: "Kernel::launch",
                what: format!(
                    "kernel `{}` has parameters (offset, bytes) {layout:?}, not one {} of {} bytes: the image was built from other layouts",
                    self.name,
                    T::NAME,
                    size_of::<T>()
                ),
            });
        }
        let device = self.module.device();
        let _guard = device.bind()?;
        let mut values: [*mut c_void; 1] = [core::ptr::from_ref(params).cast_mut().cast()];
        // SAFETY: function and stream are live; the one parameter is read during the call only and has the kernel's size
        // where the driver tells it, by the caller's word elsewhere.
        let code = unsafe {
            (device.api().cuLaunchKernel)(
                self.raw,
                grid,
                1,
                1,
                block,
                1,
                1,
                0,
                stream.raw(),
                values.as_mut_ptr(),
                core::ptr::null_mut(),
            )
        };
        device.check("cuLaunchKernel", code)
    }
}
