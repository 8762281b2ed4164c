//! What a failed creation could not give back: a ticket for it on every rank that is needed, no other creation before it is
//! settled, and none after.

use std::sync::Arc;
use std::time::Duration;

use slabfence::Error;
use slabfence::channel::{Contract, Ticket};
use slabfence::driver::Driver;
use slabfence::group::{Bootstrap, ThreadBootstrap};
use slabfence_emu::{Live, Machine, Profile};
use slabfence_tests::adversary::Adversary;
use slabfence_tests::injection::{EXCHANGE, Ledger, Point, When, watched};
use slabfence_tests::ranks::{Member, on_drivers};

/// Lives through `body` as two ranks, on the seats from `first_seat` on, with the calls of their step "create" that fail. What
/// was alive in the end.
fn two_ranks(first_seat: usize, points: &[Point], body: impl Fn(&Member) + Sync) -> Live {
    let profile = Profile::named("h200-nvlink").expect("a profile");
    let machine = Machine::new(profile, 2).expect("a machine");
    let api = |rank| watched(machine.api().expect("its table"), first_seat + rank);
    let drivers = [0, 1].map(|rank| Driver::from_api(api(rank)).expect("a driver"));
    let members = ThreadBootstrap::world(2).into_iter().map(|member| {
        let ledger = Ledger::of(first_seat + member.rank().index());
        Arc::new(Adversary::new(member, ledger)) as Arc<dyn Bootstrap>
    });
    on_drivers(
        &drivers,
        members.collect(),
        Duration::from_secs(20),
        |member| {
            let ledger = Ledger::of(first_seat + member.rank() as usize);
            let mine = points.iter().filter(|point| point.rank == member.rank());
            let mine: Vec<Point> = mine.copied().collect();
            ledger.arm(&mine);
            ledger.step("create", || body(member));
            assert_eq!(ledger.hits(), mine.len());
        },
    );
    assert_eq!(machine.faults(), Vec::<String>::new());
    drop(drivers);
    machine.live()
}

fn contract() -> Contract {
    Contract::new(4, 64, 64, 8)
}

const fn point(rank: u32, entry: &'static str, nth: u32, when: When) -> Point {
    Point {
        rank,
        step: "create",
        entry,
        nth,
        when,
    }
}

/// The ticket of a creation that failed, and what it says.
fn ticket(member: &Member) -> (Box<Ticket>, String) {
    match member.pool(&contract()) {
        Err(error @ Error::Retained { .. }) => {
            let words = error.to_string();
            let Error::Retained { ticket, .. } = error else {
                unreachable!()
            };
            (ticket, words)
        }
        other => panic!("no ticket: {other:?}"),
    }
}

fn refusal(member: &Member) -> String {
    member.pool(&contract()).unwrap_err().to_string()
}

/// Four arenas get their own device's right; the fifth call is for the peer's.
const GRANT: u32 = 4;

#[test]
fn memory_that_a_roll_back_could_not_free_is_freed_by_its_ticket_before_the_next_creation() {
    let points = [
        point(1, "cuMemSetAccess", GRANT, When::Before),
        point(0, "cuMemUnmap", 2, When::Before),
        point(0, "cuMemUnmap", 4, When::Before),
    ];
    let live = two_ranks(0, &points, |member| {
        let (ticket, words) = ticket(member);
        assert!(
            words.starts_with("create: grant failed on rank 1"),
            "{words}"
        );
        let left = "(create: free failed on rank 0: rank 0: cuMemUnmap failed";
        assert!(words.contains(left), "{words}");
        let alone = ": call Ticket::retry on each rank that has a ticket; none waits for another";
        assert!(words.ends_with(alone), "{words}");
        let again =
            "create: pending failed on ranks 0, 1: rank 0: an earlier creation has left memory";
        assert!(refusal(member).starts_with(again));
        // The second attempt fails on rank 0 too; what is left concerns nobody else.
        assert_eq!(ticket.retry().is_err(), member.rank() == 0);
        if member.rank() == 0 {
            let again =
                "create: pending failed on rank 0: rank 0: an earlier creation has left memory";
            assert!(refusal(member).starts_with(again));
            ticket.retry().unwrap();
        } else {
            member.pool(&contract()).unwrap_err();
        }
        ticket.retry().unwrap();
        member.pool(&contract()).unwrap().close().unwrap();
    });
    assert_eq!(live, Live::default());
}

/// Exchanges of a creation, of threads: pending, arguments, contract, devices, capability, allocate, exchange, accept, grant.
const GRANTED: u32 = 8;

#[test]
fn ranks_that_did_not_learn_how_the_creation_ended_give_its_memory_back_together() {
    let points = [point(1, EXCHANGE, GRANTED + 1, When::After)];
    let live = two_ranks(2, &points, |member| {
        if member.rank() == 0 {
            // It went on, met rank 1 in its retry and closed with it.
            let words = refusal(member);
            assert!(
                words.starts_with("create: self test, prepare failed on rank 1"),
                "{words}"
            );
        } else {
            let (ticket, words) = ticket(member);
            let together =
                "; its memory is kept, since peers may use it: call Ticket::retry on all ranks";
            assert!(words.ends_with(together), "{words}");
            while ticket.retry().is_err() {}
            ticket.retry().unwrap();
        }
        member.pool(&contract()).unwrap().close().unwrap();
    });
    assert_eq!(live, Live::default());
}

#[test]
fn a_rank_with_nothing_left_gets_a_ticket_where_others_need_it() {
    // Rank 1 knows that nobody has gone on without it, rank 0 does not know where rank 1 is.
    let points = [point(1, EXCHANGE, GRANTED, When::After)];
    let live = two_ranks(4, &points, |member| {
        let ticket = if member.rank() == 1 {
            assert!(refusal(member).contains("the line is cut"));
            // It meets rank 0 in another step, and then in the same.
            assert!(refusal(member).contains("it is in 'create: commit'"));
            let (ticket, words) = ticket(member);
            let said = "create: pending failed on rank 0: rank 0: an earlier creation has left memory that peers may use";
            assert!(words.starts_with(said), "{words}");
            ticket
        } else {
            let (ticket, words) = ticket(member);
            assert!(words.contains("it is in 'create: pending'"), "{words}");
            assert!(refusal(member).starts_with("create: pending failed on rank 0"));
            ticket
        };
        ticket.retry().unwrap();
        member.pool(&contract()).unwrap().close().unwrap();
    });
    assert_eq!(live, Live::default());
}
