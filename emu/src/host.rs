//! The host memory behind emulated memory: one reserved span of addresses, and memfds.
//!
//! Device addresses *are* host addresses inside the span. Whatever is not in use there is `PROT_NONE`, so a stray
//! host access traps instead of reading something plausible.

use std::ffi::c_void;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use slabfence_emu_exec::Region;

/// What fresh memory holds: not zero, and a NaN as f32, f16 and bf16, so that a use before a write shows.
const POISON: u8 = 0xff;

/// A span of reserved addresses. Ranges of it are given memory and lose it again.
pub(crate) struct Span {
    base: u64,
    len: u64,
}

impl Span {
    /// Reserves `len` bytes of addresses, a multiple of `align`, at a multiple of `align`.
    pub(crate) fn reserve(len: u64, align: u64) -> Result<Span, Errno> {
        let whole = (len + align) as usize;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: no address is asked for, so no existing mapping can be replaced.
        let at = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), whole, ProtFlags::empty(), flags)?
        };
        let start = at.expose_provenance() as u64;
        let base = start.next_multiple_of(align);
        unmap(start, base - start);
        unmap(base + len, start + whole as u64 - (base + len));
        Ok(Span { base, len })
    }

    /// First address.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    fn holds(&self, at: u64, len: u64) -> Result<(), Errno> {
        let end = at.checked_add(len).ok_or(Errno::INVAL)?;
        if at < self.base || end > self.base + self.len || len == 0 {
            return Err(Errno::INVAL);
        }
        Ok(())
    }

    /// Gives `[at, at + len)` private memory of its own, poisoned. The range must be page-aligned.
    pub(crate) fn map_private(&self, at: u64, len: u64) -> Result<(), Errno> {
        self.holds(at, len)?;
        let rw = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the range lies inside the span, which only this type maps (checked above), so MAP_FIXED can
        // replace nothing that anybody else owns.
        unsafe {
            rustix::mm::mmap_anonymous(
                pointer(at),
                len as usize,
                rw,
                MapFlags::PRIVATE | MapFlags::FIXED,
            )?
        };
        fill(at, 1, &[POISON], len);
        Ok(())
    }

    /// Maps the first `len` bytes of `memory` at `at`.
    pub(crate) fn map_shared(
        &self,
        at: u64,
        len: u64,
        memory: BorrowedFd<'_>,
    ) -> Result<(), Errno> {
        self.holds(at, len)?;
        let rw = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: as in `map_private`; the memfd is sealed against shrinking, so the mapping cannot lose its pages.
        unsafe { rustix::mm::mmap(pointer(at), len as usize, rw, flags, memory, 0)? };
        Ok(())
    }

    /// Takes the memory of `[at, at + len)` away; the addresses stay reserved.
    pub(crate) fn clear(&self, at: u64, len: u64) -> Result<(), Errno> {
        self.holds(at, len)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        // SAFETY: as in `map_private`. Who calls this has dropped the range from the table of valid addresses, so
        // the engine makes no further access there.
        unsafe {
            rustix::mm::mmap_anonymous(pointer(at), len as usize, ProtFlags::empty(), flags)?
        };
        Ok(())
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        unmap(self.base, self.len);
    }
}

/// Memory that is nobody's: what is stored there is lost, and zeros come from there. No page of it is used before it is
/// touched.
pub(crate) struct Nowhere {
    sink: u64,
    source: u64,
    len: u64,
}

impl Nowhere {
    /// For ranges of up to `len` bytes.
    pub(crate) fn reserve(len: u64) -> Result<Nowhere, Errno> {
        let map = |rights: ProtFlags| {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            // SAFETY: no address is asked for, so no existing mapping can be replaced.
            let at = unsafe {
                rustix::mm::mmap_anonymous(std::ptr::null_mut(), len as usize, rights, flags)?
            };
            Ok(at.expose_provenance() as u64)
        };
        let sink = map(ProtFlags::READ | ProtFlags::WRITE)?;
        let source = map(ProtFlags::READ).inspect_err(|_| unmap(sink, len))?;
        Ok(Nowhere { sink, source, len })
    }

    /// Takes the stores to a range.
    pub(crate) fn sink(&self, base: u64, len: u64) -> Region {
        self.region(base, len, self.sink, true)
    }

    /// Gives zeros in place of a range.
    pub(crate) fn source(&self, base: u64, len: u64) -> Region {
        self.region(base, len, self.source, false)
    }

    fn region(&self, base: u64, len: u64, at: u64, writable: bool) -> Region {
        // SAFETY: that much is mapped for as long as the machine is, with these rights, and nothing makes a reference to
        // it; it begins at a page, so it is as aligned as any address.
        unsafe { Region::new(base, len.min(self.len), pointer(at).cast(), writable) }
    }
}

impl Drop for Nowhere {
    fn drop(&mut self) {
        unmap(self.sink, self.len);
        unmap(self.source, self.len);
    }
}

fn pointer(at: u64) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(at as usize)
}

fn unmap(at: u64, len: u64) {
    if len > 0 {
        // SAFETY: only called for what `Span::reserve` and `Nowhere::reserve` made and own, once each.
        let result = unsafe { rustix::mm::munmap(pointer(at), len as usize) };
        if let Err(error) = result {
            log::warn!("emulator: munmap of {len} bytes at {at:#x} failed: {error}");
        }
    }
}

/// Physical memory of `len` bytes on device `board` of the host, poisoned, sealed at that size.
///
/// The device travels in the memfd's name: it is what an importing process reads back.
pub(crate) fn physical(board: u32, len: u64) -> Result<OwnedFd, Errno> {
    let name = format!("{NAME}{board}");
    let memory = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::ftruncate(&memory, len)?;
    rustix::fs::fcntl_add_seals(&memory, SEALS)?;
    let block = vec![POISON; (64 << 10).min(len as usize)];
    let mut done = 0;
    while done < len {
        let part = block.len().min((len - done) as usize);
        done += rustix::io::pwrite(&memory, &block[..part], done)? as u64;
    }
    Ok(memory)
}

const NAME: &str = "slabfence-emu-device-";
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// Takes a file descriptor that another holder exported: `(own duplicate, device of the host, bytes)`, or `None` when it is no
/// emulated physical memory.
pub(crate) fn import(fd: i32) -> Option<(OwnedFd, u32, u64)> {
    if fd < 0 {
        return None;
    }
    // SAFETY: a number that is no open descriptor makes the calls below fail with EBADF, nothing worse; the borrow
    // ends in this function, during which the caller keeps the descriptor open (the driver's contract).
    let theirs = unsafe { BorrowedFd::borrow_raw(fd) };
    let memory = rustix::io::fcntl_dupfd_cloexec(theirs, 3).ok()?;
    if !rustix::fs::fcntl_get_seals(&memory).ok()?.contains(SEALS) {
        return None;
    }
    let link = std::fs::read_link(format!(
        "/proc/self/fd/{}",
        std::os::fd::AsRawFd::as_raw_fd(&memory)
    ))
    .ok()?;
    let board = link.to_str()?.strip_prefix("/memfd:")?.strip_prefix(NAME)?;
    let board = board
        .strip_suffix(" (deleted)")
        .unwrap_or(board)
        .parse()
        .ok()?;
    let len = rustix::fs::fstat(&memory).ok()?.st_size as u64;
    Some((memory, board, len))
}

/// What distinguishes this physical memory from all other.
pub(crate) fn identity(memory: &OwnedFd) -> Option<u64> {
    rustix::fs::fstat(memory).ok().map(|stat| stat.st_ino)
}

/// A duplicate of a physical allocation's descriptor, for the caller to own.
pub(crate) fn duplicate(memory: &OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(memory, 3)
}

/// Copies `len` bytes. Both ends are addresses that the machine checked, or host pointers of the caller.
pub(crate) fn copy(to: u64, from: u64, len: u64) {
    // SAFETY: device addresses were found in the table of valid ranges under the machine's lock, which mapping
    // calls also take; host pointers are the caller's, valid by the contract of the driver's copy functions.
    // `copy` allows overlap.
    unsafe {
        std::ptr::copy(
            pointer(from).cast::<u8>(),
            pointer(to).cast::<u8>(),
            len as usize,
        )
    }
}

/// The bytes at a host pointer of the caller.
pub(crate) fn snapshot(from: u64, len: u64) -> Box<[u8]> {
    let mut bytes = vec![0; len as usize].into_boxed_slice();
    copy(bytes.as_mut_ptr().expose_provenance() as u64, from, len);
    bytes
}

/// Writes `bytes` at a checked address.
pub(crate) fn store(to: u64, bytes: &[u8]) {
    copy(
        to,
        bytes.as_ptr().expose_provenance() as u64,
        bytes.len() as u64,
    );
}

/// Writes `element` `count` times from a checked address on. `width` is its length in bytes.
pub(crate) fn fill(to: u64, width: usize, element: &[u8], count: u64) {
    if width == 1 {
        // SAFETY: as in `copy`.
        unsafe { std::ptr::write_bytes(pointer(to).cast::<u8>(), element[0], count as usize) };
        return;
    }
    for i in 0..count {
        store(to + i * width as u64, &element[..width]);
    }
}

/// A valid range as execution sees it.
pub(crate) fn region(base: u64, len: u64, writable: bool) -> Region {
    // SAFETY: the range is in the table of valid ranges, whose generation changes before it is unmapped; device
    // memory is mapped readable and writable at its own address for as long as it is in the table, and nothing in
    // this crate makes a reference to it.
    unsafe { Region::new(base, len, pointer(base).cast(), writable) }
}
