//! Held work of two ranks under many schedules: every schedule gives the right results, and a seed gives the same run again.

use slabfence::layout::{DType, Transport};
use slabfence_emu::held::{End, Patience, Plan, Policy, Poll, Reason, Run, Wait, Waiter, Writer};
use slabfence_tests::held::{Seat, close, compare, contract, seats};
use slabfence_tests::probe::machine;
use slabfence_tests::shape::Shape;

const SHAPES: [Shape; 3] = [
    Shape::gather(DType::Bf16, 2, 1, 16),
    Shape::reduce(DType::Bf16, 3, 1, 16),
    Shape::gather(DType::Bf16, 1, 1, 16),
];
const PLANS: [Plan; 3] = [
    Plan::new(Policy::RoundRobin),
    Plan::new(Policy::Random),
    Plan::new(Policy::Priorities { changes: 3 }),
];

/// Three eager operations, then a graph of three replayed three times.
fn enqueue(seats: &mut [Seat]) {
    for seat in seats {
        (0..3).for_each(|index| seat.eager(0, index));
        (1..4).for_each(|round| seat.replay(round));
    }
}

/// Twenty seeds of every policy.
fn schedules(transport: Transport, epoch: u64) {
    let (machine, driver) = machine(2);
    let mut seats = seats(&driver, 2, &contract(2, transport), &SHAPES, 4, epoch);
    let mut held = machine.hold().unwrap();
    enqueue(&mut seats);
    for plan in &PLANS[1..] {
        let found = held.explore(plan, 0..20, |_| compare(&seats)).unwrap();
        assert_eq!(found.bad, None);
        assert_eq!((found.runs, found.distinct), (20, 20));
    }
    drop(held);
    for seat in &seats {
        seat.stream.synchronize().unwrap();
    }
    assert_eq!(compare(&seats), Ok(()));
    close(seats);
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn eager_and_replayed_pushes_are_right_under_every_seed() {
    schedules(Transport::Push, 2);
}

#[test]
fn eager_and_replayed_pulls_are_right_under_every_seed_across_the_end_of_32_bits() {
    schedules(Transport::Pull, (1 << 32) - 5);
}

#[test]
fn a_seed_gives_the_same_run_on_another_machine() {
    let runs = || {
        let (machine, driver) = machine(2);
        let contract = contract(2, Transport::Push);
        let mut seats = seats(&driver, 2, &contract, &SHAPES, 4, 2);
        let mut held = machine.hold().unwrap();
        enqueue(&mut seats);
        let mut runs = Vec::new();
        for plan in &PLANS {
            for seed in [3, 4] {
                runs.push(held.run(plan, seed).unwrap());
            }
        }
        drop(held);
        close(seats);
        runs
    };
    let (first, again) = (runs(), runs());
    assert_eq!(first, again);
    // Round robin knows no seed; all others differ.
    assert_eq!(first[0].trace, first[1].trace);
    let mut traces: Vec<u64> = first[1..].iter().map(|run| run.trace).collect();
    traces.sort_unstable();
    traces.dedup();
    assert_eq!(traces.len(), 5);
    assert!(first.iter().all(|run| run.end == End::Complete));
}

#[test]
fn one_resident_block_at_a_time_is_enough_for_grids_of_one_block() {
    let (machine, driver) = machine(2);
    let contract = contract(2, Transport::Push);
    let mut seats = seats(&driver, 2, &contract, &SHAPES, 4, 2);
    let mut held = machine.hold().unwrap();
    enqueue(&mut seats);
    let plan = Plan {
        residency: Some(1),
        ..Plan::new(Policy::Random)
    };
    let found = held.explore(&plan, 0..5, |_| compare(&seats)).unwrap();
    assert_eq!((found.runs, found.bad), (5, None));
    drop(held);
    close(seats);
}

/// Rank 1 enqueues nothing.
fn alone(plan: &Plan) -> (Run, Vec<String>) {
    let (machine, driver) = machine(2);
    let contract = contract(2, Transport::Push);
    let seats = seats(&driver, 2, &contract, &SHAPES, 1, 2);
    let mut held = machine.hold().unwrap();
    seats[0].eager(0, 0);
    let run = held.run(plan, 1).unwrap();
    drop(held);
    let synchronised = seats[0].stream.synchronize();
    assert_eq!(synchronised.is_ok(), run.end == End::Complete);
    let faults = machine.faults();
    if run.end == End::Complete {
        close(seats);
    }
    (run, faults)
}

#[test]
fn a_deadlock_names_who_waits_for_which_word_of_whom() {
    let (run, faults) = alone(&PLANS[1]);
    assert_eq!(faults, [run.end.to_string()]);
    let End::Deadlock(waiters) = &run.end else {
        panic!("{run}");
    };
    let polls: Vec<(u32, &Poll)> = waiters
        .iter()
        .flat_map(|waiter| match &waiter.wait {
            Wait::Warp {
                warp,
                reason: Reason::Polls(polls),
                ..
            } => polls.iter().map(|poll| (*warp, poll)).collect(),
            _ => Vec::new(),
        })
        .collect();
    // A worker polls the data flag of rank 1, and the control warp its entry line; rank 1 is lane 1.
    let nobody = Writer {
        rank: Some(1),
        device: None,
        operations: Vec::new(),
    };
    let words = [
        (0, "flag (slot A, phase 0, CTA 0, source 1) of rank 0"),
        (8, "entry line (slot A, source 1) of rank 0"),
    ];
    assert_eq!(polls.len(), words.len(), "{run}");
    for ((warp, poll), (wanted, name)) in polls.into_iter().zip(words) {
        assert_eq!((warp, poll.lanes), (wanted, 2));
        assert_eq!((poll.place.region.as_str(), poll.place.offset), (name, 0));
        // The first operation of the channel has epoch 2.
        let values = (poll.expected, poll.seen, poll.now);
        assert_eq!(values, (Some(2), 0, Some(0)), "{name}");
        assert_eq!(poll.writers.as_slice(), std::slice::from_ref(&nobody));
        assert_eq!(poll.last, None);
        assert!(poll.line > 0);
    }
    let whose = |waiter: &Waiter| (waiter.device, waiter.rank);
    let ranks: Vec<_> = waiters.iter().map(whose).collect();
    assert!(ranks.starts_with(&[(0, Some(0)); 2]), "{ranks:?}");
    let behind = waiters
        .last()
        .map(|waiter| (waiter.what.as_str(), &waiter.wait));
    assert_eq!(behind, Some(("a copy", &Wait::Operations(vec![(0, 2)]))));
    let words = run.end.to_string();
    let told = "rank 0, operation 2 of device 0, `sf_gather_push` CTA 0 warp 8 lane 1, PTX line ";
    assert!(words.contains(told), "{words}");
    let told = "expects 0x2, saw 0x0, holds 0x0; rank 1 may write it, but has nothing left with an address that leads there; not written in this run";
    assert!(words.contains(told), "{words}");
}

#[test]
fn with_patience_a_missing_rank_ends_in_the_time_out_of_the_wait() {
    let patient = Plan {
        patience: Patience::Time,
        ..Plan::new(Policy::Random)
    };
    let (run, faults) = alone(&patient);
    assert_eq!((&run.end, faults), (&End::Complete, Vec::new()), "{run}");
    // The contract's fail threshold.
    assert!(run.elapsed > 600_000_000_000, "{}", run.elapsed);
}

/// An instruction takes so long that waits end while the others are about to come.
#[test]
fn time_outs_among_ranks_that_come_are_told_and_leave_nothing_waiting() {
    let (machine, driver) = machine(2);
    let contract = contract(2, Transport::Push);
    let mut seats = seats(&driver, 2, &contract, &SHAPES, 4, 2);
    let mut held = machine.hold().unwrap();
    enqueue(&mut seats);
    let hasty = Plan {
        tick: 1_000_000_000,
        ..Plan::new(Policy::Random)
    };
    let (mut right, mut told) = (0, 0);
    for seed in 0..30 {
        let run = held.run(&hasty, seed).unwrap();
        assert!(run.is_clean(), "{run}");
        for seat in &seats {
            let faults = seat.pool.faults().unwrap();
            match seat.rounds.compare() {
                Ok(()) => right += 1,
                Err(wrong) => {
                    assert_ne!(faults, [], "seed {seed}: nobody was told that {wrong}");
                    told += 1;
                }
            }
        }
    }
    assert!(right > 0 && told > 0, "{right} right, {told} told");
    drop(held);
    close(seats);
}
