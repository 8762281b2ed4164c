//! One exchange of a group: every rank's message to all, and what may come instead.

use std::panic::{self, AssertUnwindSafe};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::envelope::{Form, envelope, open};
use super::{BootstrapError, Group, Rank};
use crate::driver::fork;
use crate::error::{Error, Result};

/// Why ranks did not meet in a step.
#[derive(Debug)]
pub(crate) enum Missed {
    /// They are in different steps, or of builds that cannot read each other's messages, and all know.
    Apart(Error),
    /// This rank does not know how the step ended for the others.
    Lost(Error),
}

impl From<Missed> for Error {
    fn from(missed: Missed) -> Self {
        match missed {
            Missed::Apart(error) | Missed::Lost(error) => error,
        }
    }
}

impl Group {
    /// Hands `payload` to every rank and returns all payloads in rank order. `what` names the step: ranks in different
    /// steps find out here instead of misreading each other.
    pub(crate) fn exchange(&self, what: &'static str, payload: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.gather(what, payload).map_err(Error::from)
    }

    /// [`exchange`](Self::exchange) that tells how it failed.
    pub(crate) fn gather(
        &self,
        what: &'static str,
        payload: &[u8],
    ) -> Result<Vec<Vec<u8>>, Missed> {
        fork::refuse().map_err(Missed::Lost)?;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // No two messages of a process are alike, so an answer to an earlier one is found out.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let sent = envelope(what, self.pool, self.me, number, payload);
        let deadline = Instant::now() + self.timeout;
        let gather = AssertUnwindSafe(|| self.bootstrap.all_gather(&sent, deadline));
        // The host's code. What this rank holds meanwhile is given back as after any other failure of it.
        let parts = panic::catch_unwind(gather).unwrap_or_else(|panic| {
            let words = panic.downcast_ref::<&str>().copied();
            let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            Err(BootstrapError::Other(format!(
                "it panicked: {}",
                words.unwrap_or("no words")
            )))
        });
        let parts = parts.map_err(|error| {
            Missed::Lost(match error {
                BootstrapError::Timeout { missing } => Error::Timeout {
                    what: what.to_owned(),
                    missing,
                },
                other => Error::Bootstrap(other),
            })
        })?;
        let lost = |words: String| Missed::Lost(Error::Bootstrap(BootstrapError::Other(words)));
        if parts.len() != self.members.len() || parts[self.me.index()] != sent {
            return Err(lost(format!(
                "all_gather returned {} parts, and not this rank's own at place {}; it must return one part a rank, in rank order",
                parts.len(),
                self.me.0
            )));
        }
        // What others have had of that rank may be whole, so this is no verdict.
        let damaged = |rank: Rank| {
            lost(format!(
                "the message of {rank} came damaged, or another came in its place"
            ))
        };
        let apart = |failures| {
            Err(Missed::Apart(Error::Setup {
                phase: what,
                failures,
            }))
        };
        let forms: Result<Vec<Form>, Missed> = (0u32..)
            .zip(&parts)
            .map(|(rank, part)| Form::of(part).ok_or_else(|| damaged(Rank(rank))))
            .collect();
        let failures = compare(&forms?);
        if !failures.is_empty() {
            return apart(failures);
        }
        let mut payloads = Vec::with_capacity(parts.len());
        let mut failures = Vec::new();
        for (rank, part) in (0u32..).map(Rank).zip(&parts) {
            let (step, pool, payload) = open(part, rank).ok_or_else(|| damaged(rank))?;
            if step == what && pool == self.pool {
                payloads.push(payload);
                continue;
            }
            let other = if pool == self.pool {
                ""
            } else {
                " of another pool"
            };
            failures.push((
                rank,
                format!("it is in '{step}'{other}; call collective functions in the same order on all ranks"),
            ));
        }
        match failures.is_empty() {
            true => Ok(payloads),
            false => apart(failures),
        }
    }
}

/// Compares the forms of everyone's messages with that of rank 0's. All ranks come to the same result, whatever their build.
fn compare(forms: &[Form]) -> Vec<(Rank, String)> {
    let Some((first, others)) = forms.split_first() else {
        return Vec::new();
    };
    let others = (1u32..).map(Rank).zip(others);
    let different = others.filter(|(_, form)| form.number != first.number);
    different
        .map(|(rank, form)| {
            let words = format!(
                "its messages are of form {} (slabfence {}), those of rank 0 of form {} (slabfence {}); run the same build on all ranks",
                form.number, form.version, first.number, first.version
            );
            (rank, words)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::Bootstrap;
    use crate::group::envelope::of_form;
    use std::sync::Arc;

    /// Answers every message with what it makes of it.
    struct Answering(fn(&[u8]) -> Vec<Vec<u8>>);

    impl Bootstrap for Answering {
        fn all_gather(
            &self,
            bytes: &[u8],
            _: Instant,
        ) -> std::result::Result<Vec<Vec<u8>>, BootstrapError> {
            Ok((self.0)(bytes))
        }
    }

    fn answered(world: u32, answer: fn(&[u8]) -> Vec<Vec<u8>>) -> Group {
        Group::new(Arc::new(Answering(answer)), Rank(0), world).unwrap()
    }

    /// A message of a rank, well formed, with a number that no message of these groups has.
    fn message(rank: u32) -> Vec<u8> {
        envelope("step", 0, Rank(rank), 1 << 40, b"")
    }

    #[test]
    fn a_bootstrap_that_disorders_its_parts_is_found_out() {
        let group = answered(2, |own| vec![Vec::new(), own.to_vec()]);
        let said = group.exchange("step", b"").unwrap_err().to_string();
        assert!(said.contains("in rank order"), "{said}");
    }

    #[test]
    fn messages_of_two_others_in_each_others_place_are_found_out() {
        let group = answered(3, |own| vec![own.to_vec(), message(2), message(1)]);
        let said = group.exchange("step", b"").unwrap_err().to_string();
        assert!(
            said.contains("the message of rank 1 came damaged"),
            "{said}"
        );
    }

    #[test]
    fn an_answer_to_an_earlier_message_is_found_out() {
        let group = answered(2, |_| vec![message(0), message(1)]);
        assert!(matches!(group.gather("step", b""), Err(Missed::Lost(_))));
    }
    #[test]
    fn ranks_whose_messages_are_of_another_form_are_named_with_both_versions() {
        let group = answered(3, |own| {
            vec![own.to_vec(), message(1), of_form(99, "9.9.9")]
        });
        let Err(Missed::Apart(Error::Setup { phase, failures })) = group.gather("step", b"") else {
            panic!("no verdict");
        };
        let here = Form::of(&message(0)).unwrap();
        let words = format!(
            "its messages are of form 99 (slabfence 9.9.9), those of rank 0 of form {} (slabfence {}); run the same build on all ranks",
            here.number, here.version
        );
        assert_eq!((phase, failures), ("step", vec![(Rank(2), words)]));
    }

    #[test]
    fn where_a_message_came_damaged_no_build_is_blamed() {
        let group = answered(3, |own| {
            vec![own.to_vec(), Vec::new(), of_form(99, "9.9.9")]
        });
        assert!(matches!(group.gather("step", b""), Err(Missed::Lost(_))));
    }
}
