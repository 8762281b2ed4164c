//! An emulated CUDA driver: devices, memory, streams, graphs, and an interpreter for the PTX that slabfence ships.
