//! Peer-to-peer collectives of an LLM decode step over VMM slabs, on the CUDA driver API.

pub mod layout;
