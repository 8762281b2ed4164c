//! What the driver's types can do besides being what the header says, and the types that are not the driver's.

mod device;
mod emulator;
mod handle;
mod launch;
mod memory;
mod result;

pub use emulator::*;
