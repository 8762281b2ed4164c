//! Pools and their channels: set-up as a transaction among the ranks, capture scopes, reset, close.

mod agreement;
mod contract;
pub(crate) mod kernels;

pub use contract::Contract;
