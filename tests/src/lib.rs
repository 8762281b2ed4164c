//! Multi-rank integration tests of slabfence on the emulated machine.

pub mod addresses;
pub mod adversary;
pub mod arithmetic;
pub mod boot;
pub mod callers;
pub mod captured;
pub mod drivers;
pub mod envelope;
pub mod events;
pub mod exchange;
pub mod exhaust;
pub mod graphs;
pub mod held;
pub mod host;
pub mod injection;
pub mod late;
pub mod lossy;
pub mod mutants;
pub mod probe;
pub mod processes;
pub mod ranks;
pub mod rounds;
pub mod seams;
pub mod shape;
pub mod untested;
pub mod usage;
