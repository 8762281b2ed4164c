//! One channel used by eager calls and by several graphs in any order, and what a graph records of an operation: one node.

use std::mem::offset_of;
use std::time::Duration;

use slabfence::channel::Contract;
use slabfence::driver::{Contents, Stream};
use slabfence::health::Health;
use slabfence::layout::{DType, GatherParams, ReduceParams, Transport};
use slabfence_tests::exchange::Exchange;
use slabfence_tests::graphs::capture;
use slabfence_tests::late::{FAIL, hold, on_ranks};
use slabfence_tests::probe::machine;
use slabfence_tests::rounds::Rounds;
use slabfence_tests::shape::Shape;

/// What one channel does next.
#[derive(Clone, Copy)]
enum Next {
    /// Operation `index`, called now.
    Eager(usize),
    /// A graph: of operation 0 alone, or of operations 1, 2 and 0.
    Replay(usize),
}
use Next::{Eager, Replay};

const SHAPES: [Shape; 3] = [
    Shape::gather(DType::F16, 3, 1, 16),
    Shape::reduce(DType::F16, 2, 1, 16),
    Shape::gather(DType::F16, 1, 1, 16),
];
/// Operations of the two graphs.
const GRAPHS: [&[usize]; 2] = [&[0], &[1, 2, 0]];

/// Queues all of `plan`, `times` times, without waiting; rank 1 is late before some of it.
fn mixed(transport: Transport, plan: &[Next], times: u32) {
    let (machine, driver) = machine(3);
    let contract = Contract {
        transport,
        fail: FAIL,
        ..Contract::new(3, 16, 16, 4)
    };
    on_ranks(&driver, 3, |member| {
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let rounds = plan.len() as u32 * times;
        let queue = Rounds::new(member, &SHAPES, rounds).unwrap();
        let graphs = GRAPHS.map(|operations| {
            capture(&pool, &stream, "decode", |channel| {
                for &index in operations {
                    queue.exchanges[index].enqueue(channel, &stream).unwrap();
                }
            })
        });
        let mut execs = graphs.each_ref().map(|graph| graph.instantiate().unwrap());
        let mut executions = 0;
        for (round, next) in (0..rounds).zip(plan.iter().cycle()) {
            let operations = match next {
                Eager(index) => core::slice::from_ref(index),
                Replay(graph) => GRAPHS[*graph],
            };
            for &index in operations {
                queue.supply(round, index, &stream).unwrap();
            }
            if member.rank() == 1 && round % 3 == 1 {
                hold(&stream, Duration::from_millis(2));
            }
            match *next {
                Eager(index) => queue.exchanges[index].enqueue(&channel, &stream).unwrap(),
                Replay(graph) => execs[graph].launch(&stream).unwrap(),
            }
            for &index in operations {
                queue.collect(round, index, &stream).unwrap();
            }
            executions += operations.len();
        }
        stream.synchronize().unwrap();
        assert_eq!(pool.health().unwrap(), Health::Healthy);
        assert_eq!(queue.check().unwrap(), executions);
        drop((execs, graphs));
        pool.close().unwrap();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn eager_calls_between_replays_take_their_turn() {
    let plan = [
        Eager(0),
        Replay(0),
        Eager(1),
        Eager(2),
        Replay(1),
        Replay(1),
        Eager(0),
    ];
    mixed(Transport::Push, &plan, 12);
    mixed(Transport::Pull, &plan, 12);
}

#[test]
fn two_graphs_of_one_channel_replay_as_a_b_a_a_b() {
    let plan = [Replay(0), Replay(1), Replay(0), Replay(0), Replay(1)];
    mixed(Transport::Push, &plan, 12);
    mixed(Transport::Pull, &plan, 12);
}

#[test]
fn every_operation_of_every_type_and_transport_is_one_kernel_node() {
    let (machine, driver) = machine(2);
    for transport in [Transport::Push, Transport::Pull] {
        let contract = Contract {
            transport,
            gather_element_bytes: 4,
            reduce_element_bytes: 4,
            fail: FAIL,
            ..Contract::new(2, 16, 16, 4)
        };
        let direction = format!("{transport:?}").to_lowercase();
        on_ranks(&driver, 2, |member| {
            let pool = member.pool(&contract).unwrap();
            pool.prepare(&["decode"]).unwrap();
            let before = machine.executed();
            let stream = Stream::new(&member.device).unwrap();
            let one_node = |shape: Shape, function: String| {
                let exchange = Exchange::new(member, shape).unwrap();
                let graph = capture(&pool, &stream, "decode", |channel| {
                    exchange.enqueue(channel, &stream).unwrap();
                });
                let nodes = graph.nodes().unwrap();
                assert_eq!(nodes.len(), 1, "{function}");
                let kernel = nodes[0].kernel().expect("a kernel");
                assert_eq!(kernel.function.as_deref(), Some(function.as_str()));
            };
            for dtype in [
                DType::F32,
                DType::F16,
                DType::Bf16,
                DType::F8E4M3,
                DType::U8,
            ] {
                let shape = Shape::gather(dtype, 3, 1, 16);
                one_node(shape, format!("sf_gather_{direction}"));
            }
            for (dtype, name) in [
                (DType::F32, "f32"),
                (DType::F16, "f16"),
                (DType::Bf16, "bf16"),
            ] {
                let shape = Shape::reduce(dtype, 3, 1, 16);
                one_node(shape, format!("sf_reduce_{direction}_{name}_w2"));
            }
            assert_eq!(machine.executed(), before);
            pool.close().unwrap();
        });
    }
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn operations_are_recorded_as_a_chain_in_the_order_of_their_calls_by_either_transport() {
    let (machine, driver) = machine(3);
    let order = [1, 0, 2, 1, 1, 0];
    for transport in [Transport::Push, Transport::Pull] {
        let contract = Contract {
            transport,
            ..Contract::new(3, 16, 16, 4)
        };
        on_ranks(&driver, 3, |member| {
            let pool = member.pool(&contract).unwrap();
            pool.prepare(&["decode"]).unwrap();
            let stream = Stream::new(&member.device).unwrap();
            let exchanges = SHAPES.map(|shape| Exchange::new(member, shape).unwrap());
            let graph = capture(&pool, &stream, "decode", |channel| {
                for index in order {
                    exchanges[index].enqueue(channel, &stream).unwrap();
                }
            });
            let Contents { nodes, edges } = graph.contents().unwrap();
            let outputs = nodes.iter().map(|node| {
                let kernel = node.kernel().expect("a kernel");
                let block = &kernel.params.as_ref().expect("parameters")[0].bytes;
                let at = match block.len() == size_of::<GatherParams>() {
                    true => offset_of!(GatherParams, output),
                    false => offset_of!(ReduceParams, output),
                };
                u64::from_le_bytes(block[at..at + 8].try_into().expect("eight bytes"))
            });
            let called = order.map(|index| exchanges[index].output.ptr().raw());
            assert_eq!(outputs.collect::<Vec<_>>(), called);
            let edges: Vec<_> = edges.iter().map(|edge| (edge.from, edge.to)).collect();
            let chain: Vec<_> = (1..order.len()).map(|node| (node - 1, node)).collect();
            assert_eq!(edges, chain);
            drop(graph);
            pool.close().unwrap();
        });
    }
    assert_eq!(machine.faults(), Vec::<String>::new());
}
