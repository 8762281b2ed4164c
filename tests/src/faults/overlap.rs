//! One channel used twice at the same time, and what the failure of one rank is to others.

use std::time::Instant;

use slabfence::driver::Driver;
use slabfence::group::Rank;
use slabfence::layout::{Cause, Transport};

use super::seat::{Seat, Terms, Work};
use super::{fault, on_ranks, refuses, revives};

/// Rank 0 starts a second piece of work on a second stream while the first one waits for rank 1: a second eager operation, a
/// second replay, and one of each. Both end, and the second, which took the later epoch, is told of. Rank 1, which comes later,
/// finds the poison. After a reset everything is right.
///
/// # Panics
///
/// When it is not so.
pub fn overlaps_are_reported(driver: &Driver, transport: Transport) {
    on_ranks(driver, 2, |member| {
        let mut seat = Seat::new(member, Terms::patient(transport));
        for (first, second) in [
            (Work::Eager, Work::Eager),
            (Work::Replay, Work::Again),
            (Work::Replay, Work::Eager),
            (Work::Eager, Work::Again),
        ] {
            let epoch = seat.epoch();
            seat.supply();
            if member.rank() == 0 {
                seat.start(first).unwrap();
                seat.runs();
                let begin = Instant::now();
                seat.start_beside(second).unwrap();
                seat.rest();
                seat.took(
                    &format!("{second:?} beside {first:?}: ended"),
                    begin.elapsed(),
                );
                let fault = fault(&seat);
                assert_eq!(
                    (fault.cause, fault.epoch),
                    (Some(Cause::Overlap), epoch + 1)
                );
                assert_eq!(fault.late_rank, None, "{fault}");
                seat.check_verdict(Cause::Overlap, epoch + 1);
                seat.check_failed(second);
                member.meet();
            } else {
                member.meet();
                seat.start(first).unwrap();
                seat.rest();
                let fault = fault(&seat);
                assert_eq!((fault.cause, fault.epoch), (Some(Cause::Skipped), epoch));
            }
            seat.check_failed(first);
            let told = fault(&seat);
            refuses(&mut seat, &told);
            revives(&mut seat, 2);
        }
        seat.close();
    });
}

/// Ranks 0 and 1 wait for rank 2 when rank 0 fails, by an overlap: rank 1 hears of it in its wait, which ends long before its
/// limit, and names rank 0. Rank 2 finds the poison when it comes.
///
/// # Panics
///
/// When it is not so.
pub fn a_failure_ends_the_waits_of_the_others(driver: &Driver, transport: Transport) {
    on_ranks(driver, 3, |member| {
        let mut seat = Seat::new(member, Terms::patient(transport));
        let epoch = seat.epoch();
        seat.supply();
        if member.rank() < 2 {
            seat.start(Work::Eager).unwrap();
            seat.runs();
        }
        member.meet();
        let begin = Instant::now();
        if member.rank() == 0 {
            seat.start_beside(Work::Again).unwrap();
        }
        if member.rank() < 2 {
            seat.rest();
            seat.took("poison heard", begin.elapsed());
        }
        member.meet();
        if member.rank() == 2 {
            seat.start(Work::Eager).unwrap();
            seat.rest();
        }
        seat.check_failed(Work::Eager);
        let fault = fault(&seat);
        let wanted = [
            (Cause::Overlap, epoch + 1, None),
            (Cause::PeerFailed, epoch, Some(Rank(0))),
            (Cause::Skipped, epoch, None),
        ];
        let (cause, at, late) = wanted[member.rank() as usize];
        assert_eq!((fault.cause, fault.epoch), (Some(cause), at), "{fault}");
        if member.rank() < 2 {
            assert_eq!(fault.late_rank, late, "{fault}");
        }
        seat.check_verdict(cause, at);
        refuses(&mut seat, &fault);
        member.meet();
        revives(&mut seat, 2);
        seat.close();
    });
}
