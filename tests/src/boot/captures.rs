//! From the first eager operation to the last captured graph.

use slabfence::{Error, Result};

use super::engine::{Engine, SLEEP};
use super::model::{BATCHES, Layers, Model};

impl Engine {
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
            self.models().try_for_each(|model| model.check_prefill())?;
        }
        self.models().try_for_each(|model| model.check_eager())
    }

    /// A capture that only measures: its channel, its graph and its replays, if any, are thrown away. Its warm-up runs inside
    /// the scope while the eager channel is busy on another stream, so it must not go there.
    pub fn profile(&mut self, replays: u32) -> Result<()> {
        const CHANNEL: &str = "target:profile";
        let (member, target) = (&self.member, &mut self.target);
        let before = target.pool.checkpoint()?;
        target.pool.prepare(&[CHANNEL])?;
        let stale = target.pool.channel(CHANNEL)?;
        let mut layers = Layers::new(member, &target.size, BATCHES[0], 1)?;
        layers.supply(&mut self.number)?;
        target.prefill.supply(&mut self.number)?;
        member.meet();
        if member.rank() == 0 {
            target.hold(&self.side, SLEEP)?;
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
            target.check_healthy()?;
            layers.check()
        })?;
        target.check_prefill()?;
        target.check_eager()?;
        for _ in 0..replays {
            profiled.layers.supply(&mut self.number)?;
            member.meet();
            profiled.exec.launch(&target.stream)?;
            target.stream.synchronize()?;
            member.meet();
            profiled.layers.check()?;
        }
        // A rollback waits for the device, on which no rank may capture then.
        member.meet();
        let busy = target.pool.rollback(&before);
        assert!(matches!(busy, Err(Error::Busy { .. })), "{busy:?}");
        profiled.destroy(member.rank() % 2 == 1);
        target.pool.rollback(&before)?;
        let gone = target.prefill.enqueue(&stale, &target.stream);
        assert!(matches!(gone, Err(Error::Refused { .. })), "{gone:?}");
        target.check_eager()
    }

    /// The graphs. The target's are captured in one order, each after a warm-up in its scope; the draft's without, and on odd
    /// ranks in the opposite order.
    pub fn capture(&mut self) -> Result<()> {
        let member = &self.member;
        let (rank, world) = (member.rank(), member.group.world());
        self.target.prepare()?;
        self.draft.iter().try_for_each(Model::prepare)?;
        for (sleeper, batch) in (0..).zip(BATCHES) {
            let mut layers =
                Layers::new(member, &self.target.size, batch, self.target.size.layers)?;
            layers.supply(&mut self.number)?;
            // Who still allocates would wait for the warm-ups of ranks that share its device.
            member.meet();
            let captured = self.target.capture(layers, batch, |target, layers| {
                // What a trial has left where this channel is must not pass for the late rank's word.
                if sleeper % world == rank {
                    target.hold(&target.stream, SLEEP)?;
                }
                layers.enqueue(&target.eager, &target.stream)?;
                target.stream.synchronize()?;
                member.meet();
                target.check_healthy()?;
                layers.check()
            })?;
            self.target.graphs.push(captured);
        }
        self.target.check_eager()?;
        let odd = self.is_odd();
        let draft = self.draft.as_mut().expect("not closed yet");
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
}
