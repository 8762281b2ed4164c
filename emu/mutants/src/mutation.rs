//! One bug, and what finds it.

use std::fmt;

use crate::draft::{Draft, EditError};
use crate::entry::Entry;

/// What ranks must do for a bug to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scenario {
    /// One operation, the same everywhere, of at least two CTAs.
    Single,
    /// At least three equal operations back to back, so that a slot is used again.
    Reuse,
    /// Three operations back to back with many CTAs, one CTA, and many CTAs again.
    Grids,
    /// Equal operations back to back from epochs below 2^31 to epochs above.
    HighEpochs,
    /// Two equal operations, with flags and entry lines in their slots of operations whose epochs have the same low 32
    /// bits.
    EqualLowHalves,
    /// One operation each, the one of the entry on rank 0 and the other (a reduction for a gather) with the same transport
    /// on all others, in one CTA. Every rank must end with a verdict. The two operations use flags of different phases
    /// in mutant and counterpart, so that neither takes the other's rows for its own before tags are compared.
    Mismatch,
    /// Two equal operations. The first of rank 0 fails before it enters, since `retired` is one short of `started` there, as
    /// if an earlier operation still ran: only poison ends the waits of the others. The second is skipped everywhere. Every
    /// rank must end with a verdict, and the last cause that it reports must be that.
    Tripped,
}

/// Makes the changes; gives the number of places.
pub(crate) type Edit = fn(&mut Draft<'_>) -> Result<usize, EditError>;

/// One planted bug.
#[derive(Clone, Copy)]
pub struct Mutation {
    /// Stable name.
    pub name: &'static str,
    /// What is wrong with the mutant, in a sentence.
    pub bug: &'static str,
    /// What ranks must do for it to show.
    pub scenario: Scenario,
    /// Findings of which one at least is expected: names of the checker's rules, or `verdict` (an operation reports
    /// what it should not, or nothing when it should), `counters` (at rest `retired` is not what it must be beside `started`).
    pub rules: &'static [&'static str],
    /// How many places of an entry change.
    pub(crate) places: fn(&Entry) -> usize,
    pub(crate) edit: Edit,
    /// What is changed besides the bug, in both the mutant and its counterpart.
    pub(crate) ground: Option<Edit>,
}

/// Why a bug cannot be planted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlantError {
    /// The mutation.
    pub mutation: &'static str,
    /// The entry.
    pub entry: &'static str,
    /// What is not as expected.
    pub message: String,
}

impl fmt::Display for PlantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "mutation `{}` of `{}`: {}",
            self.mutation, self.entry, self.message
        )
    }
}

impl std::error::Error for PlantError {}

impl fmt::Debug for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutation")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Mutation {
    /// How many places of an entry change.
    pub fn places(&self, entry: &Entry) -> usize {
        (self.places)(entry)
    }

    /// A whole text with the entry in which the bug is planted.
    ///
    /// # Errors
    ///
    /// When the entry is not as expected, in particular when the bug has another number of places than stated.
    pub fn plant(&self, entry: &Entry) -> Result<String, PlantError> {
        let wrong = |message: String| PlantError {
            mutation: self.name,
            entry: entry.name,
            message,
        };
        let wrong_edit = |error: EditError| wrong(error.message);
        let grounded = self.counterpart(entry)?;
        let grounded = grounded.as_ref().unwrap_or(entry);
        let mut draft = Draft::new(grounded).map_err(wrong_edit)?;
        let places = (self.edit)(&mut draft).map_err(wrong_edit)?;
        let expected = self.places(entry);
        if places != expected || places == 0 {
            return Err(wrong(format!(
                "{places} places changed, {expected} expected"
            )));
        }
        Ok(draft.finish())
    }

    /// The entry that must be right where the mutant is wrong; `None` when it is the shipped one.
    ///
    /// # Errors
    ///
    /// As [`plant`](Self::plant).
    pub fn counterpart(&self, entry: &Entry) -> Result<Option<Entry>, PlantError> {
        let Some(ground) = self.ground else {
            return Ok(None);
        };
        let wrong = |error: EditError| PlantError {
            mutation: self.name,
            entry: entry.name,
            message: error.message,
        };
        let mut draft = Draft::new(entry).map_err(wrong)?;
        ground(&mut draft).map_err(wrong)?;
        let text = draft.finish();
        Ok(Some(Entry { text, ..*entry }))
    }
}
