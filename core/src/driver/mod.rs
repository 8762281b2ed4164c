//! The CUDA driver: devices, streams, graphs, code and memory, each handle under an owner that gives it back.
//!
//! This layer makes the calls sound and puts the thread's state back; it checks what could break memory safety, not what
//! a call means. Every call binds the primary context of its device and leaves the thread as it was. Set-up and teardown
//! run with the thread's capture mode relaxed, so that a capture elsewhere in the process does not forbid them.

mod allocation;
mod apart;
mod buffer;
mod captures;
mod context;
pub(crate) mod deferred;
mod device;
mod entry;
mod event;
pub(crate) mod exit;
pub(crate) mod fork;
mod graph;
mod held;
mod inspect;
mod kernel_node;
mod module;
mod node;
mod pointer;
mod stream;
mod transfer;
pub(crate) mod vmm;

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;

pub use allocation::Allocation;
pub(crate) use apart::Apart;
pub use buffer::{DeviceBuffer, PinnedBuffer};
pub use context::ContextGuard;
pub use device::{Device, DeviceInfo};
pub use entry::{Driver, DriverError};
pub use event::Event;
pub use graph::{Graph, GraphExec};
pub use module::{ImageError, Kernel, Module};
pub use node::{Contents, CopyEnd, CopyNode, Edge, FillNode, KernelNode, Node, Param, Work};
pub use pointer::DevicePtr;
pub use stream::{CaptureMode, CaptureStatus, Stream};
pub use vmm::Access;

/// Drops what graphs held and have let go of. Set-up and teardown calls do so by themselves, collective calls of a pool at
/// their end; whoever waits for an object to be dropped calls this. Not to be called from a driver callback.
pub fn drop_released() {
    deferred::drain();
}
