//! Every exchange by which a subgroup is formed failed: the ranks agree or find out, the next attempt succeeds, and no descriptor
//! and no thread is left. One test, alone in its process.

use std::time::Duration;

use slabfence::group::{Group, Rank};
use slabfence::{Error, Result};
use slabfence_tests::exhaust::{Seat, World, every_call};
use slabfence_tests::injection::Point;
use slabfence_tests::usage::Usage;

/// A rank that has lost a word keeps the others waiting for half of this.
const PATIENCE: Duration = Duration::from_secs(1);

/// The first and the last rank become the last and the first of a subgroup; one between them is in none.
fn form(seat: &Seat<'_>) -> Result<Option<Group>> {
    let group = seat.member.group.clone().with_timeout(PATIENCE);
    let last = group.world() - 1;
    match seat.member.rank() {
        rank if rank == 0 || rank == last => group.subgroup(&[Rank(last), Rank(0)]),
        _ => group.subgroup(&[]),
    }
}

fn subgroup(seat: &Seat<'_>, (): &mut (), point: Option<Point>) {
    let mut formed = seat.step("subgroup", || form(seat));
    for _ in 0..8 {
        let all = seat.settle(point, &formed);
        if let Ok(Some(group)) = &formed {
            // Where a rank has lost the last word only, the others have a subgroup, and learn here that it left.
            let met = group.verdict("met", &Ok(()));
            let left = matches!(met, Err(Error::Bootstrap(_) | Error::Timeout { .. }));
            assert!(met.is_ok() || left && !all, "{met:?}");
            assert!(met.is_ok() || point.is_some());
        }
        if all {
            return work(seat, formed.expect("all have"));
        }
        drop(formed);
        seat.meet("");
        formed = form(seat);
    }
    panic!("no subgroup in eight attempts");
}

/// A pool of the subgroup.
fn work(seat: &Seat<'_>, group: Option<Group>) {
    if let Some(group) = group {
        let member = seat.member.of(group);
        let pool = member.pool(&seat.contract).expect("a pool");
        pool.close().expect("closed");
    }
    seat.meet("");
}

fn every_point_of_a_subgroup(world: World, exchanges: usize) {
    let injected = every_call(world, |_| (), subgroup);
    assert_eq!(injected.calls, 0);
    injected.tell("subgroup", world, 0, exchanges);
}

#[test]
fn what_fails_anywhere_in_the_forming_of_a_subgroup_is_formed_again() {
    let open = || {
        let Usage {
            descriptors,
            threads,
            ..
        } = Usage::still();
        (descriptors, threads)
    };
    // What a process makes once and keeps.
    every_point_of_a_subgroup(World::pushing(2), 36);
    let before = open();
    every_point_of_a_subgroup(World::pushing(3), 54);
    assert_eq!(open(), before);
}
