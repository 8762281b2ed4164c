//! The detector on small kernels that a small machine runs under seeds.

mod atomics;
mod documentation;
mod lanes;
mod length;
mod limits;
mod memory;
mod mutants;
mod ordering;
mod overlap;
mod packets;
mod protocol;
mod protocols;
mod shipped;
mod sizes;
mod strength;
mod strict;
mod support;
mod together;
