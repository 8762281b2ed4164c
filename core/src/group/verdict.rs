//! All-rank verdicts: no rank goes on from a step that failed on another.

use super::wire::{Reader, Writer};
use super::{Group, Missed, Rank};
use crate::error::{Error, Result};

const FINE: u64 = 0;
const FAILED: u64 = 1;
/// Longest words that travel; the rest is cut, not refused.
const MAX_WORDS: usize = 4096;

/// How a step ended that did not succeed.
#[derive(Debug)]
pub(crate) enum Ended {
    /// It failed on some rank, and all ranks know.
    Failed(Error),
    /// The ranks did not meet in it.
    Missed(Missed),
}

impl From<Ended> for Error {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Failed(error) => error,
            Ended::Missed(missed) => missed.into(),
        }
    }
}

impl Group {
    /// Closes a step. Fails on every rank when `result` failed on any, with every failing rank's words.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] for the verdict; [`Error::Timeout`] and [`Error::Bootstrap`] when there is none.
    pub fn verdict<T>(&self, phase: &'static str, result: &Result<T>) -> Result<()> {
        let none = result.as_ref().map(|_| Vec::new());
        self.share_ref(phase, none).map(|_| ())
    }

    /// [`verdict`](Self::verdict), and the result itself when all agree.
    pub(crate) fn agree<T>(&self, phase: &'static str, result: Result<T>) -> Result<T> {
        self.verdict(phase, &result)?;
        result
    }

    /// [`verdict`](Self::verdict) that tells how the step ended.
    pub(crate) fn conclude<T>(&self, phase: &'static str, result: &Result<T>) -> Result<(), Ended> {
        let none = result.as_ref().map(|_| Vec::new());
        self.share_or_end(phase, none).map(|_| ())
    }

    /// A verdict that also hands every rank's payload to all.
    pub(crate) fn share(
        &self,
        phase: &'static str,
        result: Result<Vec<u8>>,
    ) -> Result<Vec<Vec<u8>>> {
        self.share_ref(phase, result.as_ref().map(Vec::clone))
    }

    /// [`share`](Self::share) that leaves the error to the caller.
    pub(crate) fn share_ref(
        &self,
        phase: &'static str,
        result: std::result::Result<Vec<u8>, &Error>,
    ) -> Result<Vec<Vec<u8>>> {
        self.share_or_end(phase, result).map_err(Error::from)
    }

    fn share_or_end(
        &self,
        phase: &'static str,
        result: std::result::Result<Vec<u8>, &Error>,
    ) -> Result<Vec<Vec<u8>>, Ended> {
        let speaker = self.speaker();
        let parts = self.gather(phase, &message(&result)).map_err(|missed| {
            log::debug!("{speaker}: {phase}: no verdict");
            // The exchange's own failure is what the caller sees; what went wrong first must not be lost.
            if let Err(error) = &result {
                log::error!("{speaker}: {phase}: {error}");
            }
            Ended::Missed(missed)
        })?;
        let mut payloads = Vec::with_capacity(parts.len());
        let mut failures = Vec::new();
        for (rank, part) in (0u32..).map(Rank).zip(&parts) {
            let mut reader = Reader::new(part);
            match reader.word() {
                Some(FINE) => payloads.push(reader.rest().to_vec()),
                Some(FAILED) => {
                    let words = reader.text();
                    failures.push((rank, words.unwrap_or_else(|| "no words".to_owned())));
                }
                _ => failures.push((rank, "its verdict is malformed".to_owned())),
            }
        }
        if failures.is_empty() {
            log::debug!("{speaker}: {phase}: all ranks agree");
            return Ok(payloads);
        }
        let error = Error::Setup { phase, failures };
        log::debug!("{speaker}: {error}");
        Err(Ended::Failed(error))
    }
}

/// What a rank tells the others of its `result`.
fn message(result: &std::result::Result<Vec<u8>, &Error>) -> Vec<u8> {
    let message = match result {
        Ok(payload) => Writer::new().word(FINE).raw(payload),
        Err(error) => Writer::new().word(FAILED).text(cut(&error.to_string())),
    };
    message.finish()
}

/// At most [`MAX_WORDS`] bytes, at a character's end.
fn cut(words: &str) -> &str {
    let mut end = words.len().min(MAX_WORDS);
    while !words.is_char_boundary(end) {
        end -= 1;
    }
    &words[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::{BootstrapError, ThreadBootstrap};
    use std::sync::{Arc, Barrier};
    use std::thread;
    use std::time::Duration;

    /// Runs `body` on every rank of a group.
    fn on_ranks<T: Send>(world: u32, body: impl Fn(Group) -> T + Sync) -> Vec<T> {
        let body = &body;
        thread::scope(|scope| {
            let handles: Vec<_> = ThreadBootstrap::world(world)
                .into_iter()
                .map(|member| {
                    let rank = member.rank();
                    let group = Group::new(Arc::new(member), rank, world).unwrap();
                    scope.spawn(move || body(group.with_timeout(Duration::from_secs(3))))
                })
                .collect();
            handles.into_iter().map(|h| h.join().unwrap()).collect()
        })
    }

    fn failure(words: &str) -> Error {
        Error::Argument {
            operation: "test",
            what: words.to_owned(),
        }
    }

    #[test]
    fn every_rank_learns_of_every_failing_rank_with_its_words() {
        let verdicts = on_ranks(3, |group| {
            let result = match group.me().0 {
                1 => Ok(()),
                rank => Err(failure(&format!("reason {rank}"))),
            };
            group.verdict("probe", &result)
        });
        for verdict in verdicts {
            let Err(Error::Setup { phase, failures }) = verdict else {
                panic!("{verdict:?}");
            };
            assert_eq!(phase, "probe");
            let ranks: Vec<Rank> = failures.iter().map(|(rank, _)| *rank).collect();
            assert_eq!(ranks, [Rank(0), Rank(2)]);
            assert!(failures[0].1.contains("reason 0") && failures[1].1.contains("reason 2"));
        }
    }

    #[test]
    fn payloads_reach_all_ranks_when_none_failed() {
        let shared = on_ranks(3, |group| {
            let own = vec![group.me().0 as u8; 2];
            group.share("probe", Ok(own)).unwrap()
        });
        assert!(
            shared
                .iter()
                .all(|parts| *parts == [[0, 0], [1, 1], [2, 2]])
        );
    }

    #[test]
    fn ranks_in_different_steps_learn_who_is_where() {
        let verdicts = on_ranks(2, |group| {
            let step = ["prepare", "close"][group.me().index()];
            group.verdict(step, &Ok(())).unwrap_err().to_string()
        });
        assert!(verdicts[0].contains("it is in 'close'"), "{}", verdicts[0]);
        assert!(
            verdicts[1].contains("it is in 'prepare'"),
            "{}",
            verdicts[1]
        );
    }

    #[test]
    fn a_rank_that_does_not_come_is_named() {
        let done = &Barrier::new(2);
        let verdicts = on_ranks(2, |group| {
            let verdict = (group.me().0 == 0).then(|| group.verdict("prepare", &Ok(())));
            // It is there all the time, or it would be known to have left.
            done.wait();
            verdict.map(|verdict| verdict.unwrap_err())
        });
        let Some(Some(Error::Timeout { what, missing })) = verdicts.into_iter().next() else {
            panic!("no timeout");
        };
        assert_eq!((what.as_str(), missing), ("prepare", vec![Rank(1)]));
    }

    #[test]
    fn a_rank_that_ended_is_named_at_once() {
        let verdicts = on_ranks(2, |group| match group.me().0 {
            0 => Some(
                group
                    .with_timeout(Duration::from_secs(60))
                    .verdict("x", &Ok(())),
            ),
            _ => None,
        });
        let Some(Some(Err(Error::Bootstrap(BootstrapError::Left { ranks })))) =
            verdicts.into_iter().next()
        else {
            panic!("not told");
        };
        assert_eq!(ranks, [Rank(1)]);
    }

    /// A change needs another number in `envelope.rs`: ranks of two builds meet in verdicts before they compare their terms.
    #[test]
    fn verdicts_of_this_form_are_to_the_byte_what_they_were() {
        let fine = [&[0; 8][..], b"payload"].concat();
        assert_eq!(message(&Ok(b"payload".to_vec())), fine);
        let words = b"test: why";
        let failed = [&[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0][..], words].concat();
        assert_eq!(message(&Err(&failure("why"))), failed);
    }

    #[test]
    fn words_are_cut_at_a_character() {
        let long = format!("{}é", "x".repeat(MAX_WORDS - 1));
        assert_eq!(cut(&long).len(), MAX_WORDS - 1);
        assert_eq!(cut("short"), "short");
    }
}
