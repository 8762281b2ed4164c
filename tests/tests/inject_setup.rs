//! Every driver call and every exchange of a pool's creation failed: no rank has a pool, nothing is left, and the next
//! creation on the same group succeeds.

use slabfence::channel::{Pool, Ticket};
use slabfence::{Error, Result};
use slabfence_tests::exhaust::{Seat, every_call};
use slabfence_tests::injection::{EXCHANGE, Point};

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
fn create(seat: &Seat<'_>, point: Option<Point>, mut all: bool, first: Result<Pool>) -> Pool {
    let mut has = Has::of(first);
    for _ in 0..8 {
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
            let ended = (0..8).find(|_| seat.settle(point, &has.end()));
            assert!(ended.is_some(), "what is left cannot be given back");
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

/// Whether the next creation is tried on the spot: always where ranks have to find together again, and with two of them
/// where there was something to roll back. Else the next round's is the next one on the group.
fn is_worth_a_second(seat: &Seat<'_>, created: &Result<Pool>, point: Option<Point>) -> bool {
    match created {
        _ if point.is_none_or(|point| point.entry == EXCHANGE) => true,
        Err(Error::Setup { phase, .. }) => {
            seat.member.group.world() == 2 && *phase != "create: capability"
        }
        _ => true,
    }
}

fn every_point_of_a_creation(world: u32, first_seat: usize) {
    let round = |seat: &Seat<'_>, (): &mut (), point: Option<Point>| {
        let created = seat.step("create", || seat.member.pool(&seat.contract));
        let all = seat.settle(point, &created);
        if !is_worth_a_second(seat, &created, point) {
            return;
        }
        let pool = create(seat, point, all, created);
        if point.is_none_or(|point| point.entry == EXCHANGE) {
            pool.prepare(&["decode"]).expect("a channel");
            seat.operate(&pool, "decode");
        }
        pool.close().expect("closed");
    };
    let injected = every_call(world, first_seat, |_| (), round);
    println!("creation by {world} ranks: {injected:?}");
}

#[test]
fn what_fails_anywhere_in_a_creation_by_2_ranks_fails_it_and_the_next_one_succeeds() {
    every_point_of_a_creation(2, 0);
}

#[test]
fn what_fails_anywhere_in_a_creation_by_3_ranks_fails_it_and_the_next_one_succeeds() {
    every_point_of_a_creation(3, 2);
}
