//! Pools and their channels: set-up as a transaction among the ranks, capture scopes, reset, close.

mod abandon;
mod agreement;
mod announce;
mod bytes;
mod checkpoint;
mod close;
mod contract;
mod create;
mod event;
mod header;
mod held;
mod identity;
pub(crate) mod kernels;
mod lane;
mod memory;
mod pool;
mod prepare;
mod probe;
mod ranges;
mod registry;
mod reset;
mod rest;
mod retire;
mod rewind;
mod scope;
mod self_test;
mod shared;
mod status;
mod ticket;

pub use abandon::Abandoned;
pub use bytes::KindBytes;
pub use checkpoint::Checkpoint;
pub use contract::Contract;
pub use lane::Channel;
pub use pool::Pool;
pub use ranges::{Part, PoolRange};
#[cfg(feature = "serde")]
pub(crate) use registry::statuses;
pub use scope::CaptureScope;
pub(crate) use scope::route;
pub use status::{ChannelStatus, PoolStatus};
pub use ticket::Ticket;
