//! What the engine does once it is up.

use std::time::Instant;

use slabfence::health::Health;
use slabfence::layout::Cause;
use slabfence::{Error, Result};

use super::engine::{Engine, SLEEP};
use super::model::BATCHES;
use super::pair::Pair;

impl Engine {
    /// Replays of several batches with eager operations between, the draft's beside the target's, and the pair's. No host
    /// comes between them, and nothing orders the three streams.
    pub fn step(&mut self) -> Result<()> {
        let (rank, world) = (self.member.rank(), self.member.group.world());
        let step = self.steps;
        self.steps += 1;
        let at = |n: u32| n as usize % BATCHES.len();
        // Never the same: an output has one operation.
        let replays = [at(step), at(step + 7 - step / 8 % 7)];
        let drafts = [at(step * 5 + 2), at(step * 5 + 3)];
        self.target.supply(replays, &mut self.number)?;
        if let Some(draft) = &mut self.draft {
            draft.supply(drafts, &mut self.number)?;
        }
        if let Some(pair) = &mut self.pair {
            pair.supply()?;
        }
        self.member.meet();
        if step % world == rank {
            self.target.hold(&self.target.stream, SLEEP)?;
        }
        if let Some(draft) = &self.draft
            && step / 2 % world == rank
        {
            draft.hold(&draft.stream, SLEEP)?;
        }
        let draft_is_first = (rank + step) % 2 == 1;
        if draft_is_first && let Some(draft) = &mut self.draft {
            draft.run(drafts)?;
        }
        self.target.run(replays)?;
        if let Some(pair) = &self.pair {
            pair.enqueue(&self.side)?;
        }
        if !draft_is_first && let Some(draft) = &mut self.draft {
            draft.run(drafts)?;
        }
        self.rest()?;
        self.target.check(replays)?;
        if let Some(draft) = &self.draft {
            draft.check(drafts)?;
        }
        self.pair.iter().try_for_each(Pair::check)
    }

    /// One rank enqueues another operation than the others: that channel fails on all, the graphs go on beside it, and after
    /// a reset so does the channel.
    pub fn fail_and_reset(&mut self) -> Result<()> {
        let target = &mut self.target;
        target.graphs[0].layers.supply(&mut self.number)?;
        target.graphs[1].layers.supply(&mut self.number)?;
        target.prefill.supply(&mut self.number)?;
        self.member.meet();
        let strange = match self.member.rank() {
            0 => &target.graphs[0].layers,
            _ => &target.prefill,
        };
        strange.enqueue_first(&target.eager, &target.stream)?;
        target.replay(1)?;
        self.rest()?;
        let target = &mut self.target;
        target.graphs[1].layers.check()?;
        let faults = target.pool.faults()?;
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!(faults[0].channel, target.eager.name());
        // Who comes when it has been noticed does nothing, or hears of it.
        let cause = faults[0].cause.map_or(0, |cause| cause as u32);
        let mismatch = Cause::TagMismatch as u32;
        let told = [mismatch, Cause::PeerFailed as u32, Cause::Skipped as u32];
        assert!(told.contains(&cause), "{}", faults[0]);
        let until = Instant::now() + self.member.group.timeout();
        let causes = self
            .member
            .bootstrap
            .all_gather(&cause.to_le_bytes(), until)?;
        assert!(
            causes.contains(&mismatch.to_le_bytes().to_vec()),
            "{causes:?}"
        );
        let refused = target.prefill.enqueue(&target.eager, &target.stream);
        assert!(matches!(refused, Err(Error::Fault(_))), "{refused:?}");
        target.pool.reset()?;
        target.has_moved()?;
        assert_eq!(target.pool.faults()?, []);
        assert_eq!(target.pool.health()?, Health::Healthy);
        self.member.meet();
        Ok(())
    }

    /// The pairs close while the models go on.
    pub fn part(&mut self) -> Result<()> {
        self.pair.take().map_or(Ok(()), Pair::close)?;
        self.member.meet();
        Ok(())
    }
}
