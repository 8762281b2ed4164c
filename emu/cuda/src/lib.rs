//! `libcuda.so.1` of the emulated driver: the driver's functions over one machine a process.
//!
//! The functions are those of the in-process table. This crate only names them: under their exported names for who is
//! linked with the library or asks the dynamic linker, by symbol and version for who asks `cuGetProcAddress`.

#![cfg_attr(not(test), allow(non_snake_case, reason = "the driver's spelling"))]

mod driver;
mod exports;
mod proc_address;
mod process;
mod refused;
mod visible;
