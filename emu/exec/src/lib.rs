//! PTX execution of the emulated driver: one interpreter, generic over a hook.
//!
//! The machine (crate `slabfence-emu`) owns devices, streams and memory; this crate runs warps. The seam between
//! them is small: [`Kernel`] is a decoded entry, [`Launch`] one launch of it, [`Cta`] a resident block,
//! [`Cta::step`] runs one of its warps for a while, [`GlobalMemory`] says what an address is, and [`Hook`] sees
//! every access, fence and barrier, so that a checking mode needs no second interpreter.
#![deny(unsafe_code)]

mod access;
mod barrier;
mod compute;
mod cta;
mod decode;
mod fault;
mod hook;
mod kernel;
mod lanes;
mod launch;
#[allow(unsafe_code, reason = "the one module that touches device memory")]
mod memory;
mod op;
mod polling;
mod registers;
mod relation;
mod run;
mod stand;
mod upcoming;
mod value;
mod warp;
mod window;

pub use cta::{Cta, Env, Step, WaitReason, WarpState};
pub use fault::{AccessKind, BarrierMisuse, Fault, FaultKind};
pub use hook::{Access, CtaBarrier, Fast, Fence, Hook, Operation, Site, Space};
pub use kernel::{CompileError, Kernel, ParamInfo, SourceLine};
pub use launch::{Launch, LaunchError};
pub use memory::{GlobalMemory, MemoryFault, Region};
pub use polling::Polled;
pub use registers::lanes_of;
pub use relation::Relation;
pub use slabfence_emu_model::{Order, Scope};
pub use stand::Stand;
pub use upcoming::Upcoming;
