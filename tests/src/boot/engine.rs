//! The engine of one rank: a target and a draft model, and a pair of ranks between them.

use std::time::Duration;

use slabfence::Result;
use slabfence::driver::Stream;
use slabfence::layout::{DType, Transport};

use crate::ranks::Member;

use super::Boot;
use super::model::{Model, Size};
use super::pair::Pair;

/// How long a rank sleeps on a stream while the others go on.
pub(super) const SLEEP: Duration = Duration::from_millis(3);
/// A batch that no graph has.
const PREFILL: u32 = 37;

/// One rank of the engine.
#[derive(Debug)]
pub(super) struct Engine {
    pub member: Member,
    pub target: Model,
    /// Until it is closed.
    pub draft: Option<Model>,
    pub pair: Option<Pair>,
    /// For eager operations beside the models', such as of a worker that prefills, and for the pair's.
    pub side: Stream,
    /// Operations that have had an input, on all ranks alike.
    pub number: u32,
    pub steps: u32,
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
        // Before all others, and no more than needed: a real device has at most 32 queues and gives them to streams in turn.
        // Streams of one queue wait for each other; these must not, and eight ranks may share a device.
        member.meet();
        let stream = || Stream::new(&member.device);
        let (stream, drafts, side) = (stream()?, stream()?, stream()?);
        member.meet();
        let engine = Self {
            target: Model::new(&member, target, PREFILL, stream)?,
            draft: Some(Model::new(&member, draft, PREFILL, drafts)?),
            pair: Some(Pair::form(boot, &member)?),
            side,
            number: 0,
            steps: 0,
            member,
        };
        // What is used first beside an operation that waits may have to wait for it: kernels and streams too.
        let streams = [&engine.target.stream, &engine.side];
        let drafts = engine.draft.iter().map(|draft| &draft.stream);
        for stream in drafts.chain(streams) {
            for model in engine.draft.iter().chain([&engine.target]) {
                model.hold(stream, Duration::ZERO)?;
            }
            stream.synchronize()?;
        }
        engine.member.meet();
        Ok(engine)
    }

    pub(super) fn is_odd(&self) -> bool {
        self.member.rank() % 2 == 1
    }

    /// Waits for what all ranks have enqueued.
    pub(super) fn rest(&self) -> Result<()> {
        let draft = self.draft.iter().map(|draft| &draft.stream);
        let mut streams = draft.chain([&self.target.stream, &self.side]);
        streams.try_for_each(Stream::synchronize)?;
        self.member.meet();
        Ok(())
    }

    /// Those that are still open.
    pub(super) fn models(&mut self) -> impl Iterator<Item = &mut Model> {
        [Some(&mut self.target), self.draft.as_mut()]
            .into_iter()
            .flatten()
    }
}
