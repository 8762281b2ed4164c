//! Peer-to-peer collectives of an LLM decode step over VMM slabs, on the CUDA driver API.

pub mod driver;
pub mod error;
pub mod group;
mod hash;
pub mod health;
pub mod layout;
pub mod slab;

pub use error::{Error, Result};
