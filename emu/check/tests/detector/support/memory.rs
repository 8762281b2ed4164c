//! Device memory for tests.

use slabfence_emu_exec::{GlobalMemory, MemoryFault, Region};
use std::cell::UnsafeCell;

/// A range of device memory.
pub struct Buffer {
    pub base: u64,
    words: Box<[UnsafeCell<u128>]>,
}

impl Buffer {
    pub fn new(base: u64, bytes: u64) -> Self {
        let words = (0..bytes.div_ceil(16)).map(|_| UnsafeCell::new(0));
        Self {
            base,
            words: words.collect(),
        }
    }

    pub fn len(&self) -> u64 {
        16 * self.words.len() as u64
    }

    fn host(&self) -> *mut u8 {
        self.words.as_ptr().cast_mut().cast()
    }
}

/// All of it; every device may access everything.
#[derive(Default)]
pub struct Memory {
    pub buffers: Vec<Buffer>,
}

impl Memory {
    fn find(&self, address: u64) -> Option<&Buffer> {
        let holds = |buffer: &&Buffer| address.wrapping_sub(buffer.base) < buffer.len();
        self.buffers.iter().find(holds)
    }

    fn at(&self, address: u64) -> *mut u64 {
        let buffer = self.find(address).unwrap();
        let offset = (address - buffer.base) as usize;
        assert!(offset.is_multiple_of(8));
        buffer.host().wrapping_add(offset).cast()
    }

    pub fn put(&self, address: u64, value: u64) {
        let at = self.at(address);
        // SAFETY: aligned, inside a buffer of interior-mutable cells, which only this thread touches.
        unsafe { at.write(value) }
    }

    pub fn get(&self, address: u64) -> u64 {
        let at = self.at(address);
        // SAFETY: aligned, inside a buffer of interior-mutable cells, which only this thread touches.
        unsafe { at.read() }
    }
}

impl GlobalMemory for Memory {
    fn region(&self, address: u64, _: bool) -> Result<Region, MemoryFault> {
        let buffer = self.find(address).ok_or(MemoryFault::Unmapped)?;
        // SAFETY: the bytes lie in interior-mutable cells that live as long as the buffer, 16-byte aligned as the bases
        // in these tests are; no buffer is removed while a machine runs.
        Ok(unsafe { Region::new(buffer.base, buffer.len(), buffer.host(), true) })
    }

    fn generation(&self) -> u64 {
        0
    }
}
