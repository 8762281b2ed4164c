//! Why a command ends without success, and with which exit status.

use std::fmt;
use std::process::ExitCode;

use slabfence::Error;

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

    fn words(&self) -> &str {
        match self {
            Self::Use(words) | Self::Fault(words) => words,
        }
    }

    /// One failure for what several ranks met: each different message once, with the ranks that gave it. `None` when no
    /// rank failed.
    pub fn of_ranks(failures: &[Option<Failure>]) -> Option<Failure> {
        let mut messages: Vec<(&Failure, Vec<usize>)> = Vec::new();
        for (rank, failure) in failures.iter().enumerate() {
            let Some(failure) = failure else { continue };
            match messages.iter_mut().find(|(known, _)| *known == failure) {
                Some((_, ranks)) => ranks.push(rank),
                None => messages.push((failure, vec![rank])),
            }
        }
        let all = failures.len();
        let line = |(failure, ranks): &(&Failure, Vec<usize>)| {
            let numbers: Vec<String> = ranks.iter().map(usize::to_string).collect();
            match ranks.len() {
                1 => format!("rank {}: {}", numbers[0], failure.words()),
                n if n == all => format!("all {n} ranks: {}", failure.words()),
                _ => format!("ranks {}: {}", numbers.join(", "), failure.words()),
            }
        };
        let words = messages.iter().map(line).collect::<Vec<_>>().join("\n");
        let first = messages.first()?;
        // Bad input that some ranks saw as a fault of another rank is still bad input.
        let any_use = messages
            .iter()
            .any(|(failure, _)| matches!(failure, Self::Use(_)));
        Some(match (any_use, first) {
            (true, _) => Self::Use(words),
            (false, _) => Self::Fault(words),
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let words = error.to_string();
        match error {
            Error::Argument { .. } | Error::Refused { .. } | Error::Load(_) => Self::Use(words),
            Error::Setup {
                phase: "arguments" | "capability" | "contract",
                ..
            } => Self::Use(words),
            _ => Self::Fault(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_with_the_same_words_are_named_together() {
        let bad = |words: &str| Some(Failure::Use(words.to_owned()));
        assert_eq!(Failure::of_ranks(&[None, None]), None);
        let all = Failure::of_ranks(&[bad("x"), bad("x"), bad("x")]);
        assert_eq!(all, bad("all 3 ranks: x"));
        let some = Failure::of_ranks(&[bad("x"), None, bad("x"), bad("y")]);
        assert_eq!(some, bad("ranks 0, 2: x\nrank 3: y"));
        let fault = Some(Failure::Fault("z".to_owned()));
        assert_eq!(
            Failure::of_ranks(&[fault.clone(), None]),
            Some(Failure::Fault("rank 0: z".to_owned()))
        );
        assert_eq!(
            Failure::of_ranks(&[fault, bad("x")]),
            bad("rank 0: z\nrank 1: x")
        );
    }
}
