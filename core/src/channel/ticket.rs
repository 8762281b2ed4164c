//! What a creation could not give back, until it can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::driver::fork;
use crate::error::{Error, Result};
use crate::group::{Ended, Group, Rank};

use super::abandon::Abandoned;
use super::pool::{Pool, settle};
use super::shared::{Phase, Shared, Ties};

/// A rank's part in giving back what a failed creation has left somewhere. While something is left on any rank, the group
/// creates no pool.
///
/// A ticket that is dropped keeps the memory for the life of the process, where a peer may use it, and the group refused.
#[derive(Debug)]
pub struct Ticket {
    group: Group,
    /// `None` on a rank that has nothing left and only takes part. On one where the creation succeeded, its pool.
    pool: Option<Pool>,
    settled: AtomicBool,
}

impl Ticket {
    /// The error of a creation that ended with `cause` and could not give everything back.
    pub(super) fn keep(shared: Shared, cause: Error, left: Option<Error>) -> Error {
        let shared = Arc::new(shared);
        Self::of(Pool { shared }, cause, left)
    }

    /// [`keep`](Self::keep) for what is a pool already.
    pub(super) fn of(pool: Pool, cause: Error, left: Option<Error>) -> Error {
        let tied = match pool.shared.write() {
            Ok(mut state) => {
                if !matches!(state.phase, Phase::Closed) {
                    state.phase = Phase::Broken(format!("its creation failed: {cause}"));
                }
                state.ties == Ties::Tied
            }
            Err(forked) => return forked,
        };
        let group = pool.shared.group.clone();
        match &left {
            Some(left) => log::error!("{}: {cause}; then {left}", group.speaker()),
            None => log::error!("{}: {cause}; peers may use its memory", group.speaker()),
        }
        group.remains().add(tied.then(|| group.pool()));
        Error::Retained {
            cause: Box::new(cause),
            left: left.map(Box::new),
            ticket: Box::new(Self {
                group,
                pool: Some(pool),
                settled: AtomicBool::new(false),
            }),
        }
    }

    /// Closes the step `create: pending`: no rank has anything left of an earlier creation on the group. Where one has that
    /// only all ranks together can give back, those get a ticket that have none.
    pub(super) fn none_pending(group: &Group) -> Result<()> {
        const STEP: &str = "create: pending";
        let shares = group.share(STEP, Ok(group.remains().write()))?;
        let mut failures = Vec::new();
        let mut together = None;
        for (rank, share) in (0u32..).map(Rank).zip(&shares) {
            let words = match crate::group::read_remains(share) {
                Some((0, _)) => continue,
                None => "what it has left is malformed",
                Some((_, Some(pool))) => {
                    together = Some(pool);
                    "an earlier creation has left memory that peers may use: retry its ticket on all ranks; without one of the tickets, form a new group"
                }
                Some((_, None)) => {
                    "an earlier creation has left memory: retry its ticket there; without the ticket, form a new group"
                }
            };
            failures.push((rank, words.to_owned()));
        }
        if failures.is_empty() {
            return Ok(());
        }
        let refused = settle(STEP, Err(failures));
        match together {
            Some(pool) if group.remains().count() == 0 => refused.map_err(|cause| {
                let group = group.clone().for_pool(pool);
                group.remains().add(Some(pool));
                // Where the creation succeeded, its pool has to be closed with the others' remains: it writes there.
                let living = group.remains().living(pool);
                let living = living.and_then(|made| made.downcast::<Shared>().ok());
                Error::Retained {
                    cause: Box::new(cause),
                    left: None,
                    ticket: Box::new(Self {
                        group,
                        pool: living.map(|shared| Pool { shared }),
                        settled: AtomicBool::new(false),
                    }),
                }
            }),
            _ => refused,
        }
    }

    /// Gives back what is left, as [`Pool::close`] does. Every rank that has a ticket of this creation calls this, those
    /// too on which nothing is left; where only its owner can give it back, as the creation's error then says, no rank waits
    /// for another. Does nothing once it has succeeded.
    ///
    /// # Errors
    ///
    /// Those of [`Pool::close`]; then every rank may call again.
    pub fn retry(&self) -> Result<()> {
        fork::refuse()?;
        match &self.pool {
            Some(pool) => {
                let closed = pool.close();
                if !pool.shared.is_tied()? {
                    self.group.remains().loosen(self.group.pool());
                }
                closed?;
            }
            None if self.settled.load(Ordering::Acquire) => {}
            None => self.take_part()?,
        }
        self.settle();
        Ok(())
    }

    /// Whether a retry meets the other ranks. One of what only its owner can give back does not.
    pub(crate) fn needs_all(&self) -> bool {
        let of = |pool: &Pool| pool.shared.read().map(|state| state.ties);
        // In a forked child no retry does anything.
        !matches!(self.pool.as_ref().map(of), Some(Ok(Ties::Loose) | Err(_)))
    }

    /// What `Pool::close` exchanges, on a rank that has nothing. Nothing of it runs either: an operation takes a channel, and
    /// to prepare one takes every rank, of which one has no pool.
    fn take_part(&self) -> Result<()> {
        for step in ["close: drain", "close: graphs", "close: unmap"] {
            self.group.verdict(step, &Ok(()))?;
        }
        // What the others have left now is theirs alone.
        let speaker = self.group.speaker();
        match self.group.conclude("close: free", &Ok(())) {
            Err(Ended::Failed(error)) => log::warn!("{speaker}: {error}"),
            Err(Ended::Missed(missed)) => log::warn!("{speaker}: {}", Error::from(missed)),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Gives back what this rank can without the others, as [`Pool::abandon`] does. The group creates no other pool with
    /// ranks that wait for this one's part.
    ///
    /// # Errors
    ///
    /// Those of [`Pool::abandon`].
    pub fn abandon(&self) -> Result<Abandoned> {
        fork::refuse()?;
        let abandoned = match &self.pool {
            Some(pool) => pool.abandon()?,
            None => Abandoned { kept: 0 },
        };
        self.settle();
        Ok(abandoned)
    }

    fn settle(&self) {
        if !self.settled.swap(true, Ordering::AcqRel) {
            self.group.remains().settle();
        }
    }
}
