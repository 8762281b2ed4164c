//! How many ranks there are, and ranks as threads of this process.

use std::any::Any;
use std::ops::RangeInclusive;
use std::thread;

use slabfence::Result;
use slabfence::group::ThreadBootstrap;

use crate::failure::{Failure, RankError};

/// Ranks of a group.
const RANKS: RangeInclusive<u32> = 2..=16;

/// What came of every rank: results by rank, or the errors of the ranks that failed.
pub type Outcomes<T> = Result<Vec<T>, Vec<(usize, RankError)>>;

/// Refuses a number of ranks that no group has.
pub fn check(ranks: Option<u32>) -> Result<(), Failure> {
    match ranks.filter(|ranks| !RANKS.contains(ranks)) {
        Some(ranks) => Err(Failure::Use(format!(
            "--ranks {ranks}: a group has 2 to 16 ranks"
        ))),
        None => Ok(()),
    }
}

/// Runs `body` once a rank, each on a thread of its own with its member of the group and the ordinal of its device.
/// Results by rank.
pub fn on_threads<T: Send>(
    places: &[u32],
    body: impl Fn(ThreadBootstrap, u32) -> Result<T> + Sync,
) -> Outcomes<T> {
    let members = ThreadBootstrap::world(places.len() as u32);
    let body = &body;
    let outcomes: Vec<Result<T, RankError>> = thread::scope(|scope| {
        let spawn = |(member, &ordinal)| scope.spawn(move || body(member, ordinal));
        let ranks: Vec<_> = members.into_iter().zip(places).map(spawn).collect();
        let joined = ranks.into_iter().map(|rank| match rank.join() {
            Ok(outcome) => outcome.map_err(|error| RankError::from(&error)),
            Err(panic) => Err(RankError::fault(format!(
                "it panicked: {}",
                words_of(panic)
            ))),
        });
        joined.collect()
    });
    gather(outcomes)
}

/// Results only if every rank has one.
pub fn gather<T>(outcomes: Vec<Result<T, RankError>>) -> Outcomes<T> {
    let (mut results, mut errors) = (Vec::new(), Vec::new());
    for (rank, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(result) => results.push(result),
            Err(error) => errors.push((rank, error)),
        }
    }
    if errors.is_empty() {
        return Ok(results);
    }
    Err(errors)
}

/// What a panic said.
pub fn words_of(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast::<String>().map(|words| *words);
    text.or_else(|panic| panic.downcast::<&str>().map(|words| (*words).to_owned()))
        .unwrap_or_else(|_| "no words".to_owned())
}
