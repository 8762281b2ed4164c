//! One rank of a scenario: a pool of two channels, what runs on them, and what the rank looks at.
//!
//! Ranks may share a device. There copies, allocations and frees of one stand behind an operation of another that waits, and
//! so may what is used first: the ranks meet between those and the operations, and use everything once beforehand.

mod looks;

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use slabfence::Result;
use slabfence::channel::{Channel, Contract, Pool};
use slabfence::driver::{GraphExec, PinnedBuffer, Stream};
use slabfence::layout::{DType, Transport};

use crate::exchange::Exchange;
use crate::graphs::{capture, grids};
use crate::probe::Probe;
use crate::ranks::Member;
use crate::shape::Shape;

/// A wait that no scenario means to be so long fails the operation, so that a bug does not hang.
pub(super) const LONG: Duration = Duration::from_secs(15);
/// What must happen, and waits for no rank that stays away, happens in this time.
pub(super) const SOON: Duration = Duration::from_secs(10);

/// The channel in which things go wrong: it has eager operations and a graph.
pub(super) const DECODE: &str = "decode";
/// The channel of another graph, which goes on.
const OTHER: &str = "other";

const HEADS: u32 = 2;
const DIM: u32 = 256;
const MAX_BATCH: u32 = 8;

/// Waits until `what` holds.
pub(super) fn soon(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < SOON, "not {what} after {SOON:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// What a rank runs on [`DECODE`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Work {
    /// One operation, a gather.
    Eager,
    /// The graph: a gather, a reduce-scatter, and a copy of the verdict.
    Replay,
    /// Another executable of that graph.
    Again,
}

/// The limits and the way of a scenario, the same on all ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub transport: Transport,
    pub warn: Duration,
    pub fail: Duration,
}

impl Terms {
    /// Of a scenario in which no wait may come to its end by a limit.
    pub fn patient(transport: Transport) -> Self {
        Self {
            transport,
            warn: Duration::ZERO,
            fail: LONG,
        }
    }
}

/// An executable graph with its buffers.
#[derive(Debug)]
struct Captured {
    exchanges: Vec<Exchange>,
    exec: GraphExec,
}

/// One rank.
pub(super) struct Seat<'a> {
    pub member: &'a Member,
    pub pool: Pool,
    pub channel: Channel,
    terms: Terms,
    /// Its stream is the rank's main one.
    probe: Probe,
    side: Stream,
    eager: Exchange,
    graph: Captured,
    again: GraphExec,
    other: Captured,
    /// The verdict as a look finds it, and as the graph has copied it.
    words: PinnedBuffer,
    /// Number of the first operation of what was supplied last; no two operations have the same.
    number: u32,
}

/// Whose words these are, in a panic.
impl fmt::Debug for Seat<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {:?}", self.member.group.me(), self.terms)
    }
}

impl<'a> Seat<'a> {
    /// Sets everything up and uses it once on both streams. The graph of [`DECODE`] is older than any fault.
    pub fn new(member: &'a Member, terms: Terms) -> Self {
        let world = member.group.world();
        let devices = member.device.driver().devices().unwrap().len() as u32;
        let contract = Contract {
            max_channels: 2,
            // Both operations of an overlap, and those of all ranks that share the device, have to be resident.
            max_grid: 4,
            concurrent_operations: 2,
            warn: terms.warn,
            fail: terms.fail,
            transport: terms.transport,
            oversubscribe: devices < world,
            ..Contract::new(HEADS * world, DIM, DIM, MAX_BATCH)
        };
        let pool = member.pool(&contract).unwrap();
        pool.prepare(&[DECODE, OTHER]).unwrap();
        let probe = Probe::new(&member.device).unwrap();
        let words = PinnedBuffer::new(&member.device, 16).unwrap();
        let gather = Shape::gather(DType::Bf16, 6, HEADS, DIM);
        let reduce = Shape::reduce(DType::Bf16, 6, HEADS, DIM);
        let exchange = |shape| Exchange::new(member, shape).unwrap();
        let (first, second) = (
            vec![exchange(gather), exchange(reduce)],
            vec![exchange(reduce), exchange(gather)],
        );
        // Nobody waits for a device on which another rank captures.
        member.meet();
        let graph = capture(&pool, &probe.stream, DECODE, |channel| {
            for exchange in &first {
                exchange.enqueue(channel, &probe.stream).unwrap();
            }
            let verdict = channel.verdict().unwrap().raw();
            let to = words.ptr().raw() + 8;
            probe.enqueue_copy(to, verdict).unwrap();
        });
        let other = capture(&pool, &probe.stream, OTHER, |channel| {
            for exchange in &second {
                exchange.enqueue(channel, &probe.stream).unwrap();
            }
        });
        // What fails is filled by more than one CTA.
        assert!(grids(&graph)[..2].iter().all(|&grid| grid > 1));
        member.meet();
        let mut seat = Self {
            channel: pool.channel(DECODE).unwrap(),
            side: Stream::new(&member.device).unwrap(),
            eager: exchange(Shape::gather(DType::Bf16, 2, HEADS, DIM)),
            again: graph.instantiate().unwrap(),
            graph: Captured {
                exec: graph.instantiate().unwrap(),
                exchanges: first,
            },
            other: Captured {
                exec: other.instantiate().unwrap(),
                exchanges: second,
            },
            terms,
            member,
            pool,
            probe,
            words,
            number: 0,
        };
        for exec in [&mut seat.graph.exec, &mut seat.again, &mut seat.other.exec] {
            exec.upload(&seat.probe.stream).unwrap();
        }
        for stream in [&seat.probe.stream, &seat.side] {
            seat.probe.enqueue_pause(stream, Duration::ZERO).unwrap();
        }
        seat.rest();
        seat.right();
        seat.supply();
        seat.start_beside(Work::Again).unwrap();
        seat.rest();
        seat.start_beside(Work::Eager).unwrap();
        seat.rest();
        seat.check_right(Work::Again);
        seat.check_right(Work::Eager);
        assert_eq!((seat.verdict(), seat.copied()), (0, 0));
        assert_eq!(seat.status().running, Some(false));
        seat
    }

    /// This rank as a number.
    pub fn rank(&self) -> u32 {
        self.member.rank()
    }

    fn numbered(&self) -> impl Iterator<Item = (u32, &Exchange)> {
        let exchanges = [&self.eager].into_iter();
        let graphs = self.graph.exchanges.iter().chain(&self.other.exchanges);
        (self.number..).zip(exchanges.chain(graphs))
    }

    /// Writes new inputs, clears all outputs, and meets the others: operations may follow.
    pub fn supply(&mut self) {
        self.number += self.numbered().count() as u32;
        for (operation, exchange) in self.numbered() {
            exchange.supply(operation).unwrap();
        }
        self.words.store(8, u64::MAX).unwrap();
        self.member.meet();
    }

    /// Enqueues an eager operation on the main stream.
    pub fn start_eager(&self) -> Result<()> {
        self.eager.enqueue(&self.channel, &self.probe.stream)
    }

    /// Enqueues on the main stream.
    pub fn start(&mut self, work: Work) -> Result<()> {
        let stream = &self.probe.stream;
        match work {
            Work::Eager => self.start_eager(),
            Work::Replay => self.graph.exec.launch(stream),
            Work::Again => self.again.launch(stream),
        }
    }

    /// Enqueues on the side stream, which nothing orders with the main one.
    pub fn start_beside(&mut self, work: Work) -> Result<()> {
        match work {
            Work::Eager => self.eager.enqueue(&self.channel, &self.side),
            Work::Replay => self.graph.exec.launch(&self.side),
            Work::Again => self.again.launch(&self.side),
        }
    }

    /// Whether nothing of this rank runs.
    pub fn is_at_rest(&self) -> bool {
        let streams = [&self.probe.stream, &self.side];
        streams.iter().all(|stream| stream.query().unwrap())
    }

    /// Waits until nothing of this rank runs.
    pub fn rest(&self) {
        soon("at rest", || self.is_at_rest());
    }

    /// One replay on [`OTHER`] alone, right whatever has become of [`DECODE`].
    pub fn other_goes_on(&mut self) {
        self.supply();
        self.other.exec.launch(&self.probe.stream).unwrap();
        self.rest();
        let exchanges = self.numbered().skip(1 + self.graph.exchanges.len());
        for (operation, exchange) in exchanges {
            exchange.check(operation, &exchange.read().unwrap());
        }
    }

    /// An eager operation and a replay of either graph, right.
    pub fn right(&mut self) {
        self.supply();
        self.start(Work::Eager).unwrap();
        self.start(Work::Replay).unwrap();
        self.other.exec.launch(&self.probe.stream).unwrap();
        self.rest();
        // A report says more than a wrong output.
        assert_eq!(self.pool.faults().unwrap(), []);
        for (operation, exchange) in self.numbered() {
            exchange.check(operation, &exchange.read().unwrap());
        }
        assert_eq!(self.copied(), 0, "{self:?}");
    }

    /// Destroys the graphs and closes the pool.
    pub fn close(self) {
        let Self {
            pool,
            graph,
            again,
            other,
            ..
        } = self;
        drop((again, graph, other));
        pool.close().unwrap();
    }
}
