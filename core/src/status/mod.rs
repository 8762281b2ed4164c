//! What the pools of a process are doing, told to other processes: of a process that opted in by [`serve`], to whoever
//! calls [`read`] or runs `slabfence status`.

mod client;
mod document;
mod record;
mod server;

pub use client::{processes, read, read_until};
pub use document::{Bytes, Channel, Document, Owner, Pool, SCHEMA};
pub use record::{Record, Word};
pub use server::{StatusServer, serve};

#[cfg(test)]
mod tests;

/// Bytes of a document in one message: what every kernel has buffers for.
const MESSAGE: usize = 16 << 10;
