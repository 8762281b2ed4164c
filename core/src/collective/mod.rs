//! The collective operations: arguments, checks, launch.

mod enqueue;
mod gather;
pub(crate) mod geometry;
pub(crate) mod plan;
mod reduce;
pub(crate) mod tag;

#[cfg(test)]
mod fixture;

pub use gather::AllGatherHeads;
pub use reduce::{Layout, LseBase, LseReduceScatter};
