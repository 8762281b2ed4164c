//! Layout proofs and programs that must not compile.
//!
//! The tests of this crate hold `slabfence::layout` against the images that ship, and the driver's bindings against those
//! of somebody else. The readers here know nothing of that
//! module nor of the emulator's PTX front end: they take names and numbers out of PTX text and cubins by themselves, so
//! that a mistake there cannot hide itself here.

#![forbid(unsafe_code)]

pub mod arithmetic;
pub mod cubin;
pub mod elf;
pub mod proofs;
pub mod ptx;
