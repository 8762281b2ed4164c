//! Multi-rank integration tests of slabfence on the emulated machine.
