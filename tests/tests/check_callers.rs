//! Callers who break what is assumed of them (docs/protocol.md), on the shipped kernels: ranks in different calls, and ranks
//! that do not come. What each is told is asserted for every seed.

use std::time::Duration;

use slabfence::channel::Contract;
use slabfence::group::Rank;
use slabfence::layout::{Cause, DType, Transport};
use slabfence_emu::held::{End, Looked, Patience, Plan, Policy, Reason, Wait};
use slabfence_tests::callers::{Caller, callers, close};
use slabfence_tests::graphs::grids;
use slabfence_tests::held::contract;
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::on_ranks;
use slabfence_tests::shape::Shape;

const SEEDS: u64 = 12;
const TRANSPORTS: [Transport; 2] = [Transport::Push, Transport::Pull];
/// The epoch of a channel's first operation.
const FIRST: u64 = 2;
const GATHER: Shape = Shape::gather(DType::Bf16, 2, 1, 16);
const REDUCE: Shape = Shape::reduce(DType::Bf16, 2, 1, 16);
/// Of two CTAs.
const WIDE: [Shape; 2] = [
    Shape::gather(DType::Bf16, 7, 1, 512),
    Shape::reduce(DType::Bf16, 7, 1, 512),
];

/// Results alone are looked at: rows of another call that lie in the slot are no fault of the kernel.
fn plan(patience: Patience) -> Plan {
    Plan {
        detect: false,
        patience,
        ..Plan::new(Policy::Mixed { changes: 3 })
    }
}

/// Runs calls of which the first differs among ranks: by rank the numbers of its collectives, as calls or replays. Every rank
/// must be told of it in that call, and at least one that tags differ.
fn disagree(world: u32, contract: &Contract, shapes: &[Shape], orders: &[&[usize]], replays: bool) {
    let (machine, driver) = machine(world);
    let mut callers = callers(&driver, world, contract, shapes);
    let mut held = machine.hold().unwrap();
    for (caller, order) in callers.iter_mut().zip(orders) {
        for &number in *order {
            match replays {
                true => caller.replay(number, 0),
                false => caller.eager(number, 0),
            }
        }
    }
    let told = |looked: &Looked<'_>| {
        let verdicts: Vec<_> = callers.iter().map(|one| one.verdict(looked)).collect();
        let expected = |verdict: &Option<(Cause, u64)>| {
            let causes = [Cause::TagMismatch, Cause::PeerFailed, Cause::Skipped];
            verdict.is_some_and(|(cause, epoch)| causes.contains(&cause) && epoch == FIRST)
        };
        let differs = Some((Cause::TagMismatch, FIRST));
        match verdicts.iter().all(expected) && verdicts.contains(&differs) {
            true => Ok(()),
            false => Err(format!("{verdicts:?}")),
        }
    };
    let found = held.explore(&plan(Patience::None), 0..SEEDS, told).unwrap();
    assert_eq!((found.runs, found.bad), (SEEDS, None), "{shapes:?}");
    drop(held);
    close(callers);
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn graphs_replayed_in_different_order_are_told_on_every_rank() {
    for transport in TRANSPORTS {
        let contract = contract(3, transport);
        let orders: [&[usize]; 3] = [&[0, 1], &[1, 0], &[0, 1]];
        disagree(3, &contract, &[GATHER; 2], &orders, true);
    }
}

#[test]
fn a_rank_that_leaves_a_call_out_is_told_and_so_are_the_others() {
    for transport in TRANSPORTS {
        let contract = contract(3, transport);
        let orders: [&[usize]; 3] = [&[0, 1], &[0, 1], &[1]];
        disagree(3, &contract, &[GATHER, REDUCE], &orders, false);
    }
}

#[test]
fn ranks_in_different_operations_are_told_on_every_rank() {
    for transport in TRANSPORTS {
        let contract = contract(2, transport);
        disagree(2, &contract, &[GATHER, REDUCE], &[&[0], &[1]], false);
    }
}

#[test]
fn ranks_with_different_shapes_or_grids_are_told_on_every_rank() {
    let narrow = Shape::gather(DType::Bf16, 3, 1, 16);
    let wide = Shape::gather(DType::Bf16, 12, 2, 256);
    for transport in TRANSPORTS {
        let contract = Contract {
            transport,
            ..Contract::new(4, 256, 256, 12)
        };
        let other_type = Shape::gather(DType::F16, 2, 1, 16);
        for shapes in [[GATHER, narrow], [GATHER, wide], [GATHER, other_type]] {
            let shapes = shapes.map(|shape| Shape { heads: 2, ..shape });
            disagree(2, &contract, &shapes, &[&[0], &[1]], false);
        }
    }
}

#[test]
fn ranks_of_different_transports_are_refused_at_set_up() {
    let (_machine, driver) = machine(2);
    let refused = on_ranks(&driver, 2, |member| {
        let contract = contract(2, TRANSPORTS[member.rank() as usize]);
        member.pool(&contract).map(drop).unwrap_err().to_string()
    });
    for words in refused {
        assert!(
            words.contains("transport is Pull, rank 0 has Push"),
            "{words}"
        );
    }
}

/// The one case in which nobody is told anything: tags are equal, and each call takes what the peer sent in its turn.
#[test]
fn two_equal_eager_calls_in_swapped_order_are_not_told() {
    for transport in TRANSPORTS {
        let (machine, driver) = machine(2);
        let shape = Shape::gather(DType::Bf16, 1, 1, 16);
        let callers = callers(&driver, 2, &contract(2, transport), &[shape; 2]);
        let mut held = machine.hold().unwrap();
        for (caller, order) in callers.iter().zip([[0, 1], [1, 0]]) {
            order.into_iter().for_each(|number| caller.eager(number, 0));
        }
        let swapped = |looked: &Looked<'_>| {
            for (caller, number) in callers.iter().flat_map(|one| [(one, 0), (one, 1)]) {
                let inputs = [number, 1 - number].map(|number| number as u32);
                let ranks = match caller.pool.group().me() {
                    Rank(0) => inputs,
                    _ => [inputs[1], inputs[0]],
                };
                let rows = (0..).zip(ranks);
                let rows = rows.flat_map(|(rank, number)| shape.input(2, rank, number));
                if caller.output(number, looked) != rows.collect::<Vec<u8>>() {
                    return Err(format!("call {number} has other rows"));
                }
                if let Some(verdict) = caller.verdict(looked) {
                    return Err(format!("{verdict:?}"));
                }
            }
            Ok(())
        };
        // The detector has nothing to tell either: every row is read in order, and is the wrong one.
        let watched = Plan::new(Policy::Mixed { changes: 3 });
        let found = held.explore(&watched, 0..SEEDS, swapped).unwrap();
        assert_eq!((found.runs, found.bad), (SEEDS, None));
        drop(held);
        close(callers);
    }
}

/// Runs a collective of three ranks to which rank 2 does not come.
fn without_rank_2(
    contract: &Contract,
    (shape, grid): (Shape, u32),
    test: impl FnOnce(&[Caller], &mut slabfence_emu::held::Held<'_>) -> bool,
) {
    let (machine, driver) = machine(3);
    let callers = callers(&driver, 3, contract, &[shape]);
    assert_eq!(grids(callers[0].graph(0)), [grid]);
    let mut held = machine.hold().unwrap();
    callers[..2].iter().for_each(|caller| caller.eager(0, 0));
    let ended = test(&callers, &mut held);
    drop(held);
    if ended {
        close(callers);
    }
}

#[test]
fn a_rank_that_never_comes_is_named_when_the_fail_threshold_has_passed() {
    // Each CTA fills its own part of the output: of two, both must.
    let shapes = [(GATHER, 1), (WIDE[0], 2), (WIDE[1], 2)];
    for (transport, shape) in TRANSPORTS.into_iter().flat_map(|t| shapes.map(|s| (t, s))) {
        let contract = Contract {
            transport,
            ..Contract::new(3, 512, 512, 7)
        };
        without_rank_2(&contract, shape, |callers, held| {
            let told = |looked: &Looked<'_>| {
                let mut late = 0;
                for caller in &callers[..2] {
                    let verdict = caller.verdict(looked);
                    let faults = caller.pool.faults().map_err(|error| error.to_string())?;
                    match (verdict, &faults[..]) {
                        // Nobody is called late with its data who has not entered.
                        (Some((Cause::EntryTimeout, FIRST)), [fault])
                            if fault.late_rank == Some(Rank(2))
                                && fault.waited >= contract.fail =>
                        {
                            late += 1;
                        }
                        (Some((Cause::PeerFailed, FIRST)), [_]) => {}
                        other => return Err(format!("{other:?}")),
                    }
                    if caller.output(0, looked).iter().any(|&byte| byte != 0xff) {
                        return Err("an output that looks like one".to_owned());
                    }
                }
                (late > 0).then_some(()).ok_or("nobody is late".to_owned())
            };
            let found = held.explore(&plan(Patience::Time), 0..SEEDS, told).unwrap();
            assert_eq!((found.runs, found.bad), (SEEDS, None));
            true
        });
    }
}

#[test]
fn without_a_fail_threshold_a_rank_that_never_comes_is_a_deadlock_that_names_it() {
    let contract = Contract {
        fail: Duration::ZERO,
        ..contract(3, Transport::Push)
    };
    without_rank_2(&contract, (GATHER, 1), |callers, held| {
        let run = held.run(&plan(Patience::Time), 1).unwrap();
        let End::Deadlock(waiters) = &run.end else {
            panic!("{run}");
        };
        let polls = waiters.iter().flat_map(|waiter| match &waiter.wait {
            Wait::Warp {
                reason: Reason::Polls(polls),
                ..
            } => polls.clone(),
            _ => Vec::new(),
        });
        // The entry line and the data flag, at both ranks: rank 2 alone could write them.
        let writers: Vec<_> = polls.flat_map(|poll| poll.writers).collect();
        assert_eq!(writers.len(), 4, "{run}");
        let of_rank_2 = |writer: &slabfence_emu::held::Writer| {
            writer.rank == Some(2) && writer.operations.is_empty()
        };
        assert!(writers.iter().all(of_rank_2), "{run}");
        assert_eq!(callers[0].pool.faults().unwrap(), []);
        false
    });
}
