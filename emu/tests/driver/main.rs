//! The emulated driver as a C program sees it: every rule through the function table.

#[macro_use]
mod gpu;

mod capture;
mod capture_safety;
mod capture_scene;
mod context;
mod copy;
mod fault;
mod graph;
mod kernel;
mod lost;
mod memory;
mod module;
mod node;
mod replacement;
mod seen;
mod stream;
mod user_object;
mod vmm;
