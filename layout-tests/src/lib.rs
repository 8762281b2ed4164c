//! Layout proofs and programs that must not compile.
//!
//! The tests of this crate hold `slabfence::layout` against the images that ship. The readers here know nothing of that
//! module nor of the emulator's PTX front end: they take names and numbers out of PTX text and cubins by themselves, so
//! that a mistake there cannot hide itself here.

#![forbid(unsafe_code)]

pub mod arithmetic;
pub mod cubin;
pub mod ptx;
