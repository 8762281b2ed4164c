//! Peer-to-peer collectives of an LLM decode step over VMM slabs, on the CUDA driver API.

pub mod attention;
pub mod channel;
pub mod collective;
pub mod driver;
pub mod error;
pub mod graph;
pub mod group;
mod hash;
pub mod health;
pub mod layout;
pub mod slab;
mod socket;
#[cfg(feature = "serde")]
pub mod status;

pub use error::{Error, Result};
/// The driver's own types, which handles that a host brings are made of.
pub use slabfence_sys as sys;
