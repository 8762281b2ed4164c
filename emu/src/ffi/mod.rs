//! The driver's C functions over the machine, by topic.
//!
//! This layer is thin: it reads arguments, turns handles and codes, and calls the machine. Every function exists once
//! per slot (see `slots`); no panic leaves it.

use std::ffi::{CStr, c_int, c_void};

use slabfence_sys::{Api, LoadError, SYMBOLS};

/// Defines driver functions, each once per slot. A body is `fn(call, arguments) -> Status`.
macro_rules! functions {
    ($($(#[$meta:meta])* fn $name:ident($call:ident $(, $arg:ident: $type:ty)* $(,)?) $body:block)*) => {
        $(
            $(#[$meta])*
            #[doc = concat!("`", stringify!($name), "`.")]
            #[allow(non_snake_case, reason = "entries keep the driver's spelling")]
            #[allow(clippy::missing_safety_doc, reason = "said of all of them in `entry`")]
            pub unsafe extern "C" fn $name<const S: usize>($($arg: $type),*) -> ::slabfence_sys::CUresult {
                #[allow(clippy::too_many_arguments, reason = "as many as the driver's function has")]
                fn body($call: &mut $crate::slots::Call<'_>, $($arg: $type),*) -> $crate::code::Status $body
                ::slabfence_sys::CUresult($crate::slots::enter(S, &mut |call| body(call, $($arg),*)))
            }
        )*
    };
}

/// Defines driver functions of a topic and the topic's part of the table. That a function has the driver's ABI is
/// checked against the type of the same name in `slabfence_sys::pfn`.
macro_rules! entries {
    ($($(#[$meta:meta])* fn $name:ident $arguments:tt $body:block)*) => {
        functions! { $($(#[$meta])* fn $name $arguments $body)* }

        /// The function of this name for slot `S`.
        pub(super) fn find<const S: usize>(name: &str) -> Option<*const ::std::ffi::c_void> {
            match name {
                $(stringify!($name) => {
                    let function: ::slabfence_sys::pfn::$name = $name::<S>;
                    Some(function as *const ::std::ffi::c_void)
                })*
                _ => None,
            }
        }
    };
}

mod capture;
mod context;
mod copy;
mod device;
mod driver;
mod event;
mod function;
mod graph;
mod launch;
mod memory;
mod module;
mod node;
mod others;
mod pointer;
mod private;
mod stream;
mod vmm;

/// The driver's functions by themselves, for a library that exports them: `S` is the slot of its machine.
///
/// # Safety
///
/// The contract of each is that of the driver's function: a pointer argument is null or points to what that function
/// reads or writes.
#[doc(hidden)]
pub mod entry {
    use std::ffi::CStr;

    use slabfence_sys::CUresult;

    pub use super::others::{context::*, copy::*, device::*, event::*, function::*, graph::*};
    pub use super::others::{
        library::*, memory::*, module::*, node::*, pitched::*, pool::*, stream::*,
    };
    pub use super::private::{announce::*, version};
    pub use super::{capture::*, context::*, copy::*, device::*, driver::*, event::*, function::*};
    pub use super::{graph::*, launch::*, memory::*, module::*, node::*, stream::*, vmm::*};

    /// The driver's name and sentence of a code, `None` for a code that this driver does not give.
    pub fn describe(code: CUresult) -> Option<(&'static CStr, &'static CStr)> {
        crate::code::describe(code.0)
    }
}

/// The function of this name and ABI version for slot `S`, null where there is none.
fn resolve<const S: usize>(name: &CStr, version: c_int) -> *const c_void {
    let null = std::ptr::null();
    // The newest ABI that the caller knows, as `cuGetProcAddress` has it: never a newer one, and never an older one
    // under a newer one's version.
    let known = SYMBOLS
        .iter()
        .filter(|symbol| symbol.name == name && symbol.version <= version);
    let Some(symbol) = known.max_by_key(|symbol| symbol.version) else {
        return null;
    };
    let topics = [
        driver::find::<S>,
        device::find::<S>,
        context::find::<S>,
        memory::find::<S>,
        copy::find::<S>,
        vmm::find::<S>,
        stream::find::<S>,
        event::find::<S>,
        capture::find::<S>,
        module::find::<S>,
        function::find::<S>,
        launch::find::<S>,
        graph::find::<S>,
        node::find::<S>,
        private::find::<S>,
    ];
    let mut found = topics.iter().map(|find| find(symbol.entry));
    found.find_map(|function| function).unwrap_or(null)
}

/// The function table of the machine in a slot.
pub(crate) fn table(slot: usize) -> Result<Api, LoadError> {
    let mut resolver: fn(&CStr, c_int) -> *const c_void = match slot {
        0 => resolve::<0>,
        1 => resolve::<1>,
        2 => resolve::<2>,
        3 => resolve::<3>,
        4 => resolve::<4>,
        5 => resolve::<5>,
        6 => resolve::<6>,
        7 => resolve::<7>,
        8 => resolve::<8>,
        9 => resolve::<9>,
        10 => resolve::<10>,
        _ => resolve::<{ crate::slots::COUNT - 1 }>,
    };
    // SAFETY: `resolve` gives null or a function whose type was checked against the table's type for that name (in
    // `entries!`) at a version that is not above the one asked for; functions are never unloaded.
    unsafe { Api::load(&mut resolver) }
}

#[cfg(test)]
mod tests {
    use super::resolve;

    #[test]
    fn an_entry_is_not_given_to_who_asks_for_an_older_abi() {
        assert!(resolve::<0>(c"cuStreamGetCaptureInfo", 10_010).is_null());
        assert!(!resolve::<0>(c"cuStreamGetCaptureInfo", 11_030).is_null());
        assert!(resolve::<0>(c"cuNoSuchEntry", 13_000).is_null());
    }

    #[test]
    fn a_symbol_with_two_abis_is_a_function_for_each() {
        for (symbol, old, new) in [
            (c"cuStreamGetCaptureInfo", 11_030, 12_030),
            (c"cuGraphGetEdges", 10_000, 12_030),
        ] {
            let (older, newer) = (resolve::<0>(symbol, old), resolve::<0>(symbol, new));
            assert!(!older.is_null() && !newer.is_null());
            assert_ne!(older, newer);
            assert_eq!(resolve::<0>(symbol, new - 10), older);
            assert_eq!(resolve::<0>(symbol, 13_000), newer);
        }
    }
}
