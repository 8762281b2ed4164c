//! A kernel in the place of a shipped one, on a machine that ranks use through the library.

use slabfence::layout::{DType, Transport};
use slabfence_emu::held::{End, Plan, Policy, Reason, Wait};
use slabfence_emu_mutants::{mutation, shipped};
use slabfence_tests::held::{Seat, compare, contract, seats};
use slabfence_tests::probe::machine;
use slabfence_tests::shape::Shape;

const SHAPES: [Shape; 2] = [
    Shape::reduce(DType::Bf16, 2, 1, 16),
    Shape::gather(DType::Bf16, 2, 1, 16),
];

#[test]
fn a_replaced_gather_runs_in_place_of_the_shipped_one_and_reductions_stay() {
    let (machine, driver) = machine(2);
    let gather = shipped()
        .unwrap()
        .into_iter()
        .find(|entry| entry.name == "sf_gather_push")
        .unwrap();
    let text = mutation("entry-omitted").unwrap().plant(&gather).unwrap();
    let seats = seats(&driver, 2, &contract(2, Transport::Push), &SHAPES, 1, 2);
    assert_eq!(
        machine.replace_entries(&text),
        Ok(vec!["sf_gather_push".to_owned()])
    );
    let run = |index: usize| {
        let mut held = machine.hold().unwrap();
        seats.iter().for_each(|seat: &Seat| seat.eager(0, index));
        held.run(&Plan::new(Policy::Random), 1).unwrap()
    };
    assert_eq!(run(0).end, End::Complete);
    assert_eq!(compare(&seats), Ok(()));
    let End::Deadlock(waiters) = run(1).end else {
        panic!("a gather that does not enter completed");
    };
    // The control warps wait for each other's entry lines.
    let polls = waiters.iter().filter(|waiter| {
        waiter.what.contains("sf_gather_push")
            && matches!(
                &waiter.wait,
                Wait::Warp {
                    warp: 8,
                    reason: Reason::Polls(polls),
                    ..
                } if polls.iter().all(|poll| poll.seen == 0)
            )
    });
    assert_eq!(polls.count(), 2, "{waiters:?}");
}

#[test]
fn a_whole_shipped_text_takes_its_own_place() {
    let (machine, driver) = machine(2);
    let seats = seats(&driver, 2, &contract(2, Transport::Push), &SHAPES, 1, 2);
    for image in slabfence_ptx::Image::all() {
        let entries = image.entries.iter().map(|&entry| entry.to_owned());
        assert_eq!(machine.replace_entries(image.ptx), Ok(entries.collect()));
    }
    for index in 0..SHAPES.len() {
        let mut held = machine.hold().unwrap();
        seats.iter().for_each(|seat: &Seat| seat.eager(0, index));
        let run = held.run(&Plan::new(Policy::Random), 1).unwrap();
        assert_eq!(run.end, End::Complete);
    }
    assert_eq!(compare(&seats), Ok(()));
}
