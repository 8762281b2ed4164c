//! Memory of every kind that a kernel can reach. The only module of this crate with `unsafe` in it.

mod cache;
mod pair;
mod raw;
mod region;

pub(crate) use cache::RegionCache;
pub(crate) use raw::{Covered, Word, modified};
pub use region::{GlobalMemory, MemoryFault, Region};
