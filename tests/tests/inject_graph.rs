//! Every driver call by which a graph and its executable are destroyed failed: what holds the channel then for good is told, and
//! every rank can leave the pool.

use std::time::Duration;

use slabfence::Error;
use slabfence::channel::{Contract, Pool};
use slabfence::driver::{Stream, drop_released};
use slabfence_tests::exhaust::{Captured, Seat, World, every_call};
use slabfence_tests::injection::Point;

/// No operation here waits for a rank that has failed, so none ends by its limit, on a loaded host either.
const FAIL: Duration = Duration::from_secs(20);

fn make(seat: &Seat<'_>) -> Pool {
    let contract = Contract {
        fail: FAIL,
        ..seat.contract.clone()
    };
    let pool = seat.member.pool(&contract).expect("a pool");
    // As a round leaves it.
    pool.prepare(&["decode"]).expect("a channel");
    pool.retire(&["decode"]).expect("retired");
    pool
}

/// A scope can be left, so it is no reason to keep memory. One of the points is enough, since each refusal takes its time.
fn refuse_with_a_scope(seat: &Seat<'_>, pool: &Pool, point: Point) {
    let here = (point.rank, point.entry) == (seat.member.rank(), "cuGraphExecDestroy");
    if here && point.rank == 0 {
        let stream = Stream::new(&seat.member.device).expect("a stream");
        let scope = pool.capture("decode", &stream).expect("a scope");
        let left = pool.abandon();
        assert!(matches!(left, Err(Error::Refused { .. })), "{left:?}");
        scope.finish().expect("left");
    }
}

fn destroy(seat: &Seat<'_>, pool: &mut Pool, point: Option<Point>) {
    pool.prepare(&["decode"]).expect("a channel");
    let mut captured = Captured::new(seat, pool, "decode");
    captured.replay(seat, 1);
    let Captured {
        executable, graph, ..
    } = captured;
    let destroyed = seat.step("destroy", || {
        drop((executable, graph));
        Ok(())
    });
    destroyed.expect("a drop tells nothing");
    drop_released();
    seat.meet("");
    let taken = match point {
        // The close is refused as the retirement is.
        Some(point) if point.strays() && point.entry == "cuGraphDestroy" => pool.close(),
        _ => pool.retire(&["decode"]),
    };
    match point.filter(Point::strays) {
        None => taken.expect("nothing holds the channel"),
        Some(point) => {
            refuse_with_a_scope(seat, pool, point);
            seat.give_up(point, pool, "decode", taken);
            *pool = make(seat);
        }
    }
}

#[test]
fn a_graph_that_the_driver_does_not_destroy_is_told_of_and_every_rank_can_leave_its_pool() {
    let world = World::pushing(2);
    let injected = every_call(world, make, destroy);
    injected.tell("a graph's end", world, 44, 0);
}
