//! Pools and their channels: set-up as a transaction among the ranks, capture scopes, reset, close.

mod abandon;
mod agreement;
mod announce;
mod checkpoint;
mod close;
mod contract;
mod create;
mod event;
mod header;
pub(crate) mod kernels;
mod lane;
mod memory;
mod pool;
mod prepare;
mod ranges;
mod reset;
mod retire;
mod rewind;
mod scope;
mod self_test;
mod shared;
mod ticket;

pub use abandon::Abandoned;
pub use checkpoint::Checkpoint;
pub use contract::Contract;
pub use lane::Channel;
pub use pool::Pool;
pub use ranges::{Part, PoolRange};
pub use scope::CaptureScope;
pub(crate) use scope::route;
pub use ticket::Ticket;
