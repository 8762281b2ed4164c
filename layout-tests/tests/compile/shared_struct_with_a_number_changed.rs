//! What a struct shared with device code asserts of itself fails for each number that is changed: size, alignment, offset.

#![allow(missing_docs, unreachable_pub)]

#[path = "../../../core/src/layout/macros.rs"]
mod macros;

mod layout {
    pub use crate::macros::{DeviceStruct, DeviceType, Field};
}

macros::device_struct! {
    /// As it is.
    pub struct Right [size = 16, align = 8] {
        word: u64 = 0,
        half: u32 = 8,
    }
}
macros::device_struct! {
    /// Its size is 16.
    pub struct Size [size = 24, align = 8] {
        word: u64 = 0,
        half: u32 = 8,
    }
}
macros::device_struct! {
    /// Its alignment is 8: a smaller one cannot be asked for.
    pub struct Alignment [size = 16, align = 4] {
        word: u64 = 0,
        half: u32 = 8,
    }
}
macros::device_struct! {
    /// The second field lies at 8.
    pub struct Offset [size = 16, align = 8] {
        word: u64 = 0,
        half: u32 = 12,
    }
}

fn main() {}
