//! What synchronisation carries from thread to thread.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::clock::{Clock, View};
use crate::strength::Party;

/// What a thread knows: whose operations come before its next one, and which messages are too old for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Knowledge {
    /// Times by seat.
    pub clock: Clock,
    /// Messages by location.
    pub view: View,
    /// Writes, by location and number of their message, that a strong read observed: they come before (PTX ISA 8.9.5),
    /// though nothing that their threads did before them does. Kept where races are looked for.
    pub observed: BTreeSet<(usize, u32)>,
}

impl Knowledge {
    /// Adds what another knows.
    pub fn join(&mut self, other: &Self) {
        self.clock.join(&other.clock);
        self.view.join(&other.view);
        self.observed.extend(&other.observed);
    }
}

/// The first operation of a release pattern, and what its thread knew then. A message carries the heads of all patterns
/// that its write completes; a reader takes those that are morally strong with the last operation of its acquire pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Head {
    /// The release or the fence.
    pub first: Party,
    /// What comes before it.
    pub knows: Rc<Knowledge>,
}
