//! Disagreements with PTX that are known, and why they are there.

use std::fmt;

/// Why the model does not reach what PTX allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A load would have to read a write that is made only after the load. The model has no promises.
    LoadBuffering,
    /// A write would have to be older, in coherence order, than one that was made before it. The model appends.
    LateWrite,
    /// Some thread of the execution hangs.
    Hang,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LoadBuffering => {
                "load buffering: a load would have to read a write that is made only after the load"
            }
            Self::LateWrite => {
                "coherence: a write would have to be older than one that was made before it"
            }
            Self::Hang => {
                "hang: a third thread comes to a barrier for two and waits for ever; only executions that end count"
            }
        })
    }
}

/// Files whose verdict is known to differ, as an `expected.csv` names them. In all of them the model reaches less than
/// PTX allows.
pub const KNOWN: &[(&str, Reason)] = &[
    // Dat3M, `PTXv6_0-expected.csv`.
    ("Manual/Cause-base-weak.litmus", Reason::LateWrite),
    (
        "Manual/Co-Total-3-threads-scope-same.litmus",
        Reason::LateWrite,
    ),
    ("Manual/Co-Total-4-threads.litmus", Reason::LateWrite),
    ("Manual/CoRW-WW.litmus", Reason::LateWrite),
    ("Manual/LB-dlb-no-fence-1.litmus", Reason::LoadBuffering),
    ("Manual/LB-dlb-no-fence-2.litmus", Reason::LoadBuffering),
    ("Manual/LB+RMW-a.litmus", Reason::LoadBuffering),
    ("Manual/MICRO24-Fig4b.litmus", Reason::LoadBuffering),
    ("Manual/SL-future-minus.litmus", Reason::LoadBuffering),
    ("Barrier/quorum1-pass.litmus", Reason::Hang),
    ("Barrier/quorum2-pass.litmus", Reason::Hang),
    ("Barrier/quorum3-pass.litmus", Reason::Hang),
    ("Barrier/quorum4-pass.litmus", Reason::Hang),
    // Our own, `testdata/litmus/slabfence/expected.csv`.
    ("shapes/lb.litmus", Reason::LoadBuffering),
    ("shapes/2+2w.litmus", Reason::LateWrite),
];

/// Why a file's verdict is known to differ.
pub fn known_reason(file: &str) -> Option<Reason> {
    KNOWN
        .iter()
        .find(|(name, _)| *name == file)
        .map(|(_, reason)| *reason)
}
