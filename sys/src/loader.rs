//! Finding a driver and filling the table from it.

use core::any::Any;
use core::ffi::{CStr, c_int, c_void};
use core::fmt;
use core::ptr;
use std::error::Error;
use std::sync::Arc;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::error::LoadError;
use crate::generated::functions::PFN_cuGetProcAddress_v12000;
use crate::generated::values::{
    CUdriverProcAddress_flags, CUdriverProcAddressQueryResult, CUresult,
};
use crate::table::{Api, pfn};

/// The one name the driver is opened by. `libcuda.so` is not tried: it is what a toolkit calls its
/// stub.
const LIBRARY: &str = "libcuda.so.1";

/// Keeps the library mapped though every handle to it be closed: driver threads and exit handlers
/// run until the process ends. The value is that of glibc and musl on Linux.
const RTLD_NODELETE: c_int = 0x1000;

/// `cuGetProcAddress_v2`, the only entry of a driver that is looked up by its bare name.
type GetProcAddress = PFN_cuGetProcAddress_v12000;

impl Api {
    /// Opens this machine's driver, `libcuda.so.1`, and fills the table from it. The library stays
    /// open until the process ends. Nothing of CUDA is initialised: that is `cuInit`.
    ///
    /// # Errors
    ///
    /// No library, a library older than CUDA 12.0, the toolkit's stub, or a required entry missing.
    pub fn open() -> Result<Self, LoadError> {
        // SAFETY: runs the initialisers of the library that the system's linker knows as the CUDA
        // driver; a program that uses CUDA trusts that library, and its initialisers ask nothing of
        // their caller.
        let opened = unsafe { Library::open(Some(LIBRARY), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) };
        let library = opened.map_err(|error| LoadError::NoLibrary {
            library: LIBRARY,
            reason: reason(&error),
        })?;
        let address = address_of(&library, c"cuGetProcAddress_v2");
        // SAFETY: null is `None` in this type; a CUDA driver's symbol of this name has this ABI, in
        // every version.
        let get_proc_address =
            unsafe { core::mem::transmute::<*const c_void, Option<GetProcAddress>>(address) };
        let Some(get_proc_address) = get_proc_address else {
            return Err(without_proc_address(&library));
        };
        let stub = Err(CUresult::CUDA_ERROR_STUB_LIBRARY);
        if proc_address(get_proc_address, c"cuDriverGetVersion", 2020) == stub {
            return Err(LoadError::StubLibrary);
        }
        let mut resolve = |name: &CStr, version: c_int| -> *const c_void {
            let address = proc_address(get_proc_address, name, version).unwrap_or(ptr::null());
            // Entries without a version are no CUDA symbols: an emulated library may export them by
            // name only.
            if address.is_null() && version == 0 {
                address_of(&library, name)
            } else {
                address
            }
        };
        // SAFETY: `cuGetProcAddress_v2` gives the function of the ABI asked for, or null; a library
        // that exports the private names is the emulated driver, whose ABI for them is the table's.
        // The library is never unmapped.
        let api = unsafe { Self::load(&mut resolve) };
        // Not closed even where the table could not be filled: RTLD_NODELETE would keep it mapped
        // in any case.
        let _never_closed = library.into_raw();
        api
    }

    /// Fills the table from `resolve`, which is asked for each entry of [`SYMBOLS`](crate::SYMBOLS)
    /// by symbol and version and gives null for what it does not have. This is how a driver in the
    /// same process, or a host's own loader, is used.
    ///
    /// Nothing newer than the driver's own version is asked for: what a resolver would give for
    /// that could only be a function of an older ABI.
    ///
    /// # Safety
    ///
    /// What `resolve` gives for a symbol and version is null, or a function with the ABI that
    /// [`pfn`](crate::pfn) states for that entry, which stays callable until the process ends.
    ///
    /// # Errors
    ///
    /// A missing required entry, or a driver whose version cannot be had.
    pub unsafe fn load(
        resolve: &mut dyn FnMut(&CStr, c_int) -> *const c_void,
    ) -> Result<Self, LoadError> {
        let address = resolve(c"cuDriverGetVersion", 2020);
        // SAFETY: null is `None` in this type; by this function's contract anything else is that
        // function.
        let get_version = unsafe {
            core::mem::transmute::<*const c_void, Option<pfn::cuDriverGetVersion>>(address)
        };
        let driver_version =
            driver_version(get_version.ok_or(LoadError::NoDriverVersion { code: None })?)?;
        let mut lookup = |name: &CStr, version: c_int| -> *const c_void {
            if version > driver_version {
                ptr::null()
            } else {
                resolve(name, version)
            }
        };
        // SAFETY: `lookup` gives what `resolve` gives, or null.
        unsafe { Self::from_lookup(driver_version, &mut lookup) }
    }

    /// Keeps `owner` alive for as long as this table or a clone of it. A driver that gives its
    /// functions to one user after another learns so when nobody can call them any more.
    #[must_use]
    pub fn keeping(mut self, owner: Arc<dyn Any + Send + Sync>) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Whether this is slabfence's emulated driver, which loads PTX images and no cubins.
    pub fn is_emulated(&self) -> bool {
        self.slabfenceEmuVersion.is_some()
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api")
            .field("driver_version", &self.driver_version)
            .field("emulated", &self.is_emulated())
            .field("absent", &self.absent())
            .finish_non_exhaustive()
    }
}

/// The driver's version.
fn driver_version(get_version: pfn::cuDriverGetVersion) -> Result<c_int, LoadError> {
    let mut version = 0;
    // SAFETY: writes one int, and is the call that a driver answers before `cuInit`.
    match unsafe { get_version(&mut version) } {
        CUresult::CUDA_SUCCESS => Ok(version),
        CUresult::CUDA_ERROR_STUB_LIBRARY => Err(LoadError::StubLibrary),
        code => Err(LoadError::NoDriverVersion { code: Some(code) }),
    }
}

/// Why a library without `cuGetProcAddress_v2` is of no use: an old driver, or a toolkit's old
/// stub.
fn without_proc_address(library: &Library) -> LoadError {
    let address = address_of(library, c"cuDriverGetVersion");
    // SAFETY: null is `None` in this type; `cuDriverGetVersion` has had one ABI in all of CUDA's
    // versions.
    let get_version =
        unsafe { core::mem::transmute::<*const c_void, Option<pfn::cuDriverGetVersion>>(address) };
    match get_version.map(driver_version) {
        Some(Err(LoadError::StubLibrary)) => LoadError::StubLibrary,
        version => LoadError::NoProcAddress {
            library: LIBRARY,
            driver: version.and_then(Result::ok),
        },
    }
}

/// The address of an exported symbol; null where the library has none of that name.
fn address_of(library: &Library, name: &CStr) -> *const c_void {
    // SAFETY: only the address is taken, as a pointer; what it points to is the caller's to know.
    let symbol = unsafe { library.get::<*const c_void>(name) };
    symbol.map_or(ptr::null(), |symbol| symbol.as_raw_ptr().cast_const())
}

/// The dynamic linker's own words: the error of `libloading` says only which call failed, its
/// source says why.
fn reason(error: &libloading::Error) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), |source| source.to_string())
}

/// One entry by symbol and version. A driver may succeed with a null pointer and tell the reason in
/// the status, so success is not presence: the pointer is.
fn proc_address(
    get_proc_address: GetProcAddress,
    name: &CStr,
    version: c_int,
) -> Result<*const c_void, CUresult> {
    let mut address = ptr::null_mut();
    let mut status = CUdriverProcAddressQueryResult::default();
    let flags = CUdriverProcAddress_flags::CU_GET_PROC_ADDRESS_LEGACY_STREAM;
    // SAFETY: a NUL-terminated name and two places to write, all alive over the call, which keeps
    // none of them.
    let code =
        unsafe { get_proc_address(name.as_ptr(), &mut address, version, flags, &mut status) };
    if code.is_success() {
        Ok(address)
    } else {
        Err(code)
    }
}
