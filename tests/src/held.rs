//! Ranks whose work is enqueued on a held machine from one thread.

use std::mem::offset_of;
use std::ops::Range;
use std::thread;

use slabfence::channel::{Channel, Contract, Pool};
use slabfence::driver::{Driver, Graph, GraphExec, Stream};
use slabfence::health::Health;
use slabfence::layout::{Cause, Header, HealthHeader, LocalBlock, Transport};
use slabfence_emu::held::Looked;

use crate::graphs::{capture, local_block, parameter};
use crate::probe::Probe;
use crate::ranks::on_ranks;
use crate::rounds::Rounds;
use crate::shape::Shape;

/// One rank with a channel, a graph of all its collectives, and buffers for every round of them.
#[derive(Debug)]
pub struct Seat {
    /// The rank's pool.
    pub pool: Pool,
    channel: Channel,
    /// Where everything is enqueued.
    pub stream: Stream,
    /// Inputs and outputs.
    pub rounds: Rounds,
    graph: Graph,
    exec: GraphExec,
}

/// A contract for ranks of one head of 16 elements and up to 4 tokens.
pub fn contract(world: u32, transport: Transport) -> Contract {
    Contract {
        transport,
        ..Contract::new(world, 16, 16, 4)
    }
}

/// Sets up `world` ranks whose channel begins at epoch `epoch` (2 for a fresh one).
///
/// # Panics
///
/// When a rank cannot be set up: these are tests.
pub fn seats(
    driver: &Driver,
    world: u32,
    contract: &Contract,
    shapes: &[Shape],
    rounds: u32,
    epoch: u64,
) -> Vec<Seat> {
    seats_behind(driver, world, contract, shapes, rounds, epoch, || ())
}

/// [`seats`], with something that is done behind set-up, which tries the kernels itself, and before the graphs are captured.
///
/// # Panics
///
/// As [`seats`].
pub fn seats_behind(
    driver: &Driver,
    world: u32,
    contract: &Contract,
    shapes: &[Shape],
    rounds: u32,
    epoch: u64,
    before_capture: impl FnOnce(),
) -> Vec<Seat> {
    let ready = on_ranks(driver, world, |member| {
        let (pool, channel) = member.channel(contract, "decode").expect("a channel");
        let stream = Stream::new(&member.device).expect("a stream");
        let rounds = Rounds::new(member, shapes, rounds).expect("buffers");
        if epoch > 2 {
            pool.reset_above(epoch).expect("a reset");
        }
        (pool, channel, stream, rounds)
    });
    before_capture();
    let seat = |(pool, channel, stream, rounds): (Pool, Channel, Stream, Rounds)| {
        let graph = capture(&pool, &stream, "decode", |channel| {
            for exchange in &rounds.exchanges {
                exchange.enqueue(channel, &stream).expect("a captured call");
            }
        });
        Seat {
            exec: graph.instantiate().expect("an executable graph"),
            pool,
            channel,
            stream,
            rounds,
            graph,
        }
    };
    ready.into_iter().map(seat).collect()
}

impl Seat {
    /// Enqueues collective `index` of a round, with its input before it and the copy of its output behind.
    ///
    /// # Panics
    ///
    /// When the library or the driver refuses: these are tests.
    pub fn eager(&self, round: u32, index: usize) {
        let (rounds, stream) = (&self.rounds, &self.stream);
        rounds.supply(round, index, stream).expect("an input");
        let exchange = &rounds.exchanges[index];
        exchange.enqueue(&self.channel, stream).expect("a call");
        rounds.collect(round, index, stream).expect("an output");
    }

    /// Enqueues the graph of all collectives for a round.
    ///
    /// # Panics
    ///
    /// As [`eager`](Self::eager).
    pub fn replay(&mut self, round: u32) {
        let (rounds, stream) = (&self.rounds, &self.stream);
        for index in 0..rounds.exchanges.len() {
            rounds.supply(round, index, stream).expect("an input");
        }
        self.exec.launch(stream).expect("a launch");
        for index in 0..rounds.exchanges.len() {
            rounds.collect(round, index, stream).expect("an output");
        }
    }

    /// Where the channel counts the warps that have ended: only the guard against overlapping operations reads it.
    pub fn retired(&self) -> Range<u64> {
        let at = local_block(&self.graph) + offset_of!(LocalBlock, retired) as u64;
        at..at + 8
    }

    /// The cause that a kernel of the rank reported last.
    pub fn last_cause(&self, looked: &Looked<'_>) -> Option<Cause> {
        let at = parameter(&self.graph, offset_of!(Header, health_header));
        let mut code = [0; 4];
        let read = looked.read(at + offset_of!(HealthHeader, fault) as u64, &mut code);
        Cause::from_code(u32::from_le_bytes(code)).filter(|_| read)
    }

    /// Lets the channel's counters say that so many warps of earlier operations still run. Nothing of it may be running.
    ///
    /// # Panics
    ///
    /// When the device refuses: these are tests.
    pub fn say_that_warps_run(&self, warps: u64) {
        if warps == 0 {
            return;
        }
        let probe = Probe::new(self.stream.device()).expect("the probe's kernels");
        let at = self.retired().start;
        let retired = probe.peek(at).expect("a counter");
        let fewer = probe.poke(at, retired.wrapping_sub(warps));
        fewer.expect("a store to a counter");
    }

    /// What is wrong with the outputs that were collected so far, or with the channel's health.
    pub fn compare(&self) -> Result<(), String> {
        self.rounds.compare()?;
        let faults = self.pool.faults().map_err(|error| error.to_string())?;
        match self.pool.health() {
            Ok(Health::Healthy) if faults.is_empty() => Ok(()),
            health => Err(format!("health {health:?}, faults {faults:?}")),
        }
    }
}

/// Compares the outputs of all ranks.
pub fn compare(seats: &[Seat]) -> Result<(), String> {
    seats.iter().try_for_each(Seat::compare)
}

/// Resets the ranks' pools to epochs of at least `floor`, when all that was enqueued has ended.
///
/// # Panics
///
/// When a pool cannot be reset: these are tests.
pub fn reset_above(seats: &[Seat], floor: u64) {
    thread::scope(|scope| {
        for pool in seats.iter().map(|seat| &seat.pool) {
            scope.spawn(move || pool.reset_above(floor).expect("a reset"));
        }
    });
}

/// Closes the ranks' pools.
///
/// # Panics
///
/// When a pool cannot be closed: these are tests.
pub fn close(seats: Vec<Seat>) {
    thread::scope(|scope| {
        for seat in seats {
            scope.spawn(move || {
                drop((seat.exec, seat.graph));
                seat.pool.close().expect("a closed pool");
            });
        }
    });
}
