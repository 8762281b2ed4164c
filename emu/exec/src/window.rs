//! Generic addresses: where the spaces other than global appear in the one address space of a thread.
//!
//! The windows lie far above what a process can map, so no device address falls into one.

use crate::Space;

/// Size of each window; every offset of its space fits.
const SIZE: u64 = 1 << 32;
const SHARED: u64 = 0x0100_0000_0000_0000;
const LOCAL: u64 = 0x0200_0000_0000_0000;
const PARAM: u64 = 0x0300_0000_0000_0000;

/// Generic address of offset 0 of a space; `None` where generic and own addresses are the same.
pub(crate) fn base(space: Space) -> Option<u64> {
    match space {
        Space::Global | Space::Const => None,
        Space::Shared => Some(SHARED),
        Space::Local => Some(LOCAL),
        Space::Param => Some(PARAM),
    }
}

/// The space that a generic address falls into, and the address there.
pub(crate) fn resolve(generic: u64) -> (Space, u64) {
    for (space, base) in [
        (Space::Shared, SHARED),
        (Space::Local, LOCAL),
        (Space::Param, PARAM),
    ] {
        let offset = generic.wrapping_sub(base);
        if offset < SIZE {
            return (space, offset);
        }
    }
    (Space::Global, generic)
}
