//! Graphs in the rounds, and what is left to do where the driver has not destroyed one.

use std::fmt;

use slabfence::Error;
use slabfence::channel::Pool;
use slabfence::driver::{Graph, GraphExec, Stream, drop_released};
use slabfence::group::Rank;

use super::Seat;
use crate::graphs::capture;
use crate::injection::Point;
use crate::ranks::Gather;

/// A graph of one operation on a channel.
pub struct Captured {
    /// Its executable.
    pub executable: GraphExec,
    /// The graph.
    pub graph: Graph,
    stream: Stream,
    gather: Gather,
}

impl fmt::Debug for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Captured").field(&self.graph).finish()
    }
}

impl Captured {
    /// Captures an operation on the channel of this name.
    ///
    /// # Panics
    ///
    /// When that does not succeed.
    pub fn new(seat: &Seat<'_>, pool: &Pool, channel: &str) -> Self {
        let member = seat.member;
        let stream = Stream::new(&member.device).expect("a stream");
        let gather = Gather::new(member, &seat.contract, 1).expect("buffers");
        let graph = capture(pool, &stream, channel, |channel| {
            gather.enqueue(channel, &stream).expect("recorded");
        });
        Self {
            executable: graph.instantiate().expect("an executable"),
            graph,
            stream,
            gather,
        }
    }

    /// Replays it on all ranks, and finds the operation right.
    ///
    /// # Panics
    ///
    /// When it is not.
    pub fn replay(&mut self, seat: &Seat<'_>, round: u32) {
        let Self { stream, gather, .. } = self;
        gather.fill(seat.member.rank(), round).expect("an upload");
        seat.meet("");
        self.executable.launch(stream).expect("a replay");
        stream.synchronize().expect("its end");
        assert!(gather.output().expect("an output") == gather.expected(round));
    }

    /// Destroys it, and lets what it has held go.
    pub fn destroy(self) {
        drop(self);
        drop_released();
    }
}

impl Seat<'_> {
    /// Ends a pool of which `channel` is held for good on one rank, by what `point` has left there: `refused` is what a
    /// collective call that takes the channel away gave.
    ///
    /// # Panics
    ///
    /// When a rank tells something else, or keeps too little or too much.
    pub fn give_up(
        &self,
        point: Point,
        pool: &Pool,
        channel: &str,
        refused: slabfence::Result<()>,
    ) {
        let Err(Error::Busy { holders, .. }) = refused else {
            panic!("{refused:?} after {point}");
        };
        let [(rank, words)] = &holders[..] else {
            panic!("{holders:?} after {point}");
        };
        let held = format!("1 graph(s) hold channel '{channel}'");
        let said = words.contains(&held) && words.contains("Pool::abandon ends the pool");
        assert!(*rank == Rank(point.rank) && said, "{holders:?}");
        // It is as it was.
        self.operate(pool, channel);
        self.meet("");
        let kept = pool.abandon().expect("abandoned").kept;
        let all = self.meet(&kept.to_string()).into_iter();
        let all: Vec<u64> = all.map(|kept| kept.parse().expect("a number")).collect();
        let others = (0..).zip(&all).filter(|(rank, _)| *rank != point.rank);
        let more = others.map(|(_, kept)| 0 < *kept && *kept < all[point.rank as usize]);
        assert!(more.min() == Some(true), "{all:?} after {point}");
        pool.close().expect("nothing is left to close");
    }
}
