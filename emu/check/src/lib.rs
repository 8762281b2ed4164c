//! The detector of the emulated machine's checking mode: a [`Hook`](slabfence_emu_exec::Hook) of the one interpreter.
//!
//! A [`Checker`] watches one run. It is told what memory there is ([`Checker::region`]) and which operations start after
//! which ([`Checker::begin`], [`Checker::end`], [`Checker::task`]); accesses, fences and barriers it sees itself. It
//! orders them by happens-before with PTX scopes and reports what is not in order, or not where it belongs, as
//! [`Finding`]s. It knows no machine and changes nothing, so the run is the same with it and without.
//!
//! `docs/checker.md` says what each rule means, what is assumed, and what is not seen.
#![forbid(unsafe_code)]

mod access;
mod barrier;
mod binding;
mod cell;
mod checker;
mod clock;
mod conflict;
mod fault;
mod finding;
mod findings;
mod map;
mod operation;
mod options;
mod protocol;
mod readers;
mod region;
mod registry;
mod rule;
mod shadow;
mod slots;
mod strong;
mod sweep;
mod sync;
mod warp;
mod word;

pub use checker::{Checker, Op, Touch};
pub use finding::{Finding, Party, Place, Thread};
pub use options::Options;
pub use region::{Region, RegionKind, Writers};
pub use rule::Rule;
pub use sweep::Remembered;
