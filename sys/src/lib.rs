//! The CUDA driver API: its types, a function table whose every entry is asked for with the version
//! of its ABI, and the loader that fills it.
//!
//! No CUDA library is linked. [`Api::open`] opens the machine's `libcuda.so.1` at run time;
//! [`Api::load`] takes the functions from anywhere else, such as an emulated driver in the same
//! process. Some twenty entries are required; a table without any other is usable, and asking it for
//! that one is an error that names it and the version that has it. Names are the driver's own, so that its documentation can be searched for them:
//! <https://docs.nvidia.com/cuda/cuda-driver-api/>.
//!
//! This layer checks nothing that a call's arguments mean. Every call is `unsafe`, and what makes
//! one sound is in the driver's documentation; safe wrappers are the business of the crate
//! `slabfence`.

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!(
    "slabfence needs 64-bit Linux: it shares device memory through POSIX file descriptors, and the layouts here are those of that platform"
);

#[macro_use]
mod macros;

mod error;
// Compared byte for byte with what the generator writes.
#[rustfmt::skip]
mod generated;
mod loader;
mod table;
mod types;

pub use error::{LoadError, MissingSymbol, STUB_LIBRARY_ADVICE};
pub use generated::{types::*, values::*};
pub use table::{Api, SYMBOLS, Symbol, pfn};
pub use types::*;
