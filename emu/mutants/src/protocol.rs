//! Small kernels of other protocols.

use crate::mutation::Scenario;

/// A kernel of another protocol.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// Stable name.
    pub name: &'static str,
    /// Its PTX text, which begins with an explanation.
    pub ptx: &'static str,
    /// What ranks must do for its bug to show.
    pub scenario: Scenario,
    /// Findings of which one at least is expected; none when it is right.
    pub rules: &'static [&'static str],
}

/// All of them.
pub const PROTOCOLS: &[Protocol] = &[];
