//! Pools and their channels: set-up as a transaction among the ranks, capture scopes, reset, close.

mod agreement;
mod close;
mod contract;
mod header;
pub(crate) mod kernels;
mod lane;
mod memory;
mod pool;
mod prepare;
mod ranges;
mod reset;
mod scope;
mod self_test;
mod shared;

pub use contract::Contract;
pub use lane::Channel;
pub use pool::Pool;
pub use ranges::{Part, PoolRange};
pub use scope::CaptureScope;
pub(crate) use scope::route;
