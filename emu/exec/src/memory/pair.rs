//! Accesses of 16 bytes.
//!
//! On x86-64 processors with AVX, aligned 16-byte vector moves are single accesses (documented by Intel and AMD).
//! Elsewhere the two halves are accessed one after the other, the upper one, where packets have their stamp, stored
//! last and loaded first: a packet that is seen with its stamp is then seen with its data.

use super::raw::Word;
use std::sync::atomic::{Ordering, fence};

#[cfg(target_arch = "x86_64")]
fn single() -> bool {
    // The answer is cached by the standard library.
    std::arch::is_x86_feature_detected!("avx")
}

/// # Safety
///
/// As for [`Word::load`], for 16 bytes.
pub(super) unsafe fn load(ptr: *mut u8) -> [u64; 2] {
    #[cfg(target_arch = "x86_64")]
    if single() {
        let (low, high): (u64, u64);
        // SAFETY: an aligned, valid 16-byte load; SSE2 is part of this architecture. The block is taken to touch
        // memory, so the compiler moves no other access across it.
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
    // SAFETY: each half is aligned and valid, as the whole is.
    let high = unsafe { u64::load(ptr.wrapping_add(8)) };
    fence(Ordering::Acquire);
    // SAFETY: the same.
    let low = unsafe { u64::load(ptr) };
    [low, high]
}

/// # Safety
///
/// As for [`Word::store`], for 16 bytes.
pub(super) unsafe fn store(ptr: *mut u8, value: [u64; 2]) {
    #[cfg(target_arch = "x86_64")]
    if single() {
        // SAFETY: an aligned, valid 16-byte store, as above.
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
    unsafe { value[0].store(ptr) };
    fence(Ordering::Release);
    // SAFETY: the same.
    unsafe { value[1].store(ptr.wrapping_add(8)) };
}
