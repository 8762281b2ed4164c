//! PTX front end of the emulated driver: text to a checked module.
//!
//! [`parse`] reads the text that nvcc emits (and the inline assembly in it) and gives a [`Module`] in which every
//! name is resolved and every instruction has one of the accepted forms. Whatever is not in the table of forms is
//! refused here, with its line and its text: nothing reaches execution that execution would have to guess about.
//!
//! The crate knows nothing of devices, memory or threads; it only reads.
#![forbid(unsafe_code)]

mod body;
mod directives;
mod entry;
mod forms;
mod initializer;
mod keywords;
mod lexer;
mod literal;
mod module;
mod operand;
mod scope;

pub use directives::parse;
pub use keywords::{Modifier, Opcode, SpecialRegister, Type};
pub use module::*;
