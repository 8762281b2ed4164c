//! Ranks that are in different operations, and epochs beyond 32 bits.

use slabfence::driver::Driver;
use slabfence::group::Rank;
use slabfence::layout::{Cause, Transport};

use super::seat::{Seat, Terms, Work};
use super::{fault, on_ranks, refuses, revives};

/// Rank 0 replays its graph where rank 1 has an eager operation: a rank that sees the other's tag says which. After a
/// reset everything is right.
///
/// # Panics
///
/// When it is not so.
pub fn different_operations_are_diagnosed(driver: &Driver, transport: Transport) {
    let faults = on_ranks(driver, 2, |member| {
        let mut seat = Seat::new(member, Terms::patient(transport));
        let epoch = seat.epoch();
        let work = [Work::Replay, Work::Eager][member.rank() as usize];
        seat.supply();
        seat.start(work).unwrap();
        seat.rest();
        let fault = fault(&seat);
        assert_eq!(fault.epoch, epoch, "{fault}");
        // Who notices first says so; the other may learn of it from the first, in its wait or at its beginning.
        let causes = [Cause::TagMismatch, Cause::PeerFailed, Cause::Skipped];
        assert!(causes.contains(&fault.cause.unwrap()), "{fault}");
        refuses(&mut seat, &fault);
        member.meet();
        revives(&mut seat, 3);
        seat.close();
        fault
    });
    let mut told = 0;
    for fault in &faults {
        if fault.cause != Some(Cause::TagMismatch) {
            continue;
        }
        let [mine, other] = [fault.rank.0, 1 - fault.rank.0].map(|rank| &faults[rank as usize]);
        assert_ne!(mine.tag, other.tag);
        let tags = [mine.tag, other.tag].map(|tag| tag & 0xffff_ffff);
        assert_eq!([fault.expected, fault.seen], tags);
        assert_eq!(fault.late_rank, Some(Rank(1 - fault.rank.0)), "{fault}");
        told += 1;
    }
    assert!(told > 0, "one rank saw the other's tag: {faults:?}");
}

/// Resets to epochs just below 2^31 and 2^32, and beyond 2^40; eager operations and replays are right across them.
///
/// # Panics
///
/// When they are not.
pub fn epochs_pass_the_limits_of_32_bits(driver: &Driver, transport: Transport) {
    on_ranks(driver, 2, |member| {
        let mut seat = Seat::new(member, Terms::patient(transport));
        for floor in [(1 << 31) - 2, (1 << 32) - 2, (1 << 40) + 1] {
            seat.pool.reset_above(floor).unwrap();
            let first = seat.epoch();
            assert!(first >= floor, "{first:#x}");
            (0..3).for_each(|_| seat.right());
            // One eager operation and two of the graph each.
            assert_eq!(seat.epoch(), first + 9);
        }
        seat.close();
    });
}
