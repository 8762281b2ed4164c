//! Operations of many CTAs and of few in turn. A slot that every CTA counted for itself would fall behind in the CTAs that
//! a narrow operation does not have: in the next wide one they would write the slot that a slow rank still reads.

use std::thread::sleep;
use std::time::Duration;

use slabfence::channel::Contract;
use slabfence::driver::Stream;
use slabfence::layout::{DType, Transport};
use slabfence_emu_mutants::mutation;
use slabfence_tests::graphs::{capture, grids as grids_of};
use slabfence_tests::late::{FAIL, hold, on_ranks};
use slabfence_tests::probe::machine;
use slabfence_tests::rounds::Rounds;
use slabfence_tests::seams::Program;
use slabfence_tests::shape::{Shape, Source};

/// Seeds within which outputs must be wrong.
const SEEDS: u64 = 20;

/// Elements of a row that a CTA of a reduce-scatter has to itself: 129 packs of 16 bytes.
const ROW: u32 = 129 * 8;

/// A reduce-scatter of a CTA for each token, as far as the contract has them. Nearly all rows of the other ranks have empty
/// shards only, which take no sums: rank 1 is a slow reader, and the others go on while it still reads.
const fn reduce(dtype: DType, batch: u32) -> Shape {
    Shape {
        source: Source {
            lse: |place| match place.head == 1 || place.token == 15 {
                true => (Source::NUMBERS.lse)(place),
                false => f32::NEG_INFINITY,
            },
            ..Source::NUMBERS
        },
        ..Shape::reduce(dtype, batch, 1, ROW)
    }
}

/// A gather of one CTA for every 256 packs, as far as the contract has them.
const fn gather(batch: u32) -> Shape {
    Shape::gather(DType::Bf16, batch, 1, ROW)
}

fn contract(transport: Transport, batch: u32, max_grid: u32) -> Contract {
    Contract {
        transport,
        max_grid,
        // Some reductions are of f32.
        reduce_element_bytes: 4,
        fail: FAIL,
        ..Contract::new(3, ROW, ROW, batch)
    }
}

/// Queues `rounds` rounds of the shapes without waiting, every other round as replay of one graph; rank 1 sleeps before
/// some of them, on the host and on its stream.
fn queued(transport: Transport, shapes: &[Shape], grids: &[u32], rounds: u32) {
    let (machine, driver) = machine(3);
    let widest = shapes.iter().map(|shape| shape.batch).max().unwrap();
    let max_grid = grids.iter().copied().max().unwrap();
    let contract = contract(transport, widest, max_grid);
    on_ranks(&driver, 3, |member| {
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let queue = Rounds::new(member, shapes, rounds).unwrap();
        let graph = capture(&pool, &stream, "decode", |channel| {
            for exchange in &queue.exchanges {
                exchange.enqueue(channel, &stream).unwrap();
            }
        });
        assert_eq!(grids_of(&graph), grids);
        let mut exec = graph.instantiate().unwrap();
        for round in 0..rounds {
            if member.rank() == 1 {
                sleep(Duration::from_millis(u64::from(round % 3) * 10));
                hold(&stream, Duration::from_millis(u64::from(round % 2) * 5));
            }
            for index in 0..shapes.len() {
                queue.supply(round, index, &stream).unwrap();
            }
            if round % 2 == 0 {
                for exchange in &queue.exchanges {
                    exchange.enqueue(&channel, &stream).unwrap();
                }
            } else {
                exec.launch(&stream).unwrap();
            }
            for index in 0..shapes.len() {
                queue.collect(round, index, &stream).unwrap();
            }
        }
        stream.synchronize().unwrap();
        assert_eq!(pool.faults().unwrap(), []);
        let executions = rounds as usize * shapes.len();
        assert_eq!(queue.check().unwrap(), executions);
        drop((exec, graph));
        pool.close().unwrap();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}

const GATHERS: [Shape; 3] = [gather(16), gather(3), gather(16)];
// The narrow gather's one CTA stages 256 packs, where the wide reductions' other CTA has a row.
const MIXED: [Shape; 3] = [
    reduce(DType::Bf16, 16),
    Shape::gather(DType::Bf16, 2, 1, 128 * 8),
    reduce(DType::Bf16, 16),
];

/// Reductions of a CTA for each token, up to a most of them. Rows of f32 are twice as long, so that a CTA of a narrow one
/// has places of other CTAs of a wide one: with rows of one length each CTA would have its own in all of them.
const fn reductions<const N: usize>(batches: [u32; N]) -> [Shape; N] {
    let mut shapes = [reduce(DType::Bf16, 1); N];
    let mut index = 0;
    while index < N {
        let dtype = match index % 2 {
            0 => DType::F32,
            _ => DType::Bf16,
        };
        shapes[index] = reduce(dtype, batches[index]);
        index += 1;
    }
    shapes
}

#[test]
fn a_wide_gather_a_narrow_and_a_wide_one_queue_up_by_push() {
    queued(Transport::Push, &GATHERS, &[9, 2, 9], 12);
}

#[test]
fn a_wide_gather_a_narrow_and_a_wide_one_queue_up_by_pull() {
    queued(Transport::Pull, &GATHERS, &[9, 2, 9], 12);
}

#[test]
fn a_wide_reduction_a_narrow_gather_and_a_wide_reduction_queue_up_by_push() {
    queued(Transport::Push, &MIXED, &[2, 1, 2], 6);
}

#[test]
fn a_wide_reduction_a_narrow_gather_and_a_wide_reduction_queue_up_by_pull() {
    queued(Transport::Pull, &MIXED, &[2, 1, 2], 6);
}

#[test]
fn grids_of_1_64_3_36_and_8_follow_one_another_by_push() {
    let grids = [1, 64, 3, 36, 8];
    queued(Transport::Push, &reductions(grids), &grids, 4);
}

#[test]
fn grids_of_1_64_3_36_and_8_follow_one_another_by_pull() {
    let grids = [1, 64, 3, 36, 8];
    queued(Transport::Pull, &reductions(grids), &grids, 4);
}

/// The programs above, smaller, with their widest grid and name.
fn programs(transport: Transport) -> [(&'static str, Program<'static>); 3] {
    const REDUCTIONS: [Shape; 5] = reductions([1, 8, 3, 6, 2]);
    let all: [(_, &'static [Shape], _, _); 3] = [
        ("gathers", &GATHERS, 16, 9),
        ("a gather between reductions", &MIXED, 16, 2),
        ("reductions", &REDUCTIONS, 8, 8),
    ];
    all.map(|(name, shapes, batch, max_grid)| {
        let program = Program {
            world: 3,
            contract: contract(transport, batch, max_grid),
            shapes,
            rounds: 2,
            replays: false,
            stretches: 1,
        };
        (name, program)
    })
}

#[test]
fn ranks_that_read_slowly_get_what_is_theirs() {
    for transport in [Transport::Push, Transport::Pull] {
        for (name, program) in programs(transport) {
            let bad = program.explore(None, 0..4);
            assert!(bad.is_none(), "{name} by {transport:?}: {bad:?}");
        }
    }
}

#[test]
fn reductions_have_wrong_outputs_if_each_cta_counts_its_slots() {
    let mutation = mutation("slot-of-each-cta").expect("a known bug");
    for transport in [Transport::Push, Transport::Pull] {
        // In gathers of these sizes CTA i has the same packs whatever the grid: there a slot of its own does no harm.
        for (name, program) in programs(transport).into_iter().skip(1) {
            let bad = program.explore(Some(mutation), 0..SEEDS);
            let wrong = bad.and_then(|bad| bad.wrong);
            assert!(wrong.is_some(), "{name} by {transport:?} do not see it");
        }
    }
}
