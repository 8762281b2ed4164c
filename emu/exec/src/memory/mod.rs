//! Memory of every kind that a kernel can reach. The only module of this crate with `unsafe` in it.

mod region;

pub use region::{GlobalMemory, MemoryFault, Region};
