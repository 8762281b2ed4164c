//! Functions that only other programs call: they are not in the table of `slabfence_sys`, and nothing of this library
//! needs them. `libcuda.so.1` exports them beside those of the table.
//!
//! Names are those of the exported ABI, with its suffix. Enums are plain integers here: what the machine does not know it
//! refuses.

pub(super) mod context;
pub(super) mod copy;
pub(super) mod device;
pub(super) mod event;
pub(super) mod function;
pub(super) mod graph;
pub(super) mod library;
pub(super) mod memory;
pub(super) mod module;
pub(super) mod node;
pub(super) mod pitched;
pub(super) mod pool;
pub(super) mod stream;
