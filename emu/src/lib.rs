//! An emulated CUDA driver: devices, memory, streams, graphs, and an interpreter for the PTX that slabfence ships.
//!
//! A [`Machine`] is some devices of one [`Profile`] in this process. [`Machine::api`] gives its driver as the function
//! table that a real driver fills, so a program that goes through `slabfence_sys::Api` runs on it unchanged. Device names
//! say EMULATED, and no figure it gives is a GPU timing.
//!
//! Inside, the driver's C functions (`ffi`) are a thin layer over a machine that knows no C: one state behind one lock,
//! and an engine that executes a graph of operations when it is told to.
//!
//! What is not emulated is absent from the table rather than faked: binaries (PTX text only), peer access by context,
//! memory pools but the default ones, arrays, child graphs, programmatic overlap of kernels.

mod callback;
mod capture;
mod code;
mod describe;
mod device;
mod engine;
mod event;
mod faults;
mod ffi;
mod graph;
mod handle;
pub mod held;
mod host;
mod launch;
mod lost;
mod machine;
mod memory;
mod module;
mod occupancy;
mod operations;
mod profile;
mod residency;
mod runner;
mod settings;
mod slots;
mod stream;
mod taken;
mod task;
mod translation;
mod user_object;
mod va;
mod variables;
mod vmm;
mod world;
mod written;

#[doc(hidden)]
pub use describe::Description;
pub use ffi::entry;
pub use lost::Lost;
pub use machine::{Live, Machine, MachineError};
pub use profile::Profile;
