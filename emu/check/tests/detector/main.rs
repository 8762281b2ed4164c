//! The detector on small kernels that a small machine runs under seeds.

mod documentation;
mod memory;
mod ordering;
mod packets;
mod protocol;
mod shipped;
mod support;
