//! Rounds that create a pool, and close it.

use std::sync::atomic::Ordering;

use slabfence::channel::{Pool, Ticket};
use slabfence::{Error, Result};

use super::{Captured, Seat, TRIES};
use crate::injection::{EXCHANGE, Point};

/// What a rank has after a creation.
enum Has {
    Nothing,
    Pool(Pool),
    Ticket(Box<Ticket>),
}

impl Has {
    fn of(created: Result<Pool>) -> Self {
        match created {
            Ok(pool) => Self::Pool(pool),
            Err(Error::Retained { ticket, .. }) => Self::Ticket(ticket),
            Err(_) => Self::Nothing,
        }
    }

    /// Ends it with the other ranks.
    fn end(&self) -> Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Pool(pool) => pool.close(),
            Self::Ticket(ticket) => ticket.retry(),
        }
    }
}

/// Goes on after a first creation until all ranks have a pool.
fn go_on(seat: &Seat<'_>, point: Option<Point>, mut all: bool, first: Result<Pool>) -> Pool {
    let mut has = Has::of(first);
    for attempt in 0..8 {
        match has {
            Has::Pool(pool) if all => return pool,
            _ => {}
        }
        let held = seat.meet(match has {
            Has::Nothing => "",
            _ => "something",
        });
        let holding = held.iter().filter(|held| !held.is_empty()).count();
        if holding == held.len() {
            // Each has a pool or a ticket.
            let mut own = false;
            let ended = (0..8).find(|_| {
                let end = has.end();
                own = end.is_ok();
                seat.settle(point, &end)
            });
            // By a second fault the rank whose exchange was struck may have had only what it needed nobody for: the other's part
            // of what it has left that one gets in the next creation.
            let second = seat.faults.load(Ordering::Relaxed) > 1;
            let alone = point.is_some_and(|point| {
                point.entry == EXCHANGE && own == (point.rank == seat.member.rank())
            });
            assert!(
                ended.is_some() || second && alone,
                "what is left cannot be given back"
            );
            if own {
                has = Has::Nothing;
            }
        } else if attempt > 0
            && let Has::Ticket(ticket) = &has
        {
            // The others have been told in the attempt before, and got no ticket: they are not needed.
            let ended = (0..8).find(|_| ticket.retry().is_ok());
            assert!(ended.is_some(), "what is left here cannot be given back");
            has = Has::Nothing;
        }
        let again = seat.member.pool(&seat.contract);
        all = seat.settle(point, &again);
        has = match (has, Has::of(again)) {
            (held @ Has::Ticket(_), _) => held,
            (_, new) => new,
        };
    }
    panic!("no pool in eight attempts");
}

/// Whether the next creation is tried on the spot: always where ranks have to find together again, behind the first call of
/// each entry, and with two ranks where there was something to roll back. Else the next round's is the next one on the group.
fn is_worth_a_second(seat: &Seat<'_>, created: &Result<Pool>, point: Option<Point>) -> bool {
    match created {
        _ if point.is_none_or(|point| point.entry == EXCHANGE || point.nth == 0) => true,
        Err(Error::Setup { phase, .. }) => {
            seat.member.group.world() == 2 && *phase != "create: capability"
        }
        _ => true,
    }
}

/// Creates a pool in a step of this name, again where the first attempt fails, and uses and closes it.
///
/// # Panics
///
/// When that does not succeed.
pub fn create(seat: &Seat<'_>, point: Option<Point>) {
    let created = seat.step("create", || seat.member.pool(&seat.contract));
    let all = seat.settle(point, &created);
    if !is_worth_a_second(seat, &created, point) {
        return;
    }
    let pool = go_on(seat, point, all, created);
    if point.is_none_or(|point| point.entry == EXCHANGE) {
        pool.prepare(&["decode"]).expect("a channel");
        seat.operate(&pool, "decode");
    }
    pool.close().expect("closed");
}

/// [`create`] and [`close`] of one pool.
///
/// # Panics
///
/// When that does not succeed.
pub fn create_and_close(seat: &Seat<'_>, point: Option<Point>) {
    let created = seat.step("create", || seat.member.pool(&seat.contract));
    let all = seat.settle(point, &created);
    let pool = go_on(seat, point, all, created);
    if point.is_none_or(|point| point.entry == EXCHANGE) {
        pool.prepare(&["decode"]).expect("a channel");
        seat.operate(&pool, "decode");
    }
    let closed = seat.step("close", || pool.close());
    if !seat.settle(point, &closed) {
        seat.close(point, &pool);
    }
}

/// Creates and uses a pool, and closes it in a step of this name, again where the first attempt fails. The pool is kept until the
/// next one is made: its drop would give back what its close has left.
///
/// # Panics
///
/// When that does not succeed.
pub fn close(seat: &Seat<'_>, kept: &mut Option<Pool>, point: Option<Point>) {
    *kept = None;
    let pool = seat.member.pool(&seat.contract).expect("a pool");
    pool.prepare(&["decode"]).expect("a channel");
    seat.operate(&pool, "decode");
    end(seat, kept, point, pool);
}

/// [`close`] of a pool of which a graph was replayed, and destroyed right before.
///
/// # Panics
///
/// When that does not succeed.
pub fn close_after_a_graph(seat: &Seat<'_>, kept: &mut Option<Pool>, point: Option<Point>) {
    *kept = None;
    let pool = seat.member.pool(&seat.contract).expect("a pool");
    pool.prepare(&["decode"]).expect("a channel");
    let mut graph = Captured::new(seat, &pool, "decode");
    graph.replay(seat, 1);
    // What it has held goes in the close.
    drop(graph);
    end(seat, kept, point, pool);
}

fn end(seat: &Seat<'_>, kept: &mut Option<Pool>, point: Option<Point>, pool: Pool) {
    let closed = seat.step("close", || pool.close());
    if !seat.settle(point, &closed) {
        seat.close(point, &pool);
    }
    *kept = Some(pool);
}

/// Creates and uses a pool, and abandons it in a step of this name, again where the first attempt fails: alone, so what fails on
/// a rank is told there and nowhere else. Processes keep no memory, threads what the others may use. The pool is kept as by [`close`].
///
/// # Panics
///
/// When that does not succeed.
pub fn abandon(seat: &Seat<'_>, kept: &mut Option<Pool>, point: Option<Point>) {
    *kept = None;
    let pool = seat.member.pool(&seat.contract).expect("a pool");
    pool.prepare(&["decode"]).expect("a channel");
    seat.operate(&pool, "decode");
    // None runs any more that could write to this rank.
    seat.meet("");
    let mut left = seat.step("abandon", || pool.abandon());
    let mine = point.is_some_and(|point| point.rank == seat.member.rank());
    assert!(mine || left.is_ok(), "{left:?} for {point:?}");
    for _ in 0..TRIES {
        match left {
            Ok(left) => {
                assert_eq!(left.kept > 0, seat.keeps, "{left:?}");
                *kept = Some(pool);
                return;
            }
            Err(_) => left = pool.abandon(),
        }
    }
    panic!("{left:?}");
}
