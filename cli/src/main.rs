//! The `slabfence` command.
fn main() {}
