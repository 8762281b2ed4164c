//! All schedules of a few operations of two ranks that differ in the order of flags, entry lines and atomics.

use slabfence::channel::Contract;
use slabfence::layout::{DType, Transport};
use slabfence_emu::held::{Bounds, Exhaustion, Plan, Policy};
use slabfence_tests::held::{Seat, close, compare, seats};
use slabfence_tests::probe::machine;
use slabfence_tests::shape::Shape;

/// Three operations of each of two ranks.
fn all_schedules(transport: Transport, shapes: &[Shape], epoch: u64) -> Exhaustion {
    let (machine, driver) = machine(2);
    let contract = Contract {
        transport,
        ..Contract::new(2, 2048, 2048, 4)
    };
    let seats = seats(&driver, 2, &contract, shapes, 3, epoch);
    let mut held = machine.hold().unwrap();
    for seat in &seats {
        (0..3).for_each(|round| seat.eager(round, round as usize % shapes.len()));
    }
    let plan = Plan::new(Policy::RoundRobin);
    let bounds = Bounds {
        runs: 2000,
        unvaried: seats.iter().map(Seat::retired).collect(),
    };
    let found = held.exhaust(&plan, &bounds, |_| compare(&seats)).unwrap();
    drop(held);
    close(seats);
    assert_eq!(machine.faults(), Vec::<String>::new());
    found
}

/// Grids of one block.
const ONE: [Shape; 2] = [
    Shape::gather(DType::Bf16, 1, 1, 2048),
    Shape::reduce(DType::Bf16, 1, 1, 2048),
];
/// Grids of two blocks.
const TWO: [Shape; 2] = [
    Shape::gather(DType::Bf16, 2, 1, 2048),
    Shape::reduce(DType::Bf16, 2, 1, 2048),
];

#[test]
fn three_operations_of_one_block_are_right_under_all_schedules() {
    // Nothing but waits: they end the same, whoever comes first.
    for transport in [Transport::Push, Transport::Pull] {
        let found = all_schedules(transport, &ONE, (1 << 32) - 2);
        assert_eq!((found.bad, found.runs, found.complete), (None, 1, true));
    }
}

#[test]
fn three_operations_of_two_blocks_are_right_under_all_schedules() {
    // The two blocks take the ticket in either order, on two ranks, three times.
    let found = all_schedules(Transport::Push, &TWO, 2);
    assert_eq!((found.bad, found.runs, found.complete), (None, 64, true));
}
