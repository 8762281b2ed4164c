//! Device memory and page-locked host memory that belong to the caller. Slabs are elsewhere: see [`slab`](crate::slab).

use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use slabfence_sys::{CUdeviceptr, CUmemHostAlloc_flags};

use super::device::Device;
use super::fork;
use super::pointer::DevicePtr;
use super::stream::Stream;
use super::transfer::{self, check_part};
use crate::error::{Error, Result};

/// Memory of one device, from `cuMemAlloc`. Freed on drop, which may wait for the device.
#[derive(Debug)]
pub struct DeviceBuffer {
    device: Device,
    ptr: DevicePtr,
    bytes: usize,
}

impl DeviceBuffer {
    /// Allocates `bytes` bytes, at least one. Their contents are undefined.
    pub fn new(device: &Device, bytes: usize) -> Result<Self> {
        refuse_empty("DeviceBuffer::new", bytes)?;
        let _guard = device.setup()?;
        let mut address = CUdeviceptr::default();
        // SAFETY: `address` is a live out-parameter and the device's context is current.
        let code = unsafe { (device.api().cuMemAlloc)(&mut address, bytes) };
        device.check("cuMemAlloc", code)?;
        Ok(Self {
            device: device.clone(),
            ptr: DevicePtr::from_raw(address.0),
            bytes,
        })
    }

    /// The address.
    pub fn ptr(&self) -> DevicePtr {
        self.ptr
    }

    /// Length in bytes.
    #[allow(clippy::len_without_is_empty, reason = "a buffer is never empty")]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// The device that owns the memory.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Copies host memory to `offset` and waits. Not ordered with what other streams do.
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<()> {
        let to = self.part("DeviceBuffer::write", offset, from.len())?;
        // SAFETY: inside this buffer.
        unsafe { transfer::write(&self.device, to, from) }
    }

    /// Copies from `offset` into host memory and waits. Not ordered with what other streams do.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<()> {
        let from = self.part("DeviceBuffer::read", offset, to.len())?;
        // SAFETY: inside this buffer.
        unsafe { transfer::read(&self.device, from, to) }
    }

    /// Sets every byte to `value` and waits. Not ordered with what other streams do.
    pub fn fill(&self, value: u8) -> Result<()> {
        // SAFETY: the whole of this buffer.
        unsafe { transfer::fill(&self.device, self.ptr.raw(), value, self.bytes) }
    }

    /// Enqueues a copy of `bytes` bytes from `from` at `from_offset` to `offset`.
    ///
    /// # Safety
    ///
    /// Both buffers outlive the copy's execution; where the stream captures, every execution of the graph.
    pub unsafe fn write_async(
        &self,
        offset: usize,
        from: &PinnedBuffer,
        from_offset: usize,
        bytes: usize,
        stream: &Stream,
    ) -> Result<()> {
        let to = self.part("DeviceBuffer::write_async", offset, bytes)?;
        let from = from.part("DeviceBuffer::write_async", from_offset, bytes)?;
        let _guard = self.device.bind()?;
        // SAFETY: both parts lie inside their buffers, which live by the contract; the stream is live.
        let code = unsafe {
            (self.device.api().cuMemcpyHtoDAsync()?)(CUdeviceptr(to), from, bytes, stream.raw())
        };
        self.device.check("cuMemcpyHtoDAsync", code)
    }

    /// Enqueues a copy of `bytes` bytes from `offset` to `to` at `to_offset`.
    ///
    /// # Safety
    ///
    /// As for [`write_async`](Self::write_async).
    pub unsafe fn read_async(
        &self,
        offset: usize,
        to: &PinnedBuffer,
        to_offset: usize,
        bytes: usize,
        stream: &Stream,
    ) -> Result<()> {
        let from = self.part("DeviceBuffer::read_async", offset, bytes)?;
        let to = to.part("DeviceBuffer::read_async", to_offset, bytes)?;
        let _guard = self.device.bind()?;
        // SAFETY: both parts lie inside their buffers, which live by the contract; the stream is live.
        let code = unsafe {
            (self.device.api().cuMemcpyDtoHAsync()?)(to, CUdeviceptr(from), bytes, stream.raw())
        };
        self.device.check("cuMemcpyDtoHAsync", code)
    }

    fn part(&self, operation: &'static str, offset: usize, bytes: usize) -> Result<u64> {
        fork::refuse()?;
        check_part(operation, self.bytes, offset, bytes)?;
        Ok(self.ptr.raw() + offset as u64)
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated by `new`, freed only here.
        self.device.teardown("cuMemFree", |api| unsafe {
            Ok((api.cuMemFree)(CUdeviceptr(self.ptr.raw())))
        });
    }
}

fn refuse_empty(operation: &'static str, bytes: usize) -> Result<()> {
    if bytes == 0 {
        return Err(Error::Argument {
            operation,
            what: "zero bytes: ask for at least one".to_owned(),
        });
    }
    Ok(())
}

/// Page-locked host memory that every device reaches. Devices write it at any time, so the host touches it only through
/// volatile or atomic accesses and never makes a reference to it. Freed on drop.
#[derive(Debug)]
pub struct PinnedBuffer {
    device: Device,
    host: NonNull<u8>,
    ptr: DevicePtr,
    bytes: usize,
}

// SAFETY: the memory is the process's, tied to no thread.
unsafe impl Send for PinnedBuffer {}
// SAFETY: shared use goes through volatile and atomic accesses only.
unsafe impl Sync for PinnedBuffer {}

impl PinnedBuffer {
    /// Allocates `bytes` bytes, at least one, all zero. Aligned to a page.
    pub fn new(device: &Device, bytes: usize) -> Result<Self> {
        refuse_empty("PinnedBuffer::new", bytes)?;
        let _guard = device.setup()?;
        let api = device.api();
        // What could not be freed is not made.
        api.cuMemFreeHost()?;
        let mut host: *mut c_void = core::ptr::null_mut();
        let flags = CUmemHostAlloc_flags::CU_MEMHOSTALLOC_DEVICEMAP
            | CUmemHostAlloc_flags::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: `host` is a live out-parameter and the device's context is current.
        let code = unsafe { (api.cuMemHostAlloc()?)(&mut host, bytes, flags) };
        device.check("cuMemHostAlloc", code)?;
        let Some(host) = NonNull::new(host.cast::<u8>()) else {
            return Err(Error::Refused {
                operation: "PinnedBuffer::new",
                why: "cuMemHostAlloc succeeded and gave a null pointer".to_owned(),
            });
        };
        let mut buffer = Self {
            device: device.clone(),
            host,
            ptr: DevicePtr::from_raw(0),
            bytes,
        };
        // SAFETY: the allocation has `bytes` bytes, and no device knows its address yet.
        unsafe { host.as_ptr().write_bytes(0, bytes) };
        let mut address = CUdeviceptr::default();
        // SAFETY: `address` is a live out-parameter; the memory was allocated to be mapped. Flags must be zero.
        let code =
            unsafe { (api.cuMemHostGetDevicePointer()?)(&mut address, host.as_ptr().cast(), 0) };
        device.check("cuMemHostGetDevicePointer", code)?;
        buffer.ptr = DevicePtr::from_raw(address.0);
        Ok(buffer)
    }

    /// The address that devices use.
    pub fn ptr(&self) -> DevicePtr {
        self.ptr
    }

    /// The address that the host uses. What is behind it changes at any time: volatile or atomic accesses only. A forked
    /// child must not use it.
    pub fn host_ptr(&self) -> *mut u8 {
        self.host.as_ptr()
    }

    /// Length in bytes.
    #[allow(clippy::len_without_is_empty, reason = "a buffer is never empty")]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Loads the word at `offset`, a multiple of 8, with acquire: what the device released before it is visible.
    pub fn load(&self, offset: usize) -> Result<u64> {
        Ok(self
            .word("PinnedBuffer::load", offset)?
            .load(Ordering::Acquire))
    }

    /// Stores a word at `offset`, a multiple of 8, with release.
    pub fn store(&self, offset: usize, value: u64) -> Result<()> {
        self.word("PinnedBuffer::store", offset)?
            .store(value, Ordering::Release);
        Ok(())
    }

    /// Copies out of the buffer at `offset`. What a device writes meanwhile may be torn.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<()> {
        let from: *mut u8 = self.part("PinnedBuffer::read", offset, to.len())?.cast();
        for (index, byte) in to.iter_mut().enumerate() {
            // SAFETY: `part` has checked that all of the bytes lie inside the buffer.
            *byte = unsafe { volatile_read(from, index) };
        }
        Ok(())
    }

    /// Copies into the buffer at `offset`.
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<()> {
        let to: *mut u8 = self.part("PinnedBuffer::write", offset, from.len())?.cast();
        for (index, &byte) in from.iter().enumerate() {
            // SAFETY: `part` has checked that all of the bytes lie inside the buffer.
            unsafe { volatile_write(to, index, byte) };
        }
        Ok(())
    }

    /// Enqueues a copy of `bytes` bytes at `from` in memory of the stream's device to `offset`, also while other streams
    /// capture.
    ///
    /// # Safety
    ///
    /// The source is live memory. It, this buffer and the stream, which does not capture, outlive the copy's execution.
    pub(crate) unsafe fn copy_from(
        &self,
        offset: usize,
        from: DevicePtr,
        bytes: usize,
        stream: &Stream,
    ) -> Result<()> {
        let to = self.part("PinnedBuffer::copy_from", offset, bytes)?;
        let device = stream.device();
        let _guard = device.observe()?;
        let from = CUdeviceptr(from.raw());
        // SAFETY: the destination lies inside this buffer; the rest by the contract.
        let code = unsafe { (device.api().cuMemcpyDtoHAsync()?)(to, from, bytes, stream.raw()) };
        device.check("cuMemcpyDtoHAsync", code)
    }

    /// Every access of the host goes through here: a forked child may not have the memory.
    fn part(&self, operation: &'static str, offset: usize, bytes: usize) -> Result<*mut c_void> {
        fork::refuse()?;
        check_part(operation, self.bytes, offset, bytes)?;
        Ok(self.host.as_ptr().wrapping_add(offset).cast())
    }

    fn word(&self, operation: &'static str, offset: usize) -> Result<&AtomicU64> {
        let word: *mut u64 = self.part(operation, offset, size_of::<u64>())?.cast();
        if !word.is_aligned() {
            return Err(Error::Argument {
                operation,
                what: format!("offset {offset} is no multiple of 8"),
            });
        }
        // SAFETY: aligned, inside the buffer, which lives as long as `self`; whoever shares the word accesses it
        // atomically (the device) or volatilely (`read` and `write`, which may tear but not trap).
        Ok(unsafe { AtomicU64::from_ptr(word) })
    }
}

/// # Safety
///
/// `base + index` is inside a live allocation.
unsafe fn volatile_read(base: *const u8, index: usize) -> u8 {
    // SAFETY: by the contract.
    unsafe { base.wrapping_add(index).read_volatile() }
}

/// # Safety
///
/// `base + index` is inside a live allocation.
unsafe fn volatile_write(base: *mut u8, index: usize, value: u8) {
    // SAFETY: by the contract.
    unsafe { base.wrapping_add(index).write_volatile(value) }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated by `new`, freed only here.
        self.device.teardown("cuMemFreeHost", |api| unsafe {
            Ok((api.cuMemFreeHost()?)(self.host.as_ptr().cast()))
        });
    }
}
