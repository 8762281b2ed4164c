//! What the machine tells about an address.

/// Global memory as the executing device sees it: a map from addresses to host memory.
///
/// A warp remembers regions that it used, and asks again only when [`generation`](Self::generation) has changed.
pub trait GlobalMemory {
    /// The region around `addr`, if the executing device may access it so.
    ///
    /// `write` is whether the access stores (a read-modify-write does). A region that the device may read but not
    /// write answers [`MemoryFault::ReadOnly`] to a write; the bytes up to the region's end are then all alike.
    fn region(&self, addr: u64, write: bool) -> Result<Region, MemoryFault>;

    /// Changes whenever an answer of [`region`](Self::region) may have become wrong. Read once
    /// per [`Cta::step`](crate::Cta::step), so a mapping must not change in the middle of one.
    fn generation(&self) -> u64;
}

/// Why an address cannot be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryFault {
    /// Nothing is mapped there.
    Unmapped,
    /// Something is mapped there, but this device was given no access to it.
    NoAccess,
    /// This device may only read it.
    ReadOnly,
}

/// A range of device addresses that lies in one piece of host memory.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    pub(super) base: u64,
    pub(super) len: u64,
    pub(super) host: *mut u8,
    pub(super) writable: bool,
    pub(super) readable: bool,
}

// SAFETY: a region is a description; every access through it goes through the memory module, under the promise made
// to `Region::new`, which does not depend on the thread.
unsafe impl Send for Region {}

impl Region {
    /// Describes `len` bytes of device memory that start at address `base` and lie at `host`.
    ///
    /// # Safety
    ///
    /// As long as the [`GlobalMemory`] that hands this region out reports the same generation, and while a
    /// [`Cta::step`](crate::Cta::step) that read that generation runs, `len` bytes at `host` must be mapped and
    /// readable, and writable too if `writable`; no Rust reference to them may exist (other threads and processes
    /// may access them, by atomics or through raw pointers). `host` must be as aligned as `base` is, up to 16 bytes.
    pub unsafe fn new(base: u64, len: u64, host: *mut u8, writable: bool) -> Self {
        Self {
            base,
            len: len.min(u64::MAX - base),
            host,
            writable,
            readable: true,
        }
    }

    /// The same for stores and read-modify-writes: a load is to ask for another.
    pub fn for_stores_alone(self) -> Self {
        Self {
            readable: false,
            ..self
        }
    }

    /// Its first address.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The address behind its last byte.
    pub fn end(&self) -> u64 {
        self.base + self.len
    }

    /// Where its first byte lies in this process.
    pub fn host(&self) -> *mut u8 {
        self.host
    }

    /// Whether the executing device may write to it.
    pub fn writable(&self) -> bool {
        self.writable
    }

    /// Whether accesses that store, or those that do not, may go by it.
    pub(super) fn serves(&self, write: bool) -> bool {
        if write { self.writable } else { self.readable }
    }

    /// Whether `size` bytes at `addr` lie in it.
    #[inline]
    pub fn holds(&self, addr: u64, size: u64) -> bool {
        let offset = addr.wrapping_sub(self.base);
        offset <= self.len && size <= self.len - offset
    }
}
