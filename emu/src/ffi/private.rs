//! Entries that only this driver has.

use std::ffi::c_void;

use slabfence_sys::{RangeNote, pfn};

use super::pointer::get;

pub(super) mod announce {
    use super::*;

    entries! {
        fn slabfenceEmuAnnounceRange(call, note: *const RangeNote) {
            let note = get(note)?;
            call.split().0.memory.announce(note)
        }
    }

    pub(super) fn entry<const S: usize>(name: &str) -> Option<*const c_void> {
        find::<S>(name)
    }
}

/// `slabfenceEmuVersion`: the version of the private entries.
///
/// # Safety
///
/// None: it takes and touches nothing.
pub unsafe extern "C" fn version() -> u32 {
    1
}

/// The function of this name for slot `S`.
pub(super) fn find<const S: usize>(name: &str) -> Option<*const c_void> {
    let answer: pfn::slabfenceEmuVersion = version;
    if name == "slabfenceEmuVersion" {
        Some(answer as *const c_void)
    } else {
        announce::entry::<S>(name)
    }
}
