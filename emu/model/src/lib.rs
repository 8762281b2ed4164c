//! The memory consistency model of PTX (chapter 8 of the ISA) as a machine that runs one step after another.
//!
//! `docs/memory-model.md` has the model in words and pseudo code, with its sources. Two layers:
//!
//! - the terms: [`Scope`] and [`Place`], [`Order`], [`Party`] with [`morally_strong`], [`Clock`] and [`View`], [`Knowledge`],
//!   [`Head`]. They know no machine; whatever decides about races over other state can use them;
//! - the [`Model`]: loads, stores, read-modify-writes, fences, barriers and the edges of the API over a [`State`], as
//!   functions whose freedom (which message a load reads) is an argument.
//!
//! [`litmus`] reads litmus files and explores all that the model can do with them.
#![forbid(unsafe_code)]

mod clock;
mod edges;
mod head;
mod history;
pub mod litmus;
mod model;
mod order;
mod race;
mod rules;
mod scope;
mod state;
mod strength;
mod trace;

pub use clock::{Clock, View};
pub use head::{Head, Knowledge};
pub use model::{Access, Model};
pub use order::Order;
pub use race::{Race, RaceKind, Site};
pub use rules::Rules;
pub use scope::{Place, Scope};
pub use state::State;
pub use strength::{Agent, Party, morally_strong};
