//! What can be wrong with a driver before the first call to it.

use core::ffi::c_int;
use core::fmt;

use crate::generated::values::CUresult;

/// What to do about `CUDA_ERROR_STUB_LIBRARY` (34), whichever call gives it.
pub const STUB_LIBRARY_ADVICE: &str = "libcuda.so.1 is the CUDA toolkit's link-time stub, not a driver: take the toolkit's \
     `stubs` folder out of LD_LIBRARY_PATH, so that the NVIDIA driver's own library is found";

/// A CUDA version as the driver counts it, printed as `major.minor`.
struct Version(c_int);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 1000, self.0 % 1000 / 10)
    }
}

/// An entry that the driver at hand does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MissingSymbol {
    /// Name of the entry.
    pub name: &'static str,
    /// The version that has it: 1000 × major + 10 × minor. Zero for the entries that only an
    /// emulated driver has.
    pub needs: c_int,
    /// The version of the driver at hand.
    pub driver: c_int,
}

impl fmt::Display for MissingSymbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, driver, needs) = (self.name, Version(self.driver), Version(self.needs));
        if self.needs == 0 {
            write!(
                f,
                "{name} exists only in slabfence's emulated driver; this driver is not emulated (CUDA {driver})"
            )
        } else if self.needs > self.driver {
            write!(
                f,
                "{name} needs a driver for CUDA {needs} or newer, this one serves CUDA {driver}: update the driver"
            )
        } else {
            write!(
                f,
                "{name} is missing, though a driver for CUDA {driver} has it (since {needs}): a tool's library may stand in \
                 for libcuda.so.1 (a profiler or debugger), run without it"
            )
        }
    }
}

impl std::error::Error for MissingSymbol {}

/// Why there is no function table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The library could not be opened: as a rule, this machine has no NVIDIA driver.
    NoLibrary {
        /// The name that was asked for.
        library: &'static str,
        /// What the dynamic linker said.
        reason: String,
    },
    /// The library has no `cuGetProcAddress_v2`: the driver is older than CUDA 12.0.
    NoProcAddress {
        /// The name that was asked for.
        library: &'static str,
        /// The driver's version, where it could be told.
        driver: Option<c_int>,
    },
    /// The library is the toolkit's stub; see [`STUB_LIBRARY_ADVICE`].
    StubLibrary,
    /// The driver's version could not be had, so nothing else can be asked for.
    NoDriverVersion {
        /// What `cuDriverGetVersion` returned; `None` where the driver has no such entry.
        code: Option<CUresult>,
    },
    /// A required entry is missing.
    MissingSymbol(MissingSymbol),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLibrary { library, reason } => write!(
                f,
                "no CUDA driver: {library} could not be opened ({reason}); install the NVIDIA driver (525 or newer), in a \
                 container pass the GPU through, or run on the emulated driver"
            ),
            Self::NoProcAddress { library, driver } => {
                write!(f, "{library} has no cuGetProcAddress_v2: ")?;
                match driver {
                    Some(version) => write!(f, "the driver serves CUDA {}", Version(*version))?,
                    None => f.write_str("the driver does not tell its version")?,
                }
                f.write_str(
                    ", slabfence needs CUDA 12.0 or newer: update the NVIDIA driver (525 or newer)",
                )
            }
            Self::StubLibrary => f.write_str(STUB_LIBRARY_ADVICE),
            Self::NoDriverVersion { code: Some(code) } => {
                write!(
                    f,
                    "cuDriverGetVersion failed with {code:?} ({}): reinstall the NVIDIA driver",
                    code.0
                )
            }
            Self::NoDriverVersion { code: None } => f.write_str(
                "the driver has no cuDriverGetVersion: what was loaded is not a CUDA driver",
            ),
            Self::MissingSymbol(missing) => missing.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<MissingSymbol> for LoadError {
    fn from(missing: MissingSymbol) -> Self {
        Self::MissingSymbol(missing)
    }
}
