//! Slabs: the four kinds of memory that collectives work in, each in a mapping of its own between unmapped guards.
//!
//! | kind | holds | peers may |
//! |---|---|---|
//! | [`Local`] | epoch, ticket, counters | nothing: never shared |
//! | [`Signal`] | entry lines, data flags, poison lines | read and write |
//! | [`Outbox`] | what peers pull | read |
//! | [`Inbox`] | what peers push | read and write |
//!
//! Addresses are typed by kind. No path turns an integer into one: they come from a mapping, or from a peer's
//! [`ArenaRecord`] that was checked against the own arena of that kind.

mod announce;
mod arena;
mod kind;
mod mapping;
mod peer;
mod range;
#[cfg(test)]
mod tests;

pub use announce::Note;
pub use arena::Arena;
pub use kind::{Inbox, Kind, Local, Outbox, Signal};
pub use mapping::Mapping;
pub use peer::{ArenaRecord, PeerArena, PeerRange};
pub(crate) use peer::{Imported, process_token};
pub use range::{Ptr, Range};
