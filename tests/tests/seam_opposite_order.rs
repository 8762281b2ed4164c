//! Two channels that the ranks capture and replay in opposite orders, on two streams: right, and no rank waits for ever.

use slabfence::channel::Contract;
use slabfence::driver::Stream;
use slabfence::health::Health;
use slabfence::layout::{DType, Transport};
use slabfence_tests::graphs::capture;
use slabfence_tests::late::{FAIL, on_ranks};
use slabfence_tests::probe::machine;
use slabfence_tests::rounds::Rounds;
use slabfence_tests::shape::Shape;

const ROUNDS: u32 = 64;
const NAMES: [&str; 2] = ["decode", "draft"];

/// Shapes of the two channels, different ones: a mix-up would not even fit.
const SHAPES: [&[Shape]; 2] = [
    &[Shape::gather(DType::Bf16, 3, 1, 16)],
    &[
        Shape::reduce(DType::Bf16, 2, 1, 16),
        Shape::gather(DType::Bf16, 1, 1, 24),
        Shape::reduce(DType::Bf16, 1, 1, 24),
    ],
];

fn opposite(world: u32, transport: Transport) {
    let (machine, driver) = machine(world);
    let contract = Contract {
        transport,
        concurrent_operations: 2,
        fail: FAIL,
        ..Contract::new(world, 24, 24, 4)
    };
    on_ranks(&driver, world, |member| {
        let pool = member.pool(&contract).unwrap();
        pool.prepare(&NAMES).unwrap();
        let streams = [0, 1].map(|_| Stream::new(&member.device).unwrap());
        let queues = SHAPES.map(|shapes| Rounds::new(member, shapes, ROUNDS).unwrap());
        let mut order = [0, 1];
        if member.rank() % 2 == 1 {
            order.reverse();
        }
        let mut graphs = order.map(|which| {
            let stream = &streams[which];
            capture(&pool, stream, NAMES[which], |channel| {
                for exchange in &queues[which].exchanges {
                    exchange.enqueue(channel, stream).unwrap();
                }
            })
        });
        if member.rank() % 2 == 1 {
            graphs.reverse();
        }
        let mut execs = graphs.each_ref().map(|graph| graph.instantiate().unwrap());
        for round in 0..ROUNDS {
            for which in order {
                let (queue, stream) = (&queues[which], &streams[which]);
                for index in 0..queue.exchanges.len() {
                    queue.supply(round, index, stream).unwrap();
                }
                execs[which].launch(stream).unwrap();
                for index in 0..queue.exchanges.len() {
                    queue.collect(round, index, stream).unwrap();
                }
            }
        }
        for which in order {
            streams[which].synchronize().unwrap();
        }
        assert_eq!(pool.health().unwrap(), Health::Healthy);
        assert_eq!(queues[0].check().unwrap(), ROUNDS as usize);
        assert_eq!(queues[1].check().unwrap(), 3 * ROUNDS as usize);
        drop((execs, graphs));
        pool.close().unwrap();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn two_ranks_replay_two_channels_in_opposite_orders_by_push() {
    opposite(2, Transport::Push);
}

#[test]
fn two_ranks_replay_two_channels_in_opposite_orders_by_pull() {
    opposite(2, Transport::Pull);
}

#[test]
fn four_ranks_replay_two_channels_in_opposite_orders() {
    opposite(4, Transport::Push);
}

#[test]
fn four_ranks_replay_two_channels_in_opposite_orders_by_pull() {
    opposite(4, Transport::Pull);
}
