//! The shipped kernels with one bug planted in each: what the checker of the emulated machine must find.
//!
//! A [`Mutation`] is one bug. [`Mutation::plant`] puts it into the PTX of a shipped [`Entry`] and gives a whole text
//! that can take the entry's place. Where the bug goes is found by what the code does, not by where it stands: an
//! instruction by its form and by the parameters that its address comes from ([`Field`]). How many places that are is
//! stated for each entry, and any other number is an error, so that no compiler can make a mutant equal to the original.
//!
//! [`PROTOCOLS`] are small kernels of other protocols, right and wrong ones.
#![forbid(unsafe_code)]

mod draft;
mod edits;
mod entry;
mod field;
mod flow;
mod mutation;
mod protocol;
mod table;

pub use draft::EditError;
pub use entry::{Entry, Family, shipped};
pub use field::{Field, Part};
pub use mutation::{Mutation, PlantError, Scenario};
pub use protocol::{Call, Exchange, PROTOCOLS, Protocol};
pub use table::{EQUIVALENT, FAILING, MUTATIONS};

/// The mutation of this name.
pub fn mutation(name: &str) -> Option<&'static Mutation> {
    let mut known = MUTATIONS.iter().chain(FAILING);
    known.find(|mutation| mutation.name == name)
}
