//! Messages that come damaged to one rank, in every way, and at every exchange of a pool's life: that rank says so, nothing is
//! left, and with whole messages the next creation or close succeeds.

use slabfence::channel::Pool;
use slabfence_tests::adversary::Damage;
use slabfence_tests::exhaust::{Seat, World, close, create, every_damage};
use slabfence_tests::injection::Point;

/// Those that are others with a third rank.
const OF_THREE: [Damage; 4] = [
    Damage::Fewer,
    Damage::Swapped,
    Damage::Echoed,
    Damage::Anything,
];

/// Makes a state and lives through `round` with its messages damaged, at each exchange in each `stride`-th of these ways.
fn damaged<S: Send>(
    what: &str,
    world: u32,
    (damages, stride): (&[Damage], u32),
    make: fn(&Seat<'_>) -> S,
    round: fn(&Seat<'_>, &mut S, Option<Point>),
) {
    let rounds = every_damage(World::pushing(world), damages, stride, make, round);
    println!("{what} by {world} ranks: messages damaged {rounds} times");
}

fn damaged_creations(world: u32, damages: (&[Damage], u32)) {
    let round = |seat: &Seat<'_>, (): &mut (), point| create(seat, point);
    damaged("creation", world, damages, |_| (), round);
}

fn damaged_closes(world: u32, damages: (&[Damage], u32)) {
    damaged("close", world, damages, |_| None, close);
}

#[test]
fn a_creation_by_2_ranks_to_one_of_which_messages_come_damaged_fails_and_the_next_one_succeeds() {
    damaged_creations(2, (&Damage::ALL, 1));
}

#[test]
fn a_creation_by_3_ranks_to_one_of_which_messages_come_damaged_fails_and_the_next_one_succeeds() {
    damaged_creations(3, (&OF_THREE, 2));
}

#[test]
fn a_close_by_2_ranks_to_one_of_which_messages_come_damaged_leaves_a_pool_that_closes() {
    damaged_closes(2, (&Damage::ALL, 1));
}

#[test]
fn a_close_by_3_ranks_to_one_of_which_messages_come_damaged_leaves_a_pool_that_closes() {
    damaged_closes(3, (&OF_THREE, 1));
}

fn pool(seat: &Seat<'_>) -> Pool {
    let pool = seat.member.pool(&seat.contract).expect("a pool");
    pool.prepare(&["a"]).expect("a channel");
    pool
}

/// Resets a pool, retires its channel and prepares it anew: a rank that fails stops, and with it the others.
fn work(seat: &Seat<'_>, of: &mut Pool, point: Option<Point>) {
    let done = seat.step("work", || {
        of.reset()?;
        of.retire(&["a"])?;
        of.prepare(&["a"])
    });
    if !seat.settle(point, &done) {
        seat.close(point, of);
        *of = pool(seat);
    }
}

#[test]
fn calls_of_2_ranks_to_one_of_which_messages_come_damaged_leave_a_pool_that_closes() {
    damaged("calls", 2, (&Damage::ALL, 2), pool, work);
}
