//! Operations that queue up behind one that waits in vain.

use std::thread;
use std::time::{Duration, Instant};

use slabfence::Error;
use slabfence::driver::Driver;
use slabfence::health::Health;
use slabfence::layout::{Cause, Transport};

use super::seat::{Seat, Terms, Work, soon};
use super::{fault, on_ranks, refuses, revives};

const FAIL: Duration = Duration::from_millis(400);

/// Rank 0 enqueues up to so many operations, of which the first waits for rank 1 in vain. A driver takes no more once its queue
/// is full, and keeps the caller until then; another thread is told of the failure all the same. Everything that was taken
/// ends, the caller comes back, and a reset brings the ranks, which have had different numbers of operations, together again.
///
/// # Panics
///
/// When it is not so.
pub fn a_queue_behind_a_wait_ends_with_it(driver: &Driver, transport: Transport, most: u64) {
    let terms = Terms {
        fail: FAIL,
        ..Terms::patient(transport)
    };
    on_ranks(driver, 2, |member| {
        let mut seat = Seat::new(member, terms);
        let epoch = seat.epoch();
        seat.supply();
        if member.rank() == 0 {
            let taken = queues_up(&seat, most);
            seat.rest();
            assert_eq!(fault(&seat).epoch, epoch);
            seat.check_verdict(Cause::EntryTimeout, epoch);
            seat.check_failed(Work::Eager);
            assert_eq!(seat.epoch(), epoch + taken);
            member.meet();
        } else {
            member.meet();
            seat.start(Work::Eager).unwrap();
            seat.rest();
            assert_eq!(fault(&seat).cause, Some(Cause::Skipped));
        }
        let fault = fault(&seat);
        refuses(&mut seat, &fault);
        revives(&mut seat, 2);
        seat.close();
    });
}

/// Enqueues until the channel refuses, and gives the number of operations that were taken.
fn queues_up(seat: &Seat<'_>, most: u64) -> u64 {
    let pool = &seat.pool;
    let begin = Instant::now();
    let (mut taken, mut longest) = (0, Duration::ZERO);
    let told = thread::scope(|threads| {
        let looks = threads.spawn(|| {
            soon("failed", || pool.health().unwrap() == Health::Failed);
            begin.elapsed()
        });
        while taken < most {
            let one = Instant::now();
            match seat.start_eager() {
                Ok(()) => taken += 1,
                Err(Error::Fault(_)) => break,
                Err(other) => panic!("{other}"),
            }
            longest = longest.max(one.elapsed());
        }
        looks.join().expect("a look")
    });
    seat.took("failure told beside the queue", told);
    seat.took(&format!("the longest of {taken} launches"), longest);
    taken
}
