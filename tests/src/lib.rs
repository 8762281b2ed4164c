//! Multi-rank integration tests of slabfence on the emulated machine.

pub mod addresses;
pub mod arithmetic;
pub mod exchange;
pub mod graphs;
pub mod held;
pub mod late;
pub mod mutants;
pub mod probe;
pub mod processes;
pub mod ranks;
pub mod rounds;
pub mod seams;
pub mod shape;
