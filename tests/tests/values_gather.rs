//! Gathered heads, bit for bit: every world size and transport, element sizes of 1, 2 and 4 bytes, rows of one pack, of two
//! and of 576 elements, odd batches, payload that is no number.

use slabfence::channel::Contract;
use slabfence::driver::Stream;
use slabfence::health::Health;
use slabfence::layout::{DType, Transport};
use slabfence_tests::late::{FAIL, on_ranks};
use slabfence_tests::probe::machine_of;
use slabfence_tests::rounds::Rounds;
use slabfence_tests::shape::{Shape, Source};

/// Type, elements of a row, tokens.
const CASES: [(DType, u32, u32); 11] = [
    (DType::U8, 16, 7),
    (DType::F8E4M3, 32, 5),
    (DType::F8E5M2, 576, 3),
    (DType::Bf16, 8, 1),
    (DType::F16, 8, 13),
    (DType::F16, 16, 3),
    (DType::Bf16, 576, 1),
    (DType::Bf16, 576, 5),
    (DType::F32, 4, 9),
    (DType::F32, 8, 1),
    (DType::F32, 576, 1),
];

/// `heads` of each rank; ranks beyond the machine's devices share them.
fn gathers(world: u32, heads: u32, profile: &str, devices: u32) {
    let (machine, driver) = machine_of(profile, devices);
    for transport in [Transport::Push, Transport::Pull] {
        let contract = Contract {
            transport,
            gather_element_bytes: 4,
            max_grid: 8,
            oversubscribe: true,
            fail: FAIL,
            ..Contract::new(heads * world, 576, 8, 13)
        };
        let shapes: Vec<Shape> = CASES
            .iter()
            .flat_map(|&(dtype, dim, batch)| {
                let bytes = Shape::gather(dtype, batch, heads, dim);
                let nans = Shape {
                    source: Source::NANS,
                    ..bytes
                };
                [bytes, nans]
            })
            .collect();
        on_ranks(&driver, world, |member| {
            let (pool, channel) = member.channel(&contract, "decode").unwrap();
            let stream = Stream::new(&member.device).unwrap();
            let queue = Rounds::new(member, &shapes, 1).unwrap();
            for (index, exchange) in queue.exchanges.iter().enumerate() {
                queue.supply(0, index, &stream).unwrap();
                exchange.enqueue(&channel, &stream).unwrap();
                queue.collect(0, index, &stream).unwrap();
            }
            stream.synchronize().unwrap();
            assert_eq!(pool.health().unwrap(), Health::Healthy);
            assert_eq!(queue.check().unwrap(), shapes.len());
            pool.close().unwrap();
        });
    }
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn two_ranks_gather_every_bit() {
    gathers(2, 3, "h200-nvlink", 2);
}

#[test]
fn three_ranks_gather_every_bit() {
    gathers(3, 3, "sm120-pcie", 3);
}

#[test]
fn four_ranks_gather_every_bit() {
    gathers(4, 3, "h200-nvlink", 4);
}

#[test]
fn five_ranks_gather_every_bit() {
    gathers(5, 3, "sm120-pcie", 5);
}

#[test]
fn seven_ranks_on_two_devices_gather_every_bit() {
    gathers(7, 1, "h200-nvlink", 2);
}

#[test]
fn eight_ranks_gather_every_bit() {
    gathers(8, 1, "sm120-pcie", 8);
}

#[test]
fn sixteen_ranks_on_four_devices_gather_every_bit() {
    gathers(16, 1, "h200-nvlink", 4);
}
