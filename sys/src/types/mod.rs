//! The driver's types, in the driver's spelling.
//!
//! C enums are open newtypes: a value that a newer driver returns is a value, not undefined
//! behaviour.

#[macro_use]
mod macros;

mod device;
mod emulator;
mod graph;
mod handle;
mod launch;
mod memory;
mod module;
mod result;
mod stream;

pub use device::*;
pub use emulator::*;
pub use graph::*;
pub use handle::*;
pub use launch::*;
pub use memory::*;
pub use module::*;
pub use result::*;
pub use stream::*;
