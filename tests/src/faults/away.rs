//! A rank that stays away.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use slabfence::Error;
use slabfence::driver::Driver;
use slabfence::group::Rank;
use slabfence::health::Health;
use slabfence::layout::{Cause, OperationKind, Transport};

use crate::events::{count, is_readable};
use crate::ranks::on_drivers;

use super::seat::{SOON, Seat, Terms, Work, soon};
use super::{fault, members, on_ranks, refuses, revives};

const WARN: Duration = Duration::from_millis(100);
/// Far beyond what a rank that means to come takes, also on a loaded host.
const FAIL: Duration = Duration::from_millis(400);
/// What the device's clock and the host's may differ by in that time.
const DRIFT: Duration = Duration::from_millis(5);

/// Rank 1 does not come to an eager operation of rank 0, and later not to a replay. Rank 0's record names it, the outputs are
/// 0xff, the next operations do nothing and say so, rank 1 finds the poison when it comes; the other channel goes on. After a
/// reset everything is right, the graph that was captured before the faults included.
///
/// # Panics
///
/// When it is not so.
pub fn a_rank_that_stays_away_fails_the_operation(driver: &Driver, transport: Transport) {
    let terms = Terms {
        transport,
        warn: WARN,
        fail: FAIL,
    };
    on_ranks(driver, 2, |member| {
        let mut seat = Seat::new(member, terms);
        let event = seat.pool.fault_event().unwrap();
        let event = event.try_clone_to_owned().unwrap();
        for work in [Work::Eager, Work::Replay] {
            let epoch = seat.epoch();
            assert!(!is_readable(&event, Duration::ZERO));
            seat.supply();
            if member.rank() == 0 {
                waits_in_vain(&mut seat, work, epoch, &event);
                member.meet();
            } else {
                member.meet();
                comes_too_late(&mut seat, work, epoch, &event);
            }
            // Before a reset, that is for ever, nothing of this channel runs again, and the first verdict stays.
            let (first, verdict) = (fault(&seat), seat.verdict());
            refuses(&mut seat, &first);
            seat.supply();
            seat.start(Work::Again).unwrap();
            seat.rest();
            seat.check_failed(Work::Again);
            assert_eq!((seat.copied(), seat.verdict()), (verdict, verdict));
            assert_eq!(fault(&seat), first);
            // What finds the channel failed is no new fault.
            assert!(!is_readable(&event, Duration::from_millis(20)));
            seat.other_goes_on();
            revives(&mut seat, 3);
            assert!(seat.epoch() > epoch);
        }
        seat.close();
    });
}

/// Rank 0: nobody has told it of anything but the record.
fn waits_in_vain(seat: &mut Seat<'_>, work: Work, epoch: u64, event: &OwnedFd) {
    let begin = Instant::now();
    seat.start(work).unwrap();
    soon("failed", || seat.pool.health().unwrap() == Health::Failed);
    let told = begin.elapsed();
    assert!(is_readable(event, SOON));
    seat.took(&format!("{work:?}: failure told"), told);
    seat.took(&format!("{work:?}: event read"), begin.elapsed());
    assert_eq!(count(event), 1);
    seat.rest();
    seat.took(&format!("{work:?}: at rest"), begin.elapsed());
    assert!(told + DRIFT >= FAIL, "{told:?}");

    let fault = fault(seat);
    assert_eq!(fault.cause, Some(Cause::EntryTimeout), "{fault}");
    assert_eq!(fault.operation, Some(OperationKind::AllGatherHeads));
    assert_eq!((fault.epoch, fault.expected), (epoch, epoch), "{fault}");
    assert!(fault.seen < epoch, "{fault}");
    assert_eq!(fault.late_rank, Some(Rank(1)), "{fault}");
    assert_eq!(fault.late_ranks, [Rank(1)], "{fault}");
    assert!(
        fault.waited >= FAIL && fault.waited <= told + DRIFT,
        "{fault}"
    );
    let warning = seat.channel.warning().unwrap().unwrap();
    assert_eq!((warning.epoch, warning.late_rank), (epoch, Some(Rank(1))));
    assert!(warning.waited >= WARN && warning.waited < fault.waited);
    seat.check_verdict(Cause::EntryTimeout, epoch);
    if work != Work::Eager {
        assert_eq!(seat.copied(), seat.verdict());
    }
    seat.check_failed(work);
}

/// Rank 1: rank 0's poison lies in its memory, and nothing has looked at it yet.
fn comes_too_late(seat: &mut Seat<'_>, work: Work, epoch: u64, event: &OwnedFd) {
    assert_eq!(seat.pool.faults().unwrap(), []);
    assert!(!is_readable(event, Duration::ZERO));
    let begin = Instant::now();
    seat.start(work).unwrap();
    seat.rest();
    seat.took(&format!("{work:?}: skipped"), begin.elapsed());
    let fault = fault(seat);
    assert_eq!((fault.cause, fault.epoch), (Some(Cause::Skipped), epoch));
    assert!(is_readable(event, SOON));
    assert_eq!(count(event), 1);
    seat.check_verdict(Cause::Skipped, epoch);
    seat.check_failed(work);
}

/// Rank 0 waits in an operation, and both ask for a reset: it fails by name, after half the group's timeout, and the pool can
/// only be closed.
///
/// # Panics
///
/// When it is not so.
pub fn a_reset_beside_a_wait_fails_by_name(
    driver: &Driver,
    transport: Transport,
    timeout: Duration,
) {
    let terms = Terms {
        fail: timeout * 3 / 4,
        ..Terms::patient(transport)
    };
    on_drivers(
        &[driver.clone(), driver.clone()],
        members(2),
        timeout,
        |member| {
            let mut seat = Seat::new(member, terms);
            seat.supply();
            if member.rank() == 0 {
                seat.start(Work::Eager).unwrap();
                seat.runs();
            }
            member.meet();
            let begin = Instant::now();
            let reset = seat.pool.reset();
            seat.took("reset refused", begin.elapsed());
            assert!(begin.elapsed() < timeout);
            let Err(Error::Setup { phase, failures }) = reset else {
                panic!("reset beside a running operation: {reset:?}");
            };
            assert_eq!((phase, failures[0].0), ("reset: drain", Rank(0)));
            let words = &failures[0].1;
            assert!(words.contains("device 0 still runs"), "{words}");
            let said = seat.start(Work::Eager).unwrap_err().to_string();
            assert!(said.contains("the pool can only be closed"), "{said}");
            // Its memory is still there.
            seat.channel.verdict().unwrap();
            seat.rest();
            if member.rank() == 0 {
                assert_eq!(fault(&seat).cause, Some(Cause::EntryTimeout));
            }
            member.meet();
            seat.close();
        },
    );
}
