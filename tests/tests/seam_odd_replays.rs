//! Graphs with an odd number of operations, replayed often. A slot that the host had chosen would be frozen in the graph's
//! nodes: the last operation of a replay and the first of the next would share it, and a rank that still reads would find
//! the next operation's bytes.

use std::sync::Barrier;
use std::time::Duration;

use slabfence::channel::Contract;
use slabfence::driver::Stream;
use slabfence::health::Health;
use slabfence::layout::{DType, Transport};
use slabfence_emu_mutants::mutation;
use slabfence_tests::graphs::capture;
use slabfence_tests::late::{FAIL, hold, on_ranks};
use slabfence_tests::probe::machine;
use slabfence_tests::rounds::Rounds;
use slabfence_tests::seams::Program;
use slabfence_tests::shape::Shape;

const REPLAYS: u32 = 1025;
/// Seeds within which outputs must be wrong.
const SEEDS: u64 = 20;

/// What comes between two replays.
#[derive(Clone, Copy, PartialEq)]
enum Between {
    Nothing,
    /// An operation on another channel, as a runtime has a tensor-parallel reduction there.
    Collective,
    /// The hosts of all ranks wait for their streams and for one another, every 16 replays.
    Hosts,
}

fn contract(world: u32, transport: Transport) -> Contract {
    Contract {
        transport,
        fail: FAIL,
        ..Contract::new(world, 16, 16, 4)
    }
}

/// Every replay's inputs are new, and every replay's outputs are checked; rank 1 is late now and then.
fn replays(world: u32, transport: Transport, shapes: &[Shape], between: Between) {
    let (machine, driver) = machine(world);
    let contract = contract(world, transport);
    let hosts = Barrier::new(world as usize);
    on_ranks(&driver, world, |member| {
        let pool = member.pool(&contract).unwrap();
        pool.prepare(&["graph", "other"]).unwrap();
        let other = pool.channel("other").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let rounds = Rounds::new(member, shapes, REPLAYS).unwrap();
        let rendezvous = Rounds::new(member, &[Shape::gather(DType::U8, 1, 1, 16)], REPLAYS);
        let rendezvous = rendezvous.unwrap();
        let graph = capture(&pool, &stream, "graph", |channel| {
            for exchange in &rounds.exchanges {
                exchange.enqueue(channel, &stream).unwrap();
            }
        });
        let mut exec = graph.instantiate().unwrap();
        for replay in 0..REPLAYS {
            for index in 0..shapes.len() {
                rounds.supply(replay, index, &stream).unwrap();
            }
            if member.rank() == 1 && replay % 32 == 7 {
                hold(&stream, Duration::from_millis(2));
            }
            exec.launch(&stream).unwrap();
            for index in 0..shapes.len() {
                rounds.collect(replay, index, &stream).unwrap();
            }
            match between {
                Between::Collective => {
                    rendezvous.supply(replay, 0, &stream).unwrap();
                    rendezvous.exchanges[0].enqueue(&other, &stream).unwrap();
                    rendezvous.collect(replay, 0, &stream).unwrap();
                }
                Between::Hosts if replay % 16 == 0 => {
                    stream.synchronize().unwrap();
                    hosts.wait();
                }
                Between::Hosts | Between::Nothing => {}
            }
        }
        stream.synchronize().unwrap();
        assert_eq!(pool.health().unwrap(), Health::Healthy);
        assert_eq!(pool.faults().unwrap(), []);
        assert_eq!(rounds.check().unwrap(), REPLAYS as usize * shapes.len());
        rendezvous.check().unwrap();
        drop((exec, graph));
        pool.close().unwrap();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}

const ONE: [Shape; 1] = [Shape::gather(DType::Bf16, 3, 1, 16)];
const THREE: [Shape; 3] = [
    Shape::gather(DType::Bf16, 2, 1, 16),
    Shape::reduce(DType::Bf16, 3, 1, 16),
    Shape::gather(DType::Bf16, 1, 1, 16),
];

#[test]
fn a_graph_of_one_push_is_right_at_every_one_of_1025_replays() {
    replays(3, Transport::Push, &ONE, Between::Nothing);
}

#[test]
fn a_graph_of_one_pull_is_right_with_another_collective_between_replays() {
    replays(3, Transport::Pull, &ONE, Between::Collective);
}

#[test]
fn a_graph_of_three_pulls_is_right_at_every_one_of_1025_replays() {
    replays(3, Transport::Pull, &THREE, Between::Nothing);
}

#[test]
fn a_graph_of_three_pushes_is_right_with_a_rendezvous_of_the_hosts_between_replays() {
    replays(3, Transport::Push, &THREE, Between::Hosts);
}

/// Graphs as above on a held machine: its runs end where the hosts meet.
fn program(transport: Transport, shapes: &'static [Shape], stretches: u32) -> Program<'static> {
    Program {
        world: 3,
        contract: contract(3, transport),
        shapes,
        rounds: 4,
        replays: true,
        stretches,
    }
}

#[test]
fn graphs_are_right_where_ranks_read_slowly_and_wrong_if_rows_are_always_in_one_slot() {
    let mutation = mutation("slot-frozen").expect("a known bug");
    for (transport, shapes, stretches) in [
        (Transport::Push, &ONE[..], 1),
        (Transport::Pull, &ONE[..], 1),
        (Transport::Pull, &THREE[..], 1),
        (Transport::Push, &THREE[..], 3),
    ] {
        let program = program(transport, shapes, stretches);
        let bad = program.explore(None, 0..4);
        assert!(bad.is_none(), "{program:?}: {bad:?}");
        let bad = program.explore(Some(mutation), 0..SEEDS);
        let wrong = bad.and_then(|bad| bad.wrong);
        assert!(wrong.is_some(), "{program:?} does not see it");
    }
}
