//! Epochs at the ends of 31, 32 and 55 bits. A signed counter would turn a slot index into −1 there, a signed comparison
//! would take old flags for new ones, and one of 32 bits would take the flags of 2^32 operations ago.

use std::mem::offset_of;
use std::time::Duration;

use slabfence::channel::{Channel, Contract, Pool};
use slabfence::driver::{Graph, GraphExec, Node, Param, Stream};
use slabfence::health::Health;
use slabfence::layout::{DType, GatherParams, Header, ReduceParams, Transport};
use slabfence_tests::graphs::{EpochCounter, capture};
use slabfence_tests::late::{FAIL, hold, on_ranks};
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::Member;
use slabfence_tests::rounds::Rounds;
use slabfence_tests::shape::Shape;

const SHAPES: [Shape; 3] = [
    Shape::gather(DType::F32, 1, 1, 8),
    Shape::reduce(DType::F32, 3, 1, 8),
    Shape::gather(DType::F32, 3, 1, 8),
];

fn contract(transport: Transport) -> Contract {
    Contract {
        transport,
        gather_element_bytes: 4,
        reduce_element_bytes: 4,
        fail: FAIL,
        ..Contract::new(3, 8, 8, 4)
    }
}

/// A rank with a graph of three operations that was captured at the first epoch.
struct Rank<'a> {
    member: &'a Member,
    pool: Pool,
    channel: Channel,
    stream: Stream,
    rounds: Rounds,
    graph: Graph,
    exec: GraphExec,
    counter: EpochCounter,
}

impl<'a> Rank<'a> {
    fn new(member: &'a Member, contract: &Contract, rounds: u32) -> Self {
        let (pool, channel) = member.channel(contract, "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let rounds = Rounds::new(member, &SHAPES, rounds).unwrap();
        let graph = capture(&pool, &stream, "decode", |channel| {
            for exchange in &rounds.exchanges {
                exchange.enqueue(channel, &stream).unwrap();
            }
        });
        let counter = EpochCounter::of(&graph, &stream);
        assert_eq!(counter.read(), 2);
        Self {
            member,
            pool,
            channel,
            exec: graph.instantiate().unwrap(),
            stream,
            rounds,
            graph,
            counter,
        }
    }

    /// Rank 1 is late, so that the others look at its old flags.
    fn be_late(&self) {
        if self.member.rank() == 1 {
            hold(&self.stream, Duration::from_millis(5));
        }
    }

    /// One operation, called now.
    fn eager(&self, round: u32, index: usize) {
        self.rounds.supply(round, index, &self.stream).unwrap();
        self.be_late();
        let exchange = &self.rounds.exchanges[index];
        exchange.enqueue(&self.channel, &self.stream).unwrap();
        self.rounds.collect(round, index, &self.stream).unwrap();
    }

    /// The three operations of the graph.
    fn replay(&mut self, round: u32) {
        for index in 0..3 {
            self.rounds.supply(round, index, &self.stream).unwrap();
        }
        self.be_late();
        self.exec.launch(&self.stream).unwrap();
        for index in 0..3 {
            self.rounds.collect(round, index, &self.stream).unwrap();
        }
    }

    fn settle(&self, executions: usize) {
        self.stream.synchronize().unwrap();
        assert_eq!(self.pool.faults().unwrap(), []);
        assert_eq!(self.rounds.check().unwrap(), executions);
    }

    fn close(self) {
        assert_eq!(self.pool.health().unwrap(), Health::Healthy);
        drop((self.exec, self.graph));
        self.pool.close().unwrap();
    }
}

/// Eight operations from `floor` on: one eager, a replay of three, one eager, a replay of three.
fn cross(transport: Transport, floor: u64) {
    let (machine, driver) = machine(3);
    on_ranks(&driver, 3, |member| {
        let mut rank = Rank::new(member, &contract(transport), 5);
        rank.replay(0);
        rank.settle(3);
        rank.pool.reset_above(floor).unwrap();
        assert_eq!(rank.counter.read(), floor);
        rank.eager(1, 0);
        rank.replay(2);
        rank.eager(3, 1);
        rank.replay(4);
        rank.settle(8);
        assert_eq!(rank.counter.read(), floor + 8);
        rank.close();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn eight_operations_cross_the_end_of_31_bits() {
    cross(Transport::Push, (1 << 31) - 2);
    cross(Transport::Pull, (1 << 31) - 3);
}

#[test]
fn eight_operations_cross_the_end_of_32_bits() {
    cross(Transport::Push, (1 << 32) - 2);
    cross(Transport::Pull, (1 << 32) - 3);
}

#[test]
fn eight_operations_cross_the_end_of_55_bits() {
    cross(Transport::Push, (1 << 55) - 3);
    cross(Transport::Pull, 1 << 55);
}

/// The parameter blocks of a graph's operations.
fn blocks(graph: &Graph) -> Vec<Vec<u8>> {
    let nodes = graph.nodes().unwrap();
    let params = |node: &Node| node.kernel().unwrap().params.clone().unwrap();
    let blocks = nodes.iter().map(params);
    let one = |params: Vec<Param>| match <[Param; 1]>::try_from(params) {
        Ok([block]) => block.bytes,
        Err(several) => panic!("{several:?}"),
    };
    blocks.map(one).collect()
}

/// The graph of every operation twice, captured now in a scope of its own.
fn twice(rank: &Rank<'_>) -> Graph {
    capture(&rank.pool, &rank.stream, "decode", |channel| {
        for exchange in [(); 2].iter().flat_map(|()| &rank.rounds.exchanges) {
            exchange.enqueue(channel, &rank.stream).unwrap();
        }
    })
}

/// Whatever a kernel needs of slot, epoch and flags it reads from the device: the host hands it the same bytes each time.
fn unchanged_blocks(transport: Transport) {
    let (machine, driver) = machine(3);
    on_ranks(&driver, 3, |member| {
        let mut rank = Rank::new(member, &contract(transport), 4);
        let first = blocks(&twice(&rank));
        let sizes = first.iter().map(Vec::len);
        let (gather, reduce) = (size_of::<GatherParams>(), size_of::<ReduceParams>());
        assert!(sizes.eq([gather, reduce, gather, gather, reduce, gather]));
        // One operation, which makes the slot another, and four.
        rank.eager(0, 0);
        rank.settle(1);
        assert_eq!(rank.counter.read(), 3);
        assert!(blocks(&twice(&rank)) == first);
        rank.replay(1);
        rank.eager(2, 1);
        rank.settle(4);
        rank.pool.reset_above((1 << 32) + 1).unwrap();
        rank.eager(3, 2);
        rank.settle(1);
        assert_eq!(rank.counter.read(), (1 << 32) + 2);
        assert!(blocks(&twice(&rank)) == first);
        // In one capture the tag has the operation's place in it, so that ranks at different places find out.
        let tag = offset_of!(Header, tag)..offset_of!(Header, tag) + 8;
        for (one, other) in first[..3].iter().zip(&first[3..]) {
            assert_ne!(one[tag.clone()], other[tag.clone()]);
            assert!(one[..tag.start] == other[..tag.start] && one[tag.end..] == other[tag.end..]);
        }
        rank.close();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn the_same_call_hands_the_kernel_the_same_bytes_at_every_epoch() {
    unchanged_blocks(Transport::Push);
    unchanged_blocks(Transport::Pull);
}

/// The flags and entry lines of epochs 2 and 3 lie where those of `2^bits + 2` and `2^bits + 3` are waited for.
fn stale_flags(transport: Transport, bits: u32) {
    let (machine, driver) = machine(3);
    on_ranks(&driver, 3, |member| {
        let rank = Rank::new(member, &contract(transport), 4);
        for round in 0..2 {
            rank.eager(round, 0);
        }
        rank.settle(2);
        rank.pool.reset_above((1 << bits) + 2).unwrap();
        for round in 2..4 {
            rank.eager(round, 0);
        }
        rank.settle(2);
        assert_eq!(rank.counter.read(), (1 << bits) + 4);
        rank.close();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn flags_whose_low_bits_are_those_of_the_epoch_are_waited_past() {
    for bits in [16, 31, 32] {
        stale_flags(Transport::Push, bits);
    }
    stale_flags(Transport::Pull, 32);
}
