//! Combined shards against the arithmetic that `docs/arithmetic.md` states, bit for bit, and against 64-bit floats: every
//! world size, element type, transport, layout and base; pushed and pulled, eager and replayed.

use slabfence::channel::Contract;
use slabfence::collective::{Layout, LseBase};
use slabfence::driver::{Driver, Stream};
use slabfence::health::Health;
use slabfence::layout::{DType, Transport};
use slabfence_tests::arithmetic::{reference, widen};
use slabfence_tests::exchange::Exchange;
use slabfence_tests::graphs::capture;
use slabfence_tests::late::{FAIL, on_ranks};
use slabfence_tests::probe::machine_of;
use slabfence_tests::shape::{Kind, Shape};

/// Heads of one rank.
const HEADS: u32 = 2;
const BATCH: u32 = 3;
const LAYOUTS: [Layout; 2] = [Layout::TokenMajor, Layout::HeadMajor { capacity: 5 }];

fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for dtype in [DType::F32, DType::F16, DType::Bf16] {
        for base in [LseBase::E, LseBase::Two] {
            for from in LAYOUTS {
                for to in LAYOUTS {
                    // Rows of 6 and 3 packs: threads that share a row and have nothing to do.
                    shapes.push(Shape {
                        kind: Kind::Reduce(base, from, to),
                        ..Shape::reduce(dtype, BATCH, HEADS, 24)
                    });
                }
            }
        }
    }
    shapes
}

/// Every element is as near the result in 64-bit floats as [`reference`] derives.
fn assert_near(exchange: &Exchange, operation: u32, got: &[u8]) {
    let shape = exchange.shape;
    let Kind::Reduce(base, _, to) = shape.kind else {
        panic!("no reduction: {shape:?}");
    };
    for row in shape.rows(to, exchange.world, exchange.rank, operation) {
        let elements = got[row.at].chunks_exact(shape.dtype.bytes());
        for (element, parts) in elements.zip(row.parts) {
            let bits = element.iter().rev().fold(0, |w, &b| w << 8 | u32::from(b));
            let value = f64::from(widen(shape.dtype, bits));
            let (wanted, tolerance) = reference(shape.dtype, base, &row.lse, &parts);
            assert!(
                (value - wanted).abs() <= tolerance,
                "{shape:?}: {value}, not {wanted} ± {tolerance}"
            );
        }
    }
}

/// Every rank's outputs of all shapes, checked, the same eager and replayed.
fn outputs(driver: &Driver, world: u32, transport: Transport) -> Vec<Vec<Vec<u8>>> {
    let contract = Contract {
        transport,
        reduce_element_bytes: 4,
        max_grid: 8,
        oversubscribe: true,
        fail: FAIL,
        ..Contract::new(HEADS * world, 8, 24, BATCH)
    };
    on_ranks(driver, world, |member| {
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let exchanges: Vec<Exchange> = shapes()
            .into_iter()
            .map(|shape| Exchange::new(member, shape).unwrap())
            .collect();
        let graph = capture(&pool, &stream, "decode", |channel| {
            for exchange in &exchanges {
                exchange.enqueue(channel, &stream).unwrap();
            }
        });
        let mut exec = graph.instantiate().unwrap();
        let run = |launch: &mut dyn FnMut()| -> Vec<Vec<u8>> {
            for (operation, exchange) in (0..).zip(&exchanges) {
                exchange.supply(operation).unwrap();
            }
            launch();
            stream.synchronize().unwrap();
            exchanges.iter().map(|e| e.read().unwrap()).collect()
        };
        let eager = run(&mut || {
            for exchange in &exchanges {
                exchange.enqueue(&channel, &stream).unwrap();
            }
        });
        let replayed = run(&mut || exec.launch(&stream).unwrap());
        assert_eq!(pool.health().unwrap(), Health::Healthy);
        assert!(eager == replayed, "eager and replayed results differ");
        for ((operation, exchange), got) in (0..).zip(&exchanges).zip(&eager) {
            exchange.check(operation, got);
            assert_near(exchange, operation, got);
        }
        drop((exec, graph));
        pool.close().unwrap();
        eager
    })
}

/// Ranks beyond the machine's devices share them.
fn reduces(world: u32, profile: &str, devices: u32) {
    let (machine, driver) = machine_of(profile, devices);
    let pushed = outputs(&driver, world, Transport::Push);
    let pulled = outputs(&driver, world, Transport::Pull);
    assert!(pushed == pulled, "pushed and pulled results differ");
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn two_ranks_combine_to_the_stated_bits() {
    reduces(2, "sm120-pcie", 2);
}

#[test]
fn three_ranks_combine_to_the_stated_bits() {
    reduces(3, "h200-nvlink", 3);
}

#[test]
fn four_ranks_combine_to_the_stated_bits() {
    reduces(4, "sm120-pcie", 4);
}

#[test]
fn five_ranks_on_two_devices_combine_to_the_stated_bits() {
    reduces(5, "h200-nvlink", 2);
}

#[test]
fn eight_ranks_combine_to_the_stated_bits() {
    reduces(8, "h200-nvlink", 8);
}

#[test]
fn sixteen_ranks_on_four_devices_combine_to_the_stated_bits() {
    reduces(16, "sm120-pcie", 4);
}

/// Every head shard of a rank's partial outputs, and of their log-sum-exps, is its first one.
fn alike(mut input: Vec<u8>, world: usize, row: usize) -> Vec<u8> {
    let (batch, heads) = (BATCH as usize, HEADS as usize);
    let payload = batch * world * heads * row;
    let mut repeat = |from: usize, bytes: usize| {
        for shard in 1..world {
            input.copy_within(from..from + bytes, from + shard * bytes);
        }
    };
    for token in 0..batch {
        repeat(token * world * heads * row, heads * row);
        repeat(payload + token * world * heads * 4, heads * 4);
    }
    input
}

/// What an all-reduce of these rows would give: each rank combines the same rows of all ranks, and rounds alike.
#[test]
fn the_same_rows_combine_to_the_same_bits_on_every_rank() {
    const WORLD: u32 = 3;
    let (_machine, driver) = machine_of("h200-nvlink", WORLD);
    for transport in [Transport::Push, Transport::Pull] {
        let contract = Contract {
            transport,
            reduce_element_bytes: 4,
            fail: FAIL,
            ..Contract::new(HEADS * WORLD, 8, 24, BATCH)
        };
        let results = on_ranks(&driver, WORLD, |member| {
            let (pool, channel) = member.channel(&contract, "decode").unwrap();
            let stream = Stream::new(&member.device).unwrap();
            let results = [DType::F32, DType::F16, DType::Bf16].map(|dtype| {
                let shape = Shape::reduce(dtype, BATCH, HEADS, 24);
                let exchange = Exchange::new(member, shape).unwrap();
                let own = alike(
                    shape.input(WORLD, member.rank(), 0),
                    WORLD as usize,
                    24 * dtype.bytes(),
                );
                exchange.input.write(0, &own).unwrap();
                exchange.enqueue(&channel, &stream).unwrap();
                stream.synchronize().unwrap();
                exchange.read().unwrap()
            });
            pool.close().unwrap();
            results
        });
        assert!(
            results.iter().all(|other| other == &results[0]),
            "{transport:?}"
        );
        // Rank 0's rows are those that every rank has in its own place otherwise.
        for (result, dtype) in results[0].iter().zip([DType::F32, DType::F16, DType::Bf16]) {
            let shape = Shape::reduce(dtype, BATCH, HEADS, 24);
            assert!(
                result == &shape.expected(WORLD, 0, 0),
                "{transport:?}, {dtype:?}"
            );
        }
    }
}
