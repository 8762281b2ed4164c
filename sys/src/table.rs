//! The function table: one line per driver entry, with the version of the ABI it is asked for. The
//! lines are generated, from the list in `xtask/src/bindings/entries.rs`.
//!
//! The version is that of the entry's signature (`PFN_<name>_v<version>` in the toolkit's
//! `cudaTypedefs.h`), never the newest one: `cuGetProcAddress` refuses a version above the driver's
//! own, and a symbol asked for without a version is its *oldest* ABI, with 32-bit addresses in some
//! cases.
//!
//! Required is only what nothing can do without: under a profiler or debugger a library that lacks
//! entries may stand in for the driver. Whoever calls an optional entry gets a [`MissingSymbol`]
//! where it is absent.

#![allow(
    non_snake_case,
    non_camel_case_types,
    reason = "entries keep the driver's spelling"
)]

use core::any::Any;
use core::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

use crate::error::{LoadError, MissingSymbol};
use crate::generated::functions::*;
use crate::types::{EmuAnnounceRange, EmuVersion};

/// An entry of the table, for whoever provides or checks one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// The entry's name in [`Api`]: the symbol, with a suffix where the table has a second version
    /// of it.
    pub entry: &'static str,
    /// The symbol that is asked for.
    pub name: &'static CStr,
    /// The version it is asked for with: 1000 × major + 10 × minor. Zero for the entries that only
    /// an emulated driver has.
    pub version: c_int,
    /// Whether a table without it is refused.
    pub required: bool,
}

/// A name as the C string that it is.
const fn c_name(with_nul: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(with_nul.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("an entry's name has no NUL inside and one at its end"),
    }
}

/// The symbol behind an entry: of the same name, but for a second version of one that the table has
/// already.
macro_rules! symbol_of {
    ($entry:ident) => {
        const { c_name(concat!(stringify!($entry), "\0")) }
    };
    ($entry:ident $symbol:ident) => {
        const { c_name(concat!(stringify!($symbol), "\0")) }
    };
}

macro_rules! driver_table {
    (
        required { $( $req:ident @ $req_version:literal => $req_type:ty; )* }
        optional { $( $opt:ident $(as $opt_symbol:ident)? @ $opt_version:literal => $opt_type:ty; )* }
    ) => {
        /// The type of every entry, by the entry's name. A driver written in Rust can be checked
        /// against it.
        pub mod pfn {
            use super::*;
            $(
                #[doc = concat!("`", stringify!($req), "` with the ABI of version ", stringify!($req_version), ".")]
                pub type $req = $req_type;
            )*
            $(
                #[doc = concat!("`", stringify!($opt), "` with the ABI of version ", stringify!($opt_version), ".")]
                pub type $opt = $opt_type;
            )*
        }

        /// Every entry, in the order of the table.
        pub const SYMBOLS: &[Symbol] = &[
            $( Symbol {
                entry: stringify!($req),
                name: symbol_of!($req),
                version: $req_version,
                required: true,
            }, )*
            $( Symbol {
                entry: stringify!($opt),
                name: symbol_of!($opt $($opt_symbol)?),
                version: $opt_version,
                required: false,
            }, )*
        ];

        /// The driver's functions, each with the ABI of the version it was asked for.
        ///
        /// An optional entry is a field (`None` where the driver lacks it) and a method of the same
        /// name, which gives the function or the error that names it: `let load =
        /// api.cuFuncLoad()?;`. A required one is a function: without it there is no table.
        #[derive(Clone)]
        pub struct Api {
            /// What `cuDriverGetVersion` gave: 1000 × major + 10 × minor of the newest CUDA the
            /// driver serves.
            pub driver_version: c_int,
            /// What the functions belong to, where they belong to something.
            pub(crate) owner: Option<Arc<dyn Any + Send + Sync>>,
            $(
                #[doc = concat!("`", stringify!($req), "`, version ", stringify!($req_version), ", required.")]
                pub $req: pfn::$req,
            )*
            $(
                #[doc = concat!("`", stringify!($opt), "`, version ", stringify!($opt_version), ", optional.")]
                pub $opt: Option<pfn::$opt>,
            )*
        }

        impl Api {
            /// Fills the table from `lookup`, which gives null for what it does not have.
            ///
            /// # Safety
            ///
            /// What `lookup` gives for a name and version is null, or a function of that name's ABI
            /// at that version which stays where it is until the process ends.
            pub(crate) unsafe fn from_lookup(
                driver_version: c_int,
                lookup: &mut dyn FnMut(&CStr, c_int) -> *const c_void,
            ) -> Result<Self, LoadError> {
                Ok(Self {
                    driver_version,
                    owner: None,
                    $( $req: {
                        let address = lookup(symbol_of!($req), $req_version);
                        if address.is_null() {
                            let (name, needs) = (stringify!($req), $req_version);
                            return Err(LoadError::MissingSymbol(MissingSymbol { name, needs, driver: driver_version }));
                        }
                        // SAFETY: not null, and by this function's contract a function of this
                        // type.
                        unsafe { core::mem::transmute::<*const c_void, pfn::$req>(address) }
                    }, )*
                    $( $opt: {
                        let address = lookup(symbol_of!($opt $($opt_symbol)?), $opt_version);
                        // SAFETY: null is `None` in this type; anything else is a function of it,
                        // by the contract.
                        unsafe { core::mem::transmute::<*const c_void, Option<pfn::$opt>>(address) }
                    }, )*
                })
            }

            /// Names of the optional entries that this driver lacks.
            pub fn absent(&self) -> Vec<&'static str> {
                let entries = [ $( (stringify!($opt), self.$opt.is_none()) ),* ];
                entries.iter().filter(|(_, absent)| *absent).map(|(name, _)| *name).collect()
            }

            $(
                #[doc = concat!("`", stringify!($opt), "`, or what is missing and which driver has it.")]
                pub fn $opt(&self) -> Result<pfn::$opt, MissingSymbol> {
                    let (name, needs) = (stringify!($opt), $opt_version);
                    self.$opt.ok_or(MissingSymbol { name, needs, driver: self.driver_version })
                }
            )*
        }
    };
}

driver_entries! {
    driver_table {
        // Private to the emulated driver: absent, and asked for without a version, on every other
        slabfenceEmuVersion @ 0 => EmuVersion;
        slabfenceEmuAnnounceRange @ 0 => EmuAnnounceRange;
    }
}
