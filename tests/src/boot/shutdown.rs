//! The engine's end.

use slabfence::group::Rank;
use slabfence::health::Health;
use slabfence::{Error, Result};

use super::engine::Engine;
use super::model::{BATCHES, Captured, Model};

impl Engine {
    /// Closes in the wrong order, and differently on odd ranks.
    pub fn shut_down(mut self) -> Result<()> {
        let (rank, world) = (self.member.rank(), self.member.group.world());
        let odd = self.is_odd();
        for model in self.models() {
            model.check_eager()?;
            assert_eq!(model.pool.health()?, Health::Healthy);
        }
        // The draft's pool while all of its graphs live, then while some do.
        let close = |engine: &Self| engine.draft.as_ref().map_or(Ok(()), |d| d.pool.close());
        refused(close(&self), (0..world).collect());
        self.step()?;
        let draft = self.draft.take().expect("closed once");
        let Model {
            pool,
            stream,
            mut graphs,
            ..
        } = draft;
        if !odd {
            destroy(&mut graphs, odd);
        }
        refused(
            pool.close(),
            (0..world).filter(|rank| rank % 2 == 1).collect(),
        );
        drop(stream);
        destroy(&mut graphs, odd);
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
            mut graphs,
            ..
        } = target;
        // Group and bootstrap go before the pool that uses them, and on odd ranks the streams before the graphs.
        drop(member);
        let mut streams = Some([stream, side]);
        if odd {
            streams = None;
        }
        if rank != world - 1 {
            destroy(&mut graphs, odd);
        }
        refused(pool.close(), vec![world - 1]);
        destroy(&mut graphs, odd);
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
    let Err(Error::Busy { holders: told, .. }) = closed else {
        panic!("{closed:?}");
    };
    let ranks: Vec<Rank> = told.iter().map(|(rank, _)| *rank).collect();
    assert_eq!(ranks, holders.into_iter().map(Rank).collect::<Vec<_>>());
}

/// Destroys all of these graphs.
fn destroy(graphs: &mut Vec<Captured>, instance_first: bool) {
    for captured in graphs.drain(..) {
        captured.destroy(instance_first);
    }
}
