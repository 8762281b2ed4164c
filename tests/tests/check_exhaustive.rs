//! All schedules of a few operations of two ranks that differ in the order of flags, entry lines and atomics: shipped
//! kernels are right under each, and known bugs are found.

use slabfence::channel::Contract;
use slabfence::layout::{DType, Transport};
use slabfence_emu::held::{Bounds, End, Exhaustion, Patience, Plan, Policy};
use slabfence_emu_mutants::{mutation, shipped};
use slabfence_tests::held::{Seat, close, compare, seats};
use slabfence_tests::probe::machine;
use slabfence_tests::shape::Shape;

/// Three operations of each of two ranks. `texts` take the place of shipped entries.
fn all_schedules(
    transport: Transport,
    shapes: &[Shape],
    epoch: u64,
    texts: &[String],
) -> Exhaustion {
    let (machine, driver) = machine(2);
    let contract = Contract {
        transport,
        ..Contract::new(2, 2048, 2048, 4)
    };
    let seats = seats(&driver, 2, &contract, shapes, 3, epoch);
    // Behind set-up, which tries the kernels itself.
    for text in texts {
        machine.replace_entries(text).unwrap();
    }
    let mut held = machine.hold().unwrap();
    for seat in &seats {
        (0..3).for_each(|round| seat.eager(round, round as usize % shapes.len()));
    }
    let plan = Plan::new(Policy::RoundRobin);
    let bounds = Bounds {
        runs: 20_000,
        unvaried: seats.iter().map(Seat::retired).collect(),
    };
    let found = held.exhaust(&plan, &bounds, |_| compare(&seats)).unwrap();
    // Time ends every wait, so that the devices are at rest and the pools can be closed.
    if let Some(bad) = &found.bad
        && let End::Deadlock(_) = bad.end
    {
        let timed = Plan {
            patience: Patience::Time,
            ..plan
        };
        assert_eq!(held.run(&timed, 0).unwrap().end, End::Complete);
    }
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
    // Each operation in three ways: before their arrival both ranks see the other's entry, or one of them does alone.
    // Everything else is waits, which end the same, whoever comes first.
    for transport in [Transport::Push, Transport::Pull] {
        let found = all_schedules(transport, &ONE, (1 << 32) - 2, &[]);
        assert_eq!((found.bad, found.runs, found.complete), (None, 27, true));
    }
}

/// A grid of two blocks, one of one, and one of two again.
const GRIDS: [Shape; 3] = [TWO[0], ONE[0], TWO[0]];

// Besides, two blocks take the ticket in either order on each rank; where the peer's entry is seen early, not every order
// differs.

#[test]
fn three_operations_of_two_blocks_are_right_under_all_schedules() {
    let shapes = [TWO[0], TWO[1], TWO[0]];
    let found = all_schedules(Transport::Push, &shapes, 2, &[]);
    assert_eq!((found.bad, found.runs, found.complete), (None, 768, true));
}

#[test]
fn three_operations_of_two_blocks_one_and_two_are_right_under_all_schedules() {
    let shapes = [TWO[1], ONE[0], TWO[0]];
    let found = all_schedules(Transport::Pull, &shapes, 2, &[]);
    assert_eq!((found.bad, found.runs, found.complete), (None, 288, true));
}

/// Plants a bug in all that two ranks run by a transport; the rules by which the first run shows it.
fn found(name: &str, transport: Transport, shapes: &[Shape]) -> Vec<String> {
    let bug = mutation(name).unwrap();
    let runs = |entry: &str| !entry.contains("reduce") || entry.ends_with("_bf16_w2");
    let entries = shipped().unwrap().into_iter().filter(|entry| {
        entry.family.pushes() == (transport == Transport::Push) && runs(entry.name)
    });
    let texts: Vec<String> = entries.map(|entry| bug.plant(&entry).unwrap()).collect();
    assert_eq!(texts.len(), 2);
    let found = all_schedules(transport, shapes, 2, &texts);
    let bad = found.bad.unwrap_or_else(|| panic!("{name} is not found"));
    let rules = bad.findings.iter().map(|finding| finding.rule.to_string());
    let end = matches!(bad.end, End::Deadlock(_)).then(|| "deadlock".to_owned());
    rules.chain(end).collect()
}

#[test]
fn known_bugs_of_two_blocks_are_found_among_all_schedules() {
    for transport in [Transport::Push, Transport::Pull] {
        for (bug, rule, shapes) in [
            ("ticket-relaxed", "unordered-overwrite", &TWO[..]),
            ("epoch-by-first-cta", "unordered-overwrite", &TWO),
            ("slot-of-each-cta", "wrong-slot", &GRIDS),
            ("signal-slot-frozen", "wrong-slot", &TWO),
            ("flag-poll-relaxed", "race", &TWO),
            ("entry-omitted", "deadlock", &TWO),
        ] {
            let found = found(bug, transport, shapes);
            assert!(
                found.iter().any(|name| name == rule),
                "{bug}, {transport:?}: {found:?}"
            );
        }
    }
}
