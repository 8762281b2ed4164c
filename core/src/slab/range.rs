//! Addresses that know their kind.

use core::fmt;
use core::marker::PhantomData;

use super::kind::Kind;
use crate::driver::DevicePtr;
use crate::error::{Error, Result};

/// An address in slab memory of one kind. It comes from a range only.
pub struct Ptr<K> {
    address: u64,
    _kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Ptr<K> {
    pub(super) const fn new(address: u64) -> Self {
        Self {
            address,
            _kind: PhantomData,
        }
    }

    /// The address, for a parameter block.
    pub const fn get(self) -> u64 {
        self.address
    }

    /// The address without its kind.
    pub const fn device_ptr(self) -> DevicePtr {
        DevicePtr::from_raw(self.address)
    }
}

impl<K> Clone for Ptr<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Ptr<K> {}

impl<K> PartialEq for Ptr<K> {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl<K> Eq for Ptr<K> {}

impl<K: Kind> fmt::Debug for Ptr<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:#x}", K::NAME, self.address)
    }
}

/// A part of slab memory of one kind, on this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<K: Kind> {
    ptr: Ptr<K>,
    bytes: usize,
}

impl<K: Kind> Range<K> {
    pub(super) const fn new(address: u64, bytes: usize) -> Self {
        Self {
            ptr: Ptr::new(address),
            bytes,
        }
    }

    /// First address.
    pub const fn ptr(&self) -> Ptr<K> {
        self.ptr
    }

    /// Length in bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// One past the last address.
    pub const fn end(&self) -> u64 {
        self.ptr.address + self.bytes as u64
    }

    /// The part of `bytes` bytes at `offset`; an error where it does not lie inside.
    pub fn sub(&self, offset: usize, bytes: usize) -> Result<Self> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => {
                Ok(Self::new(self.ptr.address + offset as u64, bytes))
            }
            _ => Err(Error::Argument {
                operation: "Range::sub",
                what: format!(
                    "{bytes} bytes at offset {offset} do not lie inside {} bytes of {} memory",
                    self.bytes,
                    K::NAME
                ),
            }),
        }
    }
}
