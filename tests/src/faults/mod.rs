//! What operations that wait, that fail and that overlap leave, and what a reset makes good: scenarios of ranks that are
//! threads. The same on emulated machines and on real drivers, on a device each or on one that they share.
//!
//! Every wait is bounded: by the limits of the operations where a kernel waits, and by a deadline where a host does.

mod away;
mod differ;
mod overlap;
mod queue;
mod seat;
mod wait;

use std::slice::from_ref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use slabfence::Error;
use slabfence::driver::Driver;
use slabfence::group::{Bootstrap, ThreadBootstrap};
use slabfence::health::{FaultReport, Health};

use crate::ranks::{Member, on_drivers};

use seat::{Seat, Work};

pub use away::{a_rank_that_stays_away_fails_the_operation, a_reset_beside_a_wait_fails_by_name};
pub use differ::{different_operations_are_diagnosed, epochs_pass_the_limits_of_32_bits};
pub use overlap::{a_failure_ends_the_waits_of_the_others, overlaps_are_reported};
pub use queue::a_queue_behind_a_wait_ends_with_it;
pub use wait::a_late_rank_is_warned_of;

/// How long ranks wait for one another in collective host calls. A rank that panics ends the others' wait at once.
const PATIENCE: Duration = Duration::from_secs(20);

fn on_ranks<T: Send>(driver: &Driver, world: u32, body: impl Fn(&Member) -> T + Sync) -> Vec<T> {
    let drivers: Vec<Driver> = (0..world).map(|_| driver.clone()).collect();
    on_drivers(&drivers, members(world), PATIENCE, body)
}

fn members(world: u32) -> Vec<Arc<dyn Bootstrap>> {
    let members = ThreadBootstrap::world(world).into_iter();
    let members = members.map(|member| Arc::new(member) as Arc<dyn Bootstrap>);
    members.collect()
}

/// The report of the channel's first failure. The pool's health can say that there is one some microseconds before its record
/// is whole: another warp wrote it.
fn fault(seat: &Seat<'_>) -> FaultReport {
    seat::soon("told of", || seat.channel.fault().unwrap().is_some());
    assert_eq!(seat.pool.health().unwrap(), Health::Failed);
    let fault = seat.channel.fault().unwrap().unwrap();
    assert_eq!(seat.pool.faults().unwrap(), from_ref(&fault));
    assert_eq!(
        (&*fault.channel, fault.rank),
        (seat::DECODE, seat.member.group.me())
    );
    assert!(!fault.warning, "{fault}");
    fault
}

/// Holds that the channel takes no further operation, and says why.
fn refuses(seat: &mut Seat<'_>, fault: &FaultReport) {
    let refused = seat.start(Work::Eager);
    let Err(Error::Fault(report)) = refused else {
        panic!("a channel that has failed gave {refused:?}");
    };
    assert_eq!(*report, *fault);
}

/// Resets on all ranks, after which nothing is known of a fault and everything is right, graphs of before included.
fn revives(seat: &mut Seat<'_>, rounds: u32) {
    let begin = Instant::now();
    seat.pool.reset().unwrap();
    seat.took("reset", begin.elapsed());
    assert_eq!(seat.pool.health().unwrap(), Health::Healthy);
    assert_eq!(seat.pool.faults().unwrap(), []);
    assert_eq!(seat.pool.warnings().unwrap(), []);
    assert_eq!(seat.verdict(), 0);
    (0..rounds).for_each(|_| seat.right());
}
