//! The `slabfence` command, run as its users run it, on the emulated machine.

mod bad_input;
mod decode;
mod embed;
mod files;
mod processes;
mod run;
