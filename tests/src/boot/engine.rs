//! The engine of one rank: a target and a draft model, and a pair of ranks between them.

use std::time::Duration;

use slabfence::driver::Stream;
use slabfence::group::Rank;
use slabfence::health::Health;
use slabfence::layout::{Cause, DType, Transport};
use slabfence::{Error, Result};

use crate::late::hold;
use crate::ranks::Member;

use super::Boot;
use super::model::{BATCHES, Captured, Layers, Model, Size};
use super::pair::Pair;

/// How long a rank sleeps on a stream while the others go on.
const SLEEP: Duration = Duration::from_millis(3);
/// A batch that no graph has.
const PREFILL: u32 = 37;

/// One rank of the engine.
#[derive(Debug)]
pub(super) struct Engine {
    member: Member,
    target: Model,
    /// Until it is closed.
    draft: Option<Model>,
    pair: Option<Pair>,
    /// A second stream for eager operations, such as of a worker that prefills.
    side: Stream,
    /// Operations that have had an input, on all ranks alike.
    number: u32,
    steps: u32,
}

impl Engine {
    /// Forms groups and creates pools.
    pub fn start(boot: &Boot, member: Member) -> Result<Self> {
        let target = Size {
            name: "target",
            heads: 2,
            query_dim: 48,
            value_dim: 32,
            dtype: DType::Bf16,
            layers: 2,
            transport: boot.transport,
            oversubscribe: boot.oversubscribe,
        };
        let draft = Size {
            name: "draft",
            heads: 1,
            query_dim: 24,
            value_dim: 16,
            dtype: DType::F16,
            layers: 1,
            transport: match boot.transport {
                Transport::Push => Transport::Pull,
                _ => Transport::Push,
            },
            ..target
        };
        let engine = Self {
            target: Model::new(&member, target, PREFILL)?,
            draft: Some(Model::new(&member, draft, PREFILL)?),
            pair: Some(Pair::form(boot, &member)?),
            side: Stream::new(&member.device)?,
            number: 0,
            steps: 0,
            member,
        };
        engine.member.meet();
        Ok(engine)
    }

    fn is_odd(&self) -> bool {
        self.member.rank() % 2 == 1
    }

    /// Waits for what all ranks have enqueued.
    fn rest(&self) -> Result<()> {
        let pair = self.pair.iter().map(|pair| &pair.stream);
        let draft = self.draft.iter().map(|draft| &draft.stream);
        let streams = pair.chain(draft).chain([&self.target.stream, &self.side]);
        streams.into_iter().try_for_each(Stream::synchronize)?;
        self.member.meet();
        Ok(())
    }

    fn models(&mut self) -> impl Iterator<Item = &mut Model> {
        [Some(&mut self.target), self.draft.as_mut()]
            .into_iter()
            .flatten()
    }

    /// Eager operations before any capture.
    pub fn warm_up(&mut self) -> Result<()> {
        for _ in 0..3 {
            let mut number = self.number;
            for model in self.models() {
                model.prefill.supply(&mut number)?;
            }
            self.number = number;
            self.member.meet();
            self.models().try_for_each(Model::enqueue_eager)?;
            self.rest()?;
            self.models().try_for_each(|model| model.prefill.check())?;
        }
        self.models().try_for_each(|model| model.check_eager())
    }

    /// A capture that only measures: its channel, its graph and its replays are thrown away. Its warm-up runs inside the scope
    /// while the eager channel is busy on another stream, so it must not go there.
    pub fn profile(&mut self) -> Result<()> {
        const CHANNEL: &str = "target:profile";
        let (member, target) = (&self.member, &mut self.target);
        let before = target.pool.checkpoint()?;
        target.pool.prepare(&[CHANNEL])?;
        let stale = target.pool.channel(CHANNEL)?;
        let size = target.size;
        let mut layers = Layers::new(member, &size, BATCHES[0], size.layers)?;
        layers.supply(&mut self.number)?;
        target.prefill.supply(&mut self.number)?;
        member.meet();
        if member.rank() == 0 {
            hold(&self.side, SLEEP);
        }
        target.enqueue_prefill(&self.side)?;
        let side = &self.side;
        let mut profiled = target.capture_into(layers, CHANNEL, CHANNEL, |target, layers| {
            let aside = target.prefill.enqueue(&target.eager, side);
            assert!(matches!(aside, Err(Error::Refused { .. })), "{aside:?}");
            layers.enqueue(&target.eager, &target.stream)?;
            for stream in [side, &target.stream] {
                stream.synchronize()?;
            }
            member.meet();
            layers.check()
        })?;
        target.prefill.check()?;
        target.check_eager()?;
        for _ in 0..2 {
            profiled.layers.supply(&mut self.number)?;
            member.meet();
            profiled.exec.launch(&target.stream)?;
            target.stream.synchronize()?;
            member.meet();
            profiled.layers.check()?;
        }
        let busy = target.pool.rollback(&before);
        assert!(matches!(busy, Err(Error::Busy { .. })), "{busy:?}");
        destroy(profiled, self.member.rank() % 2 == 1);
        target.pool.rollback(&before)?;
        let gone = target.prefill.enqueue(&stale, &target.stream);
        assert!(matches!(gone, Err(Error::Refused { .. })), "{gone:?}");
        target.check_eager()
    }

    /// The graphs. The target's are captured in one order, each after a warm-up in its scope; the draft's without, and on odd
    /// ranks in the opposite order.
    pub fn capture(&mut self) -> Result<()> {
        let member = &self.member;
        self.target.prepare()?;
        self.draft.iter().try_for_each(Model::prepare)?;
        for batch in BATCHES {
            let mut layers =
                Layers::new(member, &self.target.size, batch, self.target.size.layers)?;
            layers.supply(&mut self.number)?;
            // Who still allocates would wait for the warm-ups of ranks that share its device.
            member.meet();
            let captured = self.target.capture(layers, batch, |target, layers| {
                layers.enqueue(&target.eager, &target.stream)?;
                target.stream.synchronize()?;
                member.meet();
                layers.check()
            })?;
            self.target.graphs.push(captured);
        }
        self.target.check_eager()?;
        let odd = self.is_odd();
        let Some(draft) = &mut self.draft else {
            return Ok(());
        };
        let mut order = BATCHES;
        if odd {
            order.reverse();
        }
        for batch in order {
            let layers = Layers::new(&self.member, &draft.size, batch, draft.size.layers)?;
            let captured = draft.capture(layers, batch, |_, _| Ok(()))?;
            draft.graphs.push(captured);
        }
        if odd {
            draft.graphs.reverse();
        }
        draft.check_eager()?;
        self.member.meet();
        Ok(())
    }

    /// Replays of several batches with eager operations between, the draft's beside the target's, and the pair's. No host
    /// comes between them, and nothing orders the three streams.
    pub fn step(&mut self) -> Result<()> {
        let (rank, world) = (self.member.rank(), self.member.group.world());
        let step = self.steps;
        self.steps += 1;
        let at = |n: u32| n as usize % BATCHES.len();
        // Never the same: an output has one operation.
        let replays = [at(step), at(step + 1 + step / 8 % 7)];
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
            hold(&self.target.stream, SLEEP);
        }
        if let Some(draft) = &self.draft
            && step / 2 % world == rank
        {
            hold(&draft.stream, SLEEP);
        }
        let draft_is_first = (rank + step) % 2 == 1;
        if draft_is_first && let Some(draft) = &mut self.draft {
            draft.run(drafts)?;
        }
        self.target.run(replays)?;
        if let Some(pair) = &self.pair {
            pair.enqueue()?;
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
        let cause = faults[0].cause;
        let told = [Some(Cause::TagMismatch), Some(Cause::PeerFailed)];
        assert!(told.contains(&cause), "{}", faults[0]);
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

    /// Closes in the wrong order, and differently on odd ranks.
    pub fn shut_down(mut self) -> Result<()> {
        let (rank, world) = (self.member.rank(), self.member.group.world());
        let odd = self.is_odd();
        for model in [Some(&self.target), self.draft.as_ref()]
            .into_iter()
            .flatten()
        {
            model.check_eager()?;
            assert_eq!(model.pool.health()?, Health::Healthy);
        }
        // The draft's pool while all of its graphs live, then while some do.
        let close = |engine: &Self| engine.draft.as_ref().map_or(Ok(()), |d| d.pool.close());
        refused(close(&self), (0..world).collect());
        self.step()?;
        let Some(mut draft) = self.draft.take() else {
            return Ok(());
        };
        let graphs: Vec<Captured> = draft.graphs.drain(..).collect();
        let live = if odd {
            graphs
        } else {
            destroy_all(graphs, odd)
        };
        refused(
            draft.pool.close(),
            (0..world).filter(|rank| rank % 2 == 1).collect(),
        );
        let Model { pool, stream, .. } = draft;
        drop(stream);
        destroy_all(live, odd);
        pool.close()?;
        self.member.meet();
        // What the draft's peers gave back is not the target's.
        for _ in 0..BATCHES.len() {
            self.step()?;
        }
        let Self {
            member,
            target,
            side,
            ..
        } = self;
        let Model {
            pool,
            eager,
            stream,
            graphs,
            ..
        } = target;
        // Group and bootstrap go before the pool that uses them, and on odd ranks the streams before the graphs.
        drop(member);
        let mut streams = Some([stream, side]);
        if odd {
            streams = None;
        }
        let last = rank == world - 1;
        let live = if last {
            graphs
        } else {
            destroy_all(graphs, odd)
        };
        refused(pool.close(), vec![world - 1]);
        destroy_all(live, odd);
        drop(streams);
        pool.close()?;
        // Nothing is left to do.
        pool.close()?;
        let told = eager.fault();
        assert!(matches!(told, Err(Error::Closed { .. })), "{told:?}");
        Ok(())
    }
}

/// Holds that a close was refused for what these ranks still have.
fn refused(closed: Result<()>, holders: Vec<u32>) {
    let Err(Error::Setup { phase, failures }) = closed else {
        panic!("{closed:?}");
    };
    assert_eq!(phase, "close: graphs");
    let ranks: Vec<Rank> = failures.iter().map(|(rank, _)| *rank).collect();
    assert_eq!(ranks, holders.into_iter().map(Rank).collect::<Vec<_>>());
}

/// A graph, its instance and its buffers, in either order.
fn destroy(captured: Captured, instance_first: bool) {
    let Captured {
        layers,
        exec,
        graph,
    } = captured;
    if instance_first {
        drop(exec);
        drop((graph, layers));
    } else {
        drop((layers, graph));
        drop(exec);
    }
}

/// [`destroy`] all; nothing of them lives.
fn destroy_all(graphs: Vec<Captured>, instance_first: bool) -> Vec<Captured> {
    graphs
        .into_iter()
        .for_each(|captured| destroy(captured, instance_first));
    Vec::new()
}
