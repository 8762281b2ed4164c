//! Why a command ends without success, and with which exit status.

use std::collections::BTreeMap;
use std::fmt;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use slabfence::Error;

/// Phases of a pool's creation that fail for what the user asked for.
const USE_PHASES: [&str; 4] = [
    "create: arguments",
    "create: contract",
    "create: devices",
    "create: capability",
];

/// Why a command did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Wrong use or bad input; status 2.
    Use(String),
    /// A wrong result or a fault; status 1.
    Fault(String),
}

impl Failure {
    /// The exit status.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Use(_) => ExitCode::from(2),
            Self::Fault(_) => ExitCode::from(1),
        }
    }

    fn new(words: String, is_use: bool) -> Self {
        match is_use {
            true => Self::Use(words),
            false => Self::Fault(words),
        }
    }

    /// The same, with where it happened before it.
    pub fn at(&self, place: &str) -> Self {
        let is_use = matches!(self, Self::Use(_));
        Self::new(format!("{place}: {}", self.words()), is_use)
    }

    fn words(&self) -> &str {
        match self {
            Self::Use(words) | Self::Fault(words) => words,
        }
    }

    /// One failure for what the ranks of a group of `world` met; `errors` has an entry for each rank that failed. Each
    /// message is told once, with the ranks that it is of. Verdicts count for the ranks that they name.
    pub fn of_ranks(errors: &[(usize, RankError)], world: usize) -> Self {
        let mut by_rank: BTreeMap<usize, Failure> = BTreeMap::new();
        for (rank, error) in errors {
            if let RankError::Own { words, is_use } = error {
                by_rank.insert(*rank, Self::new(words.clone(), *is_use));
            }
        }
        for (_, error) in errors {
            let RankError::Verdict {
                phase,
                failures,
                is_use,
            } = error
            else {
                continue;
            };
            for (rank, words) in failures {
                let failure = Self::new(format!("{phase}: {words}"), *is_use);
                by_rank.entry(*rank).or_insert(failure);
            }
        }
        Self::told_once(&by_rank, world)
    }

    fn told_once(by_rank: &BTreeMap<usize, Failure>, world: usize) -> Self {
        let mut messages: Vec<(&str, Vec<usize>)> = Vec::new();
        for (&rank, failure) in by_rank {
            match messages
                .iter_mut()
                .find(|(known, _)| *known == failure.words())
            {
                Some((_, ranks)) => ranks.push(rank),
                None => messages.push((failure.words(), vec![rank])),
            }
        }
        let lines = messages.iter().map(|(words, ranks)| {
            let numbers: Vec<String> = ranks.iter().map(usize::to_string).collect();
            match ranks.len() {
                n if n == world => format!("all {n} ranks: {words}"),
                1 => format!("rank {}: {words}", numbers[0]),
                _ => format!("ranks {}: {words}", numbers.join(", ")),
            }
        });
        let lines = lines.collect::<Vec<_>>().join("\n");
        // What is bad input on one rank may look like a fault of that rank to the others.
        match by_rank
            .values()
            .any(|failure| matches!(failure, Self::Use(_)))
        {
            true => Self::Use(lines),
            false => Self::Fault(lines),
        }
    }
}

/// How a rank ended without results, in a form that can come from another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RankError {
    /// With a verdict that all ranks share.
    Verdict {
        /// The step or call that failed.
        phase: String,
        /// Every rank that failed in it, with its words.
        failures: Vec<(usize, String)>,
        /// Whether wrong use is the reason.
        is_use: bool,
    },
    /// With something of its own.
    Own {
        /// What.
        words: String,
        /// Whether wrong use is the reason.
        is_use: bool,
    },
}

impl RankError {
    /// A fault, in words.
    pub fn fault(words: String) -> Self {
        Self::Own {
            words,
            is_use: false,
        }
    }
}

impl From<&Error> for RankError {
    fn from(error: &Error) -> Self {
        let is_use = is_use(error);
        match error {
            Error::Setup {
                phase: what,
                failures: told,
            }
            | Error::Busy {
                operation: what,
                holders: told,
            } => Self::Verdict {
                phase: (*what).to_owned(),
                failures: told
                    .iter()
                    .map(|(rank, words)| (rank.index(), words.clone()))
                    .collect(),
                is_use,
            },
            error => Self::Own {
                words: error.to_string(),
                is_use,
            },
        }
    }
}

impl From<Failure> for RankError {
    fn from(failure: Failure) -> Self {
        let is_use = matches!(failure, Failure::Use(_));
        Self::Own {
            words: failure.words().to_owned(),
            is_use,
        }
    }
}

fn is_use(error: &Error) -> bool {
    match error {
        Error::Argument { .. } | Error::Refused { .. } | Error::Load(_) => true,
        Error::Setup { phase, .. } => USE_PHASES.contains(phase),
        _ => false,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self::new(error.to_string(), is_use(error))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slabfence::group::Rank;

    fn argument(what: &str) -> RankError {
        RankError::from(&Error::Argument {
            operation: "op",
            what: what.to_owned(),
        })
    }

    fn verdict(phase: &'static str, failures: &[(u32, &str)]) -> RankError {
        let failures = failures
            .iter()
            .map(|&(rank, words)| (Rank(rank), words.to_owned()));
        RankError::from(&Error::Setup {
            phase,
            failures: failures.collect(),
        })
    }

    fn of(errors: Vec<RankError>) -> Failure {
        let world = errors.len();
        Failure::of_ranks(&errors.into_iter().enumerate().collect::<Vec<_>>(), world)
    }

    #[test]
    fn what_all_ranks_met_is_told_once() {
        let all = of(vec![argument("x"), argument("x"), argument("x")]);
        assert_eq!(all, Failure::Use("all 3 ranks: op: x".to_owned()));
        let some = of(vec![argument("x"), argument("y"), argument("x")]);
        assert_eq!(
            some,
            Failure::Use("ranks 0, 2: op: x\nrank 1: op: y".to_owned())
        );
    }

    #[test]
    fn a_verdict_tells_the_words_of_the_ranks_that_failed() {
        let seen = || verdict("create: capability", &[(1, "no")]);
        let failure = of(vec![seen(), seen(), seen()]);
        assert_eq!(
            failure,
            Failure::Use("rank 1: create: capability: no".to_owned())
        );
        let seen = || verdict("step", &[(1, "op: no")]);
        let failure = of(vec![seen(), argument("no"), seen()]);
        assert_eq!(failure, Failure::Use("rank 1: op: no".to_owned()));
        let seen = || verdict("close: drain", &[(0, "late"), (1, "late")]);
        let failure = of(vec![seen(), seen()]);
        assert_eq!(
            failure,
            Failure::Fault("all 2 ranks: close: drain: late".to_owned())
        );
    }

    #[test]
    fn a_panic_is_a_fault_of_its_rank() {
        let errors = [(2, RankError::fault("it panicked: boom".to_owned()))];
        let failure = Failure::of_ranks(&errors, 3);
        assert_eq!(
            failure,
            Failure::Fault("rank 2: it panicked: boom".to_owned())
        );
    }
}
