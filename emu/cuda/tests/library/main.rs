//! The shared library, as other programs use it.

#[macro_use]
mod guest;

mod build;
mod documented;
mod exported;
mod found;
mod processes;
