//! Single accesses to device memory, each checked against its region.

use super::Region;
use crate::{Operation, value::f32s};
use std::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64,
    Ordering::{self, Acquire, Relaxed, Release},
};

/// A value that is loaded and stored in one access.
pub(crate) trait Word: Copy + Default {
    /// Zero-extended.
    fn wide(self) -> u64;
    /// Truncated.
    fn of(value: u64) -> Self;
    /// Loads from `ptr`.
    ///
    /// # Safety
    ///
    /// `ptr` must be aligned to its size and valid for reads for the duration of the call; whoever else accesses it
    /// at that time must do so atomically, or from outside of this program's memory model (another process).
    unsafe fn load(ptr: *mut u8, order: Ordering) -> Self;
    /// Stores to `ptr`.
    ///
    /// # Safety
    ///
    /// As for [`load`](Self::load), and valid for writes.
    unsafe fn store(self, ptr: *mut u8, order: Ordering);
    /// Performs a read-modify-write at `ptr`, and gives what was there.
    ///
    /// # Safety
    ///
    /// As for [`store`](Self::store).
    unsafe fn modify(
        ptr: *mut u8,
        op: Operation,
        operand: u64,
        expected: u64,
        order: Ordering,
    ) -> Self;
}

/// The value that a read-modify-write leaves where `old` was (in global memory, where f32 sums are flushed).
pub(crate) fn modified(op: Operation, old: u64, operand: u64, bits: u32) -> u64 {
    let signed = |value: u64| (value << (64 - bits)) as i64 >> (64 - bits);
    match op {
        Operation::Add => old.wrapping_add(operand),
        Operation::AddF32 => {
            let flushed = |bits: u64| f32::from_bits(f32s::flush(bits as u32));
            f32s::flush(f32s::canonical(flushed(old) + flushed(operand))).into()
        }
        Operation::And => old & operand,
        Operation::Or => old | operand,
        Operation::Xor => old ^ operand,
        Operation::MinU => old.min(operand),
        Operation::MaxU => old.max(operand),
        Operation::MinS => signed(old).min(signed(operand)) as u64,
        Operation::MaxS => signed(old).max(signed(operand)) as u64,
        Operation::Inc if old >= operand => 0,
        Operation::Inc => old + 1,
        Operation::Dec if old == 0 || old > operand => operand,
        Operation::Dec => old - 1,
        Operation::Exch | Operation::Cas => operand,
    }
}

/// The order of a failed compare-exchange: the load half of `order`.
fn load_half(order: Ordering) -> Ordering {
    match order {
        Ordering::AcqRel | Acquire => Acquire,
        Ordering::SeqCst => Ordering::SeqCst,
        _ => Relaxed,
    }
}

macro_rules! word {
    ($($ty:ty as $atomic:ty),*) => {$(
        impl Word for $ty {
            #[inline(always)]
            fn wide(self) -> u64 { self.into() }
            #[inline(always)]
            fn of(value: u64) -> Self { value as $ty }
            #[inline(always)]
            unsafe fn load(ptr: *mut u8, order: Ordering) -> Self {
                // SAFETY: aligned and valid by the caller's promise, and only accessed atomically meanwhile.
                unsafe { <$atomic>::from_ptr(ptr.cast()) }.load(order)
            }
            #[inline(always)]
            unsafe fn store(self, ptr: *mut u8, order: Ordering) {
                // SAFETY: as above, and writable.
                unsafe { <$atomic>::from_ptr(ptr.cast()) }.store(self, order);
            }
            unsafe fn modify(ptr: *mut u8, op: Operation, operand: u64, expected: u64, order: Ordering) -> Self {
                // SAFETY: as above, and writable.
                let word = unsafe { <$atomic>::from_ptr(ptr.cast()) };
                match op {
                    Operation::Add => word.fetch_add(operand as $ty, order),
                    Operation::Exch => word.swap(operand as $ty, order),
                    Operation::Cas => {
                        let found = word.compare_exchange(
                            expected as $ty, operand as $ty, order, load_half(order));
                        found.unwrap_or_else(|found| found)
                    }
                    _ => {
                        let next = |old: $ty| Some(modified(op, old.into(), operand, <$ty>::BITS) as $ty);
                        let done = word.fetch_update(order, load_half(order), next);
                        done.unwrap_or_else(|old| old)
                    }
                }
            }
        }
    )*};
}
word!(
    u8 as AtomicU8,
    u16 as AtomicU16,
    u32 as AtomicU32,
    u64 as AtomicU64
);

impl Region {
    /// Where `size` bytes at `addr` lie, if they lie in the region and are aligned.
    #[inline(always)]
    fn locate(&self, addr: u64, size: u64) -> Option<*mut u8> {
        let offset = addr.wrapping_sub(self.base);
        let inside = offset <= self.len.wrapping_sub(size) && size <= self.len;
        // `wrapping_add`: no claim about the host allocation is needed to form the pointer.
        (inside && addr & (size - 1) == 0).then(|| self.host.wrapping_add(offset as usize))
    }

    /// Loads the word at `addr`; `None` if it is not in the region or not aligned.
    #[inline(always)]
    pub(crate) fn load<T: Word>(&self, addr: u64, order: Ordering) -> Option<T> {
        let ptr = self.locate(addr, size_of::<T>() as u64)?;
        // SAFETY: the word lies in the region, which `Region::new`'s caller promised to be readable and free of
        // references now; host alignment follows the address's by the same promise. All accesses of this program
        // to device memory are atomic: they are the ones in this file.
        Some(unsafe { T::load(ptr, order) })
    }

    /// Stores the word at `addr`; `None` if it is not in the region, not aligned or not writable.
    #[inline(always)]
    pub(crate) fn store<T: Word>(&self, addr: u64, value: T, order: Ordering) -> Option<()> {
        let ptr = self
            .locate(addr, size_of::<T>() as u64)
            .filter(|_| self.writable)?;
        // SAFETY: as for `load`; and writable.
        unsafe { value.store(ptr, order) };
        Some(())
    }

    /// Performs a read-modify-write at `addr`; `None` as for [`store`](Self::store).
    pub(crate) fn modify<T: Word>(
        &self,
        addr: u64,
        op: Operation,
        operand: u64,
        expected: u64,
        order: Ordering,
    ) -> Option<T> {
        let ptr = self
            .locate(addr, size_of::<T>() as u64)
            .filter(|_| self.writable)?;
        // SAFETY: as for `store`.
        Some(unsafe { T::modify(ptr, op, operand, expected, order) })
    }

    /// Loads 16 bytes at `addr` in one access (see [`pair`]): low and high half.
    pub(crate) fn load_pair(&self, addr: u64, order: Ordering) -> Option<[u64; 2]> {
        let ptr = self.locate(addr, 16)?;
        // SAFETY: as for `load`, for 16 bytes.
        Some(unsafe { pair::load(ptr, order) })
    }

    /// Stores 16 bytes at `addr` in one access.
    pub(crate) fn store_pair(&self, addr: u64, value: [u64; 2], order: Ordering) -> Option<()> {
        let ptr = self.locate(addr, 16).filter(|_| self.writable)?;
        // SAFETY: as for `store`, for 16 bytes.
        unsafe { pair::store(ptr, value, order) };
        Some(())
    }
}

/// Accesses of 16 bytes.
///
/// On x86-64 processors with AVX, aligned 16-byte vector moves are single accesses (documented by Intel and AMD).
/// Elsewhere the two halves are accessed one after the other, the upper one, where packets have their stamp, stored
/// last and loaded first: a packet that is seen with its stamp is then seen with its data.
mod pair {
    use super::{Acquire, Ordering, Relaxed, Release, Word};

    #[cfg(target_arch = "x86_64")]
    fn single() -> bool {
        // The answer is cached by the standard library.
        std::arch::is_x86_feature_detected!("avx")
    }

    /// # Safety
    ///
    /// As for [`Word::load`], for 16 bytes.
    pub(super) unsafe fn load(ptr: *mut u8, order: Ordering) -> [u64; 2] {
        #[cfg(target_arch = "x86_64")]
        if single() {
            let (low, high): (u64, u64);
            // SAFETY: an aligned, valid 16-byte load. Loads acquire on this architecture, and without `nomem` or
            // `readonly` the compiler moves no other access across.
            unsafe {
                std::arch::asm!(
                    "movdqa {x}, [{ptr}]",
                    "movq {low}, {x}",
                    "punpckhqdq {x}, {x}",
                    "movq {high}, {x}",
                    x = out(xmm_reg) _,
                    low = out(reg) low,
                    high = out(reg) high,
                    ptr = in(reg) ptr,
                    options(nostack, preserves_flags),
                );
            }
            return [low, high];
        }
        let first = if order == Relaxed { Acquire } else { order };
        // SAFETY: each half is aligned and valid, as the whole is.
        let high = unsafe { u64::load(ptr.wrapping_add(8), first) };
        // SAFETY: the same.
        let low = unsafe { u64::load(ptr, order) };
        [low, high]
    }

    /// # Safety
    ///
    /// As for [`Word::store`], for 16 bytes.
    pub(super) unsafe fn store(ptr: *mut u8, value: [u64; 2], order: Ordering) {
        #[cfg(target_arch = "x86_64")]
        if single() {
            // SAFETY: an aligned, valid 16-byte store. Stores release on this architecture, and without `nomem` the
            // compiler moves no other access across.
            unsafe {
                std::arch::asm!(
                    "movq {x}, {low}",
                    "movq {y}, {high}",
                    "punpcklqdq {x}, {y}",
                    "movdqa [{ptr}], {x}",
                    x = out(xmm_reg) _,
                    y = out(xmm_reg) _,
                    low = in(reg) value[0],
                    high = in(reg) value[1],
                    ptr = in(reg) ptr,
                    options(nostack, preserves_flags),
                );
            }
            return;
        }
        // SAFETY: each half is aligned and valid, as the whole is.
        unsafe { value[0].store(ptr, order) };
        let last = if order == Relaxed { Release } else { order };
        // SAFETY: the same.
        unsafe { value[1].store(ptr.wrapping_add(8), last) };
    }
}
