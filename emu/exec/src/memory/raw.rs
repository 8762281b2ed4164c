//! Accesses to device memory: the only place that touches it.
//!
//! All of them are atomic, the weak ones too (on the hosts we run on a relaxed atomic access of up to 8 bytes is an
//! ordinary move), so that whatever a kernel, another device or another process does at the same time, the worst is
//! an old or a new value. Orders stronger than relaxed come from fences around an access (see `access`).

use super::{Region, pair};
use crate::{
    Operation,
    registers::lanes_of,
    value::{LANES, Wide, f32s},
};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

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
    unsafe fn load(ptr: *mut u8) -> Self;
    /// Stores to `ptr`.
    ///
    /// # Safety
    ///
    /// As for [`load`](Self::load), and valid for writes.
    unsafe fn store(self, ptr: *mut u8);
    /// Performs a read-modify-write at `ptr`, and gives what was there.
    ///
    /// # Safety
    ///
    /// As for [`store`](Self::store).
    unsafe fn modify(ptr: *mut u8, op: Operation, operand: u64, expected: u64) -> Self;
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

macro_rules! word {
    ($($ty:ty as $atomic:ty),*) => {$(
        impl Word for $ty {
            #[inline(always)]
            fn wide(self) -> u64 { self.into() }
            #[inline(always)]
            fn of(value: u64) -> Self { value as $ty }
            #[inline(always)]
            unsafe fn load(ptr: *mut u8) -> Self {
                // SAFETY: aligned and valid by the caller's promise, and only accessed atomically meanwhile.
                unsafe { <$atomic>::from_ptr(ptr.cast()) }.load(Relaxed)
            }
            #[inline(always)]
            unsafe fn store(self, ptr: *mut u8) {
                // SAFETY: as above, and writable.
                unsafe { <$atomic>::from_ptr(ptr.cast()) }.store(self, Relaxed);
            }
            unsafe fn modify(ptr: *mut u8, op: Operation, operand: u64, expected: u64) -> Self {
                // SAFETY: as above, and writable.
                let word = unsafe { <$atomic>::from_ptr(ptr.cast()) };
                match op {
                    Operation::Add => word.fetch_add(operand as $ty, Relaxed),
                    Operation::Exch => word.swap(operand as $ty, Relaxed),
                    Operation::Cas => {
                        let found = word.compare_exchange(expected as $ty, operand as $ty, Relaxed, Relaxed);
                        found.unwrap_or_else(|found| found)
                    }
                    _ => {
                        let next = |old: $ty| Some(modified(op, old.into(), operand, <$ty>::BITS) as $ty);
                        word.fetch_update(Relaxed, Relaxed, next).unwrap_or_else(|old| old)
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

/// Lanes whose accesses all lie in one region, aligned: made by [`Region::cover`] only.
#[derive(Debug)]
pub(crate) struct Covered<'a> {
    region: Region,
    addresses: &'a Wide,
    lanes: u32,
    bytes: u64,
    writable: bool,
}

impl Region {
    /// Those of the lanes whose `bytes` at their address lie in the region and are aligned to `bytes` (a power of
    /// two), for loads or for stores.
    #[inline]
    pub(crate) fn cover<'a>(
        &self,
        addresses: &'a Wide,
        lanes: u32,
        bytes: u64,
        write: bool,
    ) -> Covered<'a> {
        let last = self.len.wrapping_sub(bytes);
        let fits = bytes.is_power_of_two() && bytes <= self.len && (self.writable || !write);
        let covers = |lane: usize| {
            let address = addresses[lane];
            let inside = address.wrapping_sub(self.base) <= last;
            let aligned = address & bytes.wrapping_sub(1) == 0;
            u32::from(inside & aligned) << lane
        };
        let covered = if lanes.is_power_of_two() {
            covers(lanes.trailing_zeros() as usize % LANES)
        } else {
            let covered: [u32; LANES] = std::array::from_fn(covers);
            covered.iter().fold(0, |all, lane| all | lane) & lanes
        };
        let lanes = if fits { covered } else { 0 };
        Covered {
            region: *self,
            addresses,
            lanes,
            bytes,
            writable: write,
        }
    }
}

impl Covered<'_> {
    /// The lanes.
    pub(crate) fn lanes(&self) -> u32 {
        self.lanes
    }

    /// Where the byte at `offset` of a lane lies. Only for covered lanes is it a place to go to.
    #[inline(always)]
    fn host(&self, lane: usize, offset: u64) -> *mut u8 {
        let address = self.addresses[lane].wrapping_add(offset);
        let inside = address.wrapping_sub(self.region.base);
        // `wrapping_add`: no claim is needed to form the pointer, only to use it.
        self.region.host.wrapping_add(inside as usize)
    }

    /// Whether a word of this type lies at this offset of every covered lane's bytes, aligned.
    fn has<T>(&self, offset: u64) -> bool {
        let size = size_of::<T>() as u64;
        offset.is_multiple_of(size) && offset + size <= self.bytes
    }

    /// Loads the word at `offset` of each lane; zero in lanes that are not covered.
    #[inline]
    pub(crate) fn load<T: Word>(&self, offset: u64) -> [T; LANES] {
        let mut values = [T::default(); LANES];
        if !self.has::<T>(offset) {
            return values;
        }
        let load = |lane: usize| {
            let ptr = self.host(lane, offset);
            // SAFETY: `cover` found the lane's bytes in the region and aligned to their power-of-two number, so the
            // word at this multiple of its size is inside and aligned. The region is readable and free of references
            // by the promise to `Region::new`, which also carries the address's alignment over to the host's; this
            // file and `pair` are the only code of the program that accesses device memory.
            values[lane] = unsafe { T::load(ptr) };
        };
        // For all lanes this becomes a loop without branches.
        match self.lanes {
            u32::MAX => (0..LANES).for_each(load),
            some => lanes_of(some).for_each(load),
        }
        values
    }

    /// Stores a word at `offset` of each covered lane.
    #[inline]
    pub(crate) fn store<T: Word>(&self, offset: u64, values: &[T; LANES]) {
        if !self.has::<T>(offset) || !self.writable {
            return;
        }
        let store = |lane: usize| {
            let ptr = self.host(lane, offset);
            // SAFETY: as for `load`; and `cover` found the region writable.
            unsafe { values[lane].store(ptr) };
        };
        match self.lanes {
            u32::MAX => (0..LANES).for_each(store),
            some => lanes_of(some).for_each(store),
        }
    }

    /// Performs a read-modify-write on the first word of a lane; nothing, and 0, if the lane is not covered.
    pub(crate) fn modify<T: Word>(
        &self,
        lane: usize,
        op: Operation,
        operand: u64,
        expected: u64,
    ) -> T {
        if self.lanes >> lane & 1 == 0 || !self.has::<T>(0) || !self.writable {
            return T::default();
        }
        // SAFETY: as for `store`.
        unsafe { T::modify(self.host(lane, 0), op, operand, expected) }
    }

    /// Loads 16 bytes of each lane, each lane's in one access (see [`pair`]): low and high halves.
    pub(crate) fn load_pairs(&self) -> [Wide; 2] {
        let mut rows = [[0; LANES]; 2];
        if self.bytes == 16 {
            for lane in lanes_of(self.lanes) {
                // SAFETY: as for `load`, for all 16 bytes of the lane.
                [rows[0][lane], rows[1][lane]] = unsafe { pair::load(self.host(lane, 0)) };
            }
        }
        rows
    }

    /// Stores 16 bytes of each lane, each lane's in one access.
    pub(crate) fn store_pairs(&self, rows: &[Wide; 2]) {
        if self.bytes == 16 && self.writable {
            for lane in lanes_of(self.lanes) {
                // SAFETY: as for `store`, for all 16 bytes of the lane.
                unsafe { pair::store(self.host(lane, 0), [rows[0][lane], rows[1][lane]]) };
            }
        }
    }
}
