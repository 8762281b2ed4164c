//! Ranks that are threads of one process.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use slabfence::driver::Driver;
use slabfence::group::{Bootstrap, ThreadBootstrap};
use slabfence_emu::{Machine, Profile};

use super::lives::Lives;
use super::{Injected, Seat, World};
use crate::adversary::{Adversary, Damage};
use crate::injection::{EXCHANGE, Ledger, Point, When, watched};
use crate::ranks::on_drivers;

/// How long ranks wait for one another where one fails.
const PATIENCE: Duration = Duration::from_secs(10);

/// Makes a state on every rank of a world, lives through `round` with it once undisturbed, and then once for every driver
/// call and exchange of its steps that the world fails, on every rank and in every way in which it can fail. What is alive after
/// a round is what was alive before. The number of points.
///
/// # Panics
///
/// When a rank does: these are tests.
pub fn every_call<S: Send>(
    world: World,
    make: impl Fn(&Seat<'_>) -> S + Sync,
    round: impl Fn(&Seat<'_>, &mut S, Option<Point>) + Sync,
) -> Injected {
    in_a_world(world, |seat, machine, ledgers| {
        let now = || machine.live();
        let mut lives = Lives::begin(seat, make(seat), &round, &now, true);
        let (mut points, mut calls) = (lives.points(ledgers), 0..);
        points.retain(|point| {
            point.entry == EXCHANGE
                || calls
                    .next()
                    .is_some_and(|n: usize| n.is_multiple_of(world.stride))
        });
        for point in &points {
            lives.fail(std::slice::from_ref(point));
        }
        lives.end();
        Injected::of(&points)
    })
}

/// [`every_call`] with an exchange a round of which messages come damaged: each exchange of the steps in each `stride`-th of
/// these ways, other ones at the next exchange, on one rank after another. How many rounds.
///
/// # Panics
///
/// As [`every_call`].
pub fn every_damage<S: Send>(
    world: World,
    damages: &[Damage],
    stride: u32,
    make: impl Fn(&Seat<'_>) -> S + Sync,
    round: impl Fn(&Seat<'_>, &mut S, Option<Point>) + Sync,
) -> usize {
    in_a_world(world, |seat, machine, ledgers| {
        let now = || machine.live();
        let mut lives = Lives::begin(seat, make(seat), &round, &now, true);
        let mut points = lives.points(ledgers);
        points.retain(|point| (point.entry, point.when) == (EXCHANGE, When::Garbled));
        let mut rounds = 0;
        for (which, &damage) in (0..).zip(damages) {
            let to = |point: &&Point| point.rank == (point.nth + which) % (world.ranks * stride);
            for point in points.iter().filter(to) {
                rounds += 1;
                let mut next = seat.damage.lock().unwrap_or_else(PoisonError::into_inner);
                *next = (damage, rounds as u64);
                drop(next);
                lives.fail(std::slice::from_ref(point));
            }
        }
        lives.end();
        rounds
    })
}

/// [`every_call`] with two faults a round, on two ranks of two: each `stride`-th point, and after it each call and exchange
/// that the other rank makes only because of it, or where that is none the next of its own by the same stride. How many
/// pairs, and in how many of them both calls failed.
///
/// # Panics
///
/// As [`every_call`].
pub fn pairs_of_calls<S: Send>(
    first_seat: usize,
    stride: usize,
    make: impl Fn(&Seat<'_>) -> S + Sync,
    round: impl Fn(&Seat<'_>, &mut S, Option<Point>) + Sync,
) -> (usize, usize) {
    in_a_world(World::pushing(2, first_seat), |seat, machine, ledgers| {
        let now = || machine.live();
        let mut lives = Lives::begin(seat, make(seat), &round, &now, true);
        let usual = lives.points(ledgers);
        let (mut pairs, mut both) = (0, 0);
        for (n, &first) in usual.iter().step_by(stride).enumerate() {
            lives.fail(&[first]);
            let now = lives.points(ledgers);
            let others = |points: &[Point]| -> Vec<Point> {
                let others = points.iter().filter(|point| point.rank != first.rank);
                others.copied().collect()
            };
            let mut seconds = others(&now);
            seconds.retain(|point| !usual.contains(point));
            if seconds.is_empty() {
                let others = others(&usual);
                seconds.push(others[n * stride % others.len()]);
            }
            for second in seconds {
                pairs += 1;
                both += usize::from(lives.fail(&[first, second]).len() == 2);
            }
        }
        lives.end();
        (pairs, both)
    })
}

/// Runs `body` as every rank of a world of threads whose calls are watched.
fn in_a_world<T: Send>(
    world: World,
    body: impl Fn(&Seat<'_>, &Machine, &[&'static Ledger]) -> T + Sync,
) -> T {
    let ranks = world.ranks;
    let mut profile = Profile::named("h200-nvlink").expect("a profile");
    // Small allocations: pools are made thousands of times.
    profile.granularity = 1 << 16;
    let machine = Machine::new(profile, ranks).expect("a machine");
    let seats: Vec<usize> = (world.first_seat..).take(ranks as usize).collect();
    let ledgers: Vec<&'static Ledger> = seats.iter().map(|&seat| Ledger::of(seat)).collect();
    let drivers: Vec<Driver> = seats
        .iter()
        .map(|&seat| watched(machine.api().expect("its table"), seat))
        .map(|api| Driver::from_api(api).expect("a driver"))
        .collect();
    let members = ThreadBootstrap::world(ranks).into_iter().zip(&ledgers);
    let members = members.map(|(member, ledger)| Adversary::new(member, ledger));
    let (damages, members): (Vec<_>, Vec<_>) = members
        .map(|member| (member.damage(), Arc::new(member) as Arc<dyn Bootstrap>))
        .unzip();
    let meetings: Vec<_> = ThreadBootstrap::world(ranks)
        .into_iter()
        .map(|member| Mutex::new(Some(member)))
        .collect();
    let results = on_drivers(&drivers, members, PATIENCE, |member| {
        let rank = member.rank() as usize;
        let mut meeting = meetings[rank]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let seat = Seat {
            member,
            contract: world.contract(),
            keeps: world.keeps,
            meeting: Arc::new(meeting.take().expect("one rank each")),
            ledger: ledgers[rank],
            faults: AtomicUsize::default(),
            damage: Arc::clone(&damages[rank]),
        };
        body(&seat, &machine, &ledgers)
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
    results.into_iter().next().expect("ranks")
}
