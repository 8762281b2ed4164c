//! Code generation.
fn main() {}
