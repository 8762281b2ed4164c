//! Stages that count only if every rank has come through them.

use std::cell::Cell;
use std::time::Duration;

use slabfence::channel::Pool;
use slabfence::group::Group;
use slabfence::{Error, Result};

/// How long a rank waits for the others between two stages. A rank that ends early wakes them at once; this is for one
/// that is busy with its reference.
const STAGE_TIMEOUT: Duration = Duration::from_secs(600);
/// How long a rank that failed does, so that the others may learn why.
const FAILED_TIMEOUT: Duration = Duration::from_secs(30);

/// The ranks of a run, from stage to stage.
pub struct Stages {
    group: Group,
    /// How long this rank waits for the others when it has failed.
    failed: Duration,
    /// Whether a word of the others did not come: they cannot be counted on for anything.
    apart: Cell<bool>,
}

impl Stages {
    /// Of a group, with timeouts of its own.
    pub fn new(group: Group) -> Self {
        Self {
            group: group.with_timeout(STAGE_TIMEOUT),
            failed: FAILED_TIMEOUT,
            apart: Cell::new(false),
        }
    }

    /// The group, as a pool needs it.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// A result that counts only if every rank has one. A rank that failed keeps its own error, and does not wait long for
    /// the others before it tells it.
    pub fn together<T>(&self, stage: &'static str, result: Result<T>) -> Result<T> {
        let verdict = match &result {
            Ok(_) => self.group.verdict(stage, &result),
            Err(_) => {
                let group = self.group.clone().with_timeout(self.failed);
                group.verdict(stage, &result)
            }
        };
        if !matches!(verdict, Ok(()) | Err(Error::Setup { .. })) {
            self.apart.set(true);
        }
        let value = result?;
        verdict.map(|()| value)
    }

    /// Gives a pool back: with the others, or without those that did not answer.
    pub fn close(&self, pool: &Pool) -> Result<()> {
        match self.apart.get() {
            false => pool.close(),
            true => pool.abandon().map(|_| ()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use slabfence::group::{Bootstrap, Rank, ThreadBootstrap};

    use super::*;

    fn failure() -> Error {
        Error::Refused {
            operation: "a stage",
            why: "it failed".to_owned(),
        }
    }

    #[test]
    fn a_rank_that_failed_does_not_wait_long_for_one_that_never_comes() {
        let mut ranks = ThreadBootstrap::world(2).into_iter();
        let bootstrap: Arc<dyn Bootstrap> = Arc::new(ranks.next().expect("a rank"));
        let stages = Stages {
            failed: Duration::from_millis(50),
            ..Stages::new(Group::new(bootstrap, Rank(0), 2).expect("a group"))
        };
        let begin = Instant::now();
        let ended = stages.together::<()>("a stage", Err(failure()));
        assert_eq!(ended.unwrap_err().to_string(), failure().to_string());
        assert!(stages.apart.get());
        let took = begin.elapsed();
        assert!(took < STAGE_TIMEOUT / 10, "{took:?}");
        drop(ranks);
    }
}
