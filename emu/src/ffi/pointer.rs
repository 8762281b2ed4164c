//! Reading and writing what a driver call's pointer arguments point to.
//!
//! The functions here are only called with arguments of the driver call in progress. By the driver API's contract a
//! non-null argument points to memory of its type that the caller owns for the length of the call, readable where the
//! call reads and writable where it writes. That is what each `SAFETY` comment below refers to as the contract.

use std::ffi::{CStr, c_char, c_void};

use crate::code::{Code, Status};

/// Stores a result; null is an invalid argument.
pub(super) fn put<T>(to: *mut T, value: T) -> Status {
    if to.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: not null, and by the contract writable memory of this type.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Stores a result that the caller may not want.
pub(super) fn put_if<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: as in `put`.
        unsafe { to.write_unaligned(value) };
    }
}

/// Reads an argument; null is an invalid argument.
pub(super) fn get<T: Copy>(from: *const T) -> Status<T> {
    if from.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: not null, and by the contract readable memory of this type.
    Ok(unsafe { from.read_unaligned() })
}

/// Reads an array argument, which may be null when it is empty.
pub(super) fn list<T: Copy>(from: *const T, count: usize) -> Status<Vec<T>> {
    (0..count).map(|at| get(step(from, at))).collect()
}

/// Stores up to `room` elements of an array.
pub(super) fn put_list<T>(to: *mut T, room: usize, values: impl IntoIterator<Item = T>) -> Status {
    values
        .into_iter()
        .take(room)
        .enumerate()
        .try_for_each(|(at, value)| put(step(to, at).cast_mut(), value))
}

fn step<T>(from: *const T, at: usize) -> *const T {
    if from.is_null() {
        from
    } else {
        from.wrapping_add(at)
    }
}

/// Reads a C string argument; what is not UTF-8 in it is replaced.
pub(super) fn text(from: *const c_char) -> Status<String> {
    text_in_place(from, |text| Ok(text.to_owned()))
}

/// Gives the same to who uses it while it lies there: PTX texts have megabytes.
pub(super) fn text_in_place<R>(
    from: *const c_char,
    use_it: impl FnOnce(&str) -> Status<R>,
) -> Status<R> {
    if from.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: not null, and by the contract a NUL-terminated string that stays as it is during the call, which does not end
    // before this function.
    let text = unsafe { CStr::from_ptr(from) };
    // Text that is right is looked through faster this way.
    match text.to_str() {
        Ok(text) => use_it(text),
        Err(_) => use_it(&text.to_string_lossy()),
    }
}

/// Stores a string with its NUL into a buffer of `room` bytes, cut to fit; gives the bytes stored without the NUL.
pub(super) fn put_text(to: *mut c_char, room: usize, text: &str) -> Status<usize> {
    let kept = text
        .len()
        .min(room.checked_sub(1).ok_or(Code::INVALID_VALUE)?);
    put_list(to.cast::<u8>(), room, text.bytes().take(kept).chain([0]))?;
    Ok(kept)
}

/// The address of a pointer argument.
pub(super) fn address<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

/// A machine's handle as the driver's types hold it.
pub(super) fn raw(handle: u64) -> *mut c_void {
    std::ptr::without_provenance_mut(handle as usize)
}

/// The machine's handle in a driver type.
pub(super) fn handle(pointer: *mut c_void) -> u64 {
    pointer.addr() as u64
}
