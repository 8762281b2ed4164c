//! A rank that is late, and comes.

use std::slice::from_ref;
use std::time::{Duration, Instant};

use slabfence::driver::Driver;
use slabfence::group::Rank;
use slabfence::health::Health;
use slabfence::layout::{Cause, OperationKind, Transport};

use crate::events::is_readable;
use crate::injection::{Ledger, watched};
use crate::ranks::on_drivers;

use super::seat::{DECODE, LONG, Seat, Terms, Work, soon};
use super::{PATIENCE, members};

const WARN: Duration = Duration::from_millis(100);
/// Ranks of the scenario, whose driver calls are counted.
const SEATS: [usize; 2] = [0, 1];

/// Rank 1 comes past the warning limit, to an eager operation and to a replay. The record is there while rank 0's kernel still
/// waits, and is read without any call of the driver; the operation ends right, and nobody is told of a fault.
///
/// One at a time in a process: it counts driver calls.
///
/// # Panics
///
/// When it is not so.
pub fn a_late_rank_is_warned_of(driver: &Driver, transport: Transport) {
    let drivers = SEATS.map(|seat| {
        let api = watched(driver.api().clone(), seat);
        Driver::from_api(api).unwrap()
    });
    let terms = Terms {
        transport,
        warn: WARN,
        fail: LONG,
    };
    on_drivers(&drivers, members(2), PATIENCE, |member| {
        let ledger = Ledger::of(SEATS[member.rank() as usize]);
        ledger.arm(&[]);
        let mut seat = Seat::new(member, terms);
        let event = seat.pool.fault_event().unwrap();
        let event = event.try_clone_to_owned().unwrap();
        // A loaded host may have been warned of itself.
        seat.pool.reset().unwrap();
        for work in [Work::Eager, Work::Replay] {
            let epoch = seat.epoch();
            seat.supply();
            if member.rank() == 0 {
                let begin = Instant::now();
                seat.start(work).unwrap();
                ledger.step("looks", || is_warned_of(&seat, epoch));
                seat.took(&format!("{work:?}: warning read"), begin.elapsed());
                assert!(!ledger.step("control", || seat.is_at_rest()));
                let status = seat.status();
                assert_eq!(
                    (status.running, status.epoch),
                    (Some(true), Some(epoch + 1))
                );
                assert_eq!(status.warning, seat.channel.warning().unwrap());
                assert!(!is_readable(&event, Duration::from_millis(20)));
                assert!(!seat.is_at_rest(), "{work:?}");
                member.meet();
            } else {
                member.meet();
                if work == Work::Eager {
                    assert_eq!(seat.pool.health().unwrap(), Health::Healthy);
                }
                seat.start(work).unwrap();
            }
            seat.rest();
            seat.check_right(work);
            assert_eq!(seat.verdict(), 0);
            assert_eq!(seat.pool.faults().unwrap(), []);
            assert_ne!(seat.pool.health().unwrap(), Health::Failed);
        }
        assert!(!is_readable(&event, Duration::ZERO));
        seat.right();
        if member.rank() == 0 {
            let called = |step: &str| -> Vec<&str> {
                let points = ledger.points(0).into_iter();
                let points = points.filter(|point| point.step == step);
                points.map(|point| point.entry).collect()
            };
            assert_eq!(called("looks"), Vec::<&str>::new());
            assert!(called("control").contains(&"cuStreamQuery"));
        }
        seat.close();
    });
}

/// Waits for the warning of the operation at this epoch, a gather.
fn is_warned_of(seat: &Seat<'_>, epoch: u64) {
    let warning = || seat.channel.warning().unwrap();
    soon("warned", || {
        warning().is_some_and(|told| told.epoch == epoch)
    });
    soon("known to the pool", || {
        seat.pool.health().unwrap() == Health::Warned
    });
    let warning = warning().unwrap();
    assert_eq!(seat.pool.warnings().unwrap(), from_ref(&warning));
    assert_eq!(warning.channel, DECODE);
    assert_eq!(warning.operation, Some(OperationKind::AllGatherHeads));
    assert_eq!((warning.rank, warning.epoch), (Rank(0), epoch));
    assert_eq!(warning.late_rank, Some(Rank(1)));
    assert_eq!(warning.late_ranks, [Rank(1)]);
    assert!(warning.warning && warning.seen < epoch, "{warning}");
    assert_eq!(warning.expected, epoch);
    let late = [Cause::EntryTimeout, Cause::DataTimeout];
    assert!(late.contains(&warning.cause.unwrap()), "{warning}");
    assert!(warning.waited >= WARN && warning.waited < LONG, "{warning}");
    assert!(seat.channel.fault().unwrap().is_none());
    assert_eq!(seat.pool.faults().unwrap(), []);
}
