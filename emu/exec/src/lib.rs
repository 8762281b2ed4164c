//! PTX execution of the emulated driver: one interpreter, generic over a hook.
//!
//! The machine (crate `slabfence-emu`) owns devices, streams and memory; this crate runs warps. The seam between
//! them is small: [`Cta`] is a resident block, [`Cta::step`] runs one of its warps for a while, [`GlobalMemory`]
//! says what an address is, and [`Hook`] sees every access, fence and barrier, so that a checking mode needs no
//! second interpreter.
