//! Device addresses.

use core::fmt;

/// An address in a device's memory, or of host memory that devices reach. Never dereferenced on the host, so that any
/// value is harmless here: what a kernel does with it is the launch's concern.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevicePtr(u64);

impl DevicePtr {
    /// The address as a host's framework has it.
    pub const fn from_raw(address: u64) -> Self {
        Self(address)
    }

    /// The address as a number.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The address `bytes` further on; `None` past the end of the address space.
    pub const fn offset(self, bytes: u64) -> Option<Self> {
        match self.0.checked_add(bytes) {
            Some(address) => Some(Self(address)),
            None => None,
        }
    }

    /// Whether this is the null address.
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// Whether the address is a multiple of `bytes`. False for zero bytes.
    pub const fn is_aligned_to(self, bytes: u64) -> bool {
        bytes != 0 && self.0.is_multiple_of(bytes)
    }
}

impl fmt::Debug for DevicePtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DevicePtr({:#x})", self.0)
    }
}

impl fmt::Display for DevicePtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
