//! Multi-rank integration tests of slabfence on the emulated machine.

pub mod probe;
pub mod ranks;
