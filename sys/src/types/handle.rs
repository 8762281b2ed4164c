//! Opaque handles, and what the driver says about using one from several threads.

use core::ffi::c_void;
use core::ptr::without_provenance_mut;

handle! {
    /// A context.
    CUcontext
}
handle! {
    /// A stream. A handle's value is reused after the stream is destroyed: it does not identify a
    /// stream over time.
    CUstream
}
handle! {
    /// An event.
    CUevent
}
handle! {
    /// A loaded module.
    CUmodule
}
handle! {
    /// A kernel of a module, bound to that module's context.
    CUfunction
}
handle! {
    /// A kernel of a library, bound to no context.
    CUkernel
}
handle! {
    /// A graph template. It may move to another thread, but two must not use it at once:
    ///
    /// ```compile_fail,E0277
    /// fn shared<T: Sync>() {}
    /// shared::<slabfence_sys::CUgraph>();
    /// ```
    CUgraph
}
handle! {
    /// A node of a graph. Valid as long as its graph.
    CUgraphNode
}
handle! {
    /// An executable graph.
    CUgraphExec
}
handle! {
    /// A reference-counted object of the user's that graphs can own.
    CUuserObject
}

impl CUstream {
    /// The legacy default stream, by its explicit handle (`CU_STREAM_LEGACY`).
    pub const LEGACY: Self = Self(without_provenance_mut::<c_void>(1));
    /// The calling thread's default stream, by its explicit handle (`CU_STREAM_PER_THREAD`).
    pub const PER_THREAD: Self = Self(without_provenance_mut::<c_void>(2));
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
