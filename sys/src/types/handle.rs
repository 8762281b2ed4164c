//! What the driver says about using a handle from several threads, and the streams that always are.

use core::ffi::c_void;
use core::ptr::without_provenance_mut;

use crate::generated::types::{
    CUcontext, CUevent, CUfunction, CUgraph, CUgraphExec, CUgraphNode, CUkernel, CUmodule,
    CUstream, CUuserObject,
};

impl CUstream {
    /// The legacy default stream, by its explicit handle (`CU_STREAM_LEGACY`).
    pub const LEGACY: Self = Self::from_ptr(without_provenance_mut::<c_void>(1));
    /// The calling thread's default stream, by its explicit handle (`CU_STREAM_PER_THREAD`).
    pub const PER_THREAD: Self = Self::from_ptr(without_provenance_mut::<c_void>(2));
}

/// Handles whose driver calls may be made from any thread, and from several at once.
macro_rules! any_thread {
    ($($name:ident),*) => { $(
        // SAFETY: the value is never dereferenced in this process's Rust code, and the driver API
        // is thread safe for this kind of object: a handle made on one thread is valid on every
        // other.
        unsafe impl Send for $name {}
        // SAFETY: as above; a shared reference gives no more than the pointer's value.
        unsafe impl Sync for $name {}
    )* };
}

any_thread!(
    CUcontext,
    CUstream,
    CUevent,
    CUmodule,
    CUfunction,
    CUkernel,
    CUuserObject
);

/// Handles that may move between threads but must not be used by two at once. The header says of
/// graphs: "Graph objects are not internally synchronized and must not be accessed concurrently
/// from multiple threads", read-only calls included. They are therefore not `Sync`, and neither is
/// what holds one.
macro_rules! one_thread_at_a_time {
    ($($name:ident),*) => { $(
        // SAFETY: the value is never dereferenced in this process's Rust code, and the driver ties
        // these objects to no thread: it only forbids concurrent use.
        unsafe impl Send for $name {}
    )* };
}

one_thread_at_a_time!(CUgraph, CUgraphNode, CUgraphExec);
