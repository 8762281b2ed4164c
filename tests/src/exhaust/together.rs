//! Ranks that are threads of one process.

use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use slabfence::driver::Driver;
use slabfence::group::{Bootstrap, ThreadBootstrap};
use slabfence_emu::{Machine, Profile};

use super::lives::Lives;
use super::seats::Seats;
use super::{Injected, Seat, World};
use crate::adversary::{Adversary, Damage};
use crate::injection::{EXCHANGE, Ledger, Point, When, watched};
use crate::ranks::on_drivers;

/// How long ranks wait for one another where one fails.
const PATIENCE: Duration = Duration::from_secs(10);
/// Equal worlds among which the rounds are divided. Most of a round is waiting, for a peer that has failed or for a clock, so they
/// live at the same time. A round may leave something that keeps its machine's slot for good, and a process has twelve: enough
/// for three tests.
const WORLDS: usize = 3;

/// Makes a state on every rank of a world, lives through `round` with it undisturbed, and then once for every driver
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
    let tried = |points: &[Point]| {
        let (mut points, mut calls) = (points.to_vec(), 0..);
        points.retain(|point| {
            point.entry == EXCHANGE
                || calls
                    .next()
                    .is_some_and(|n: usize| n.is_multiple_of(world.stride))
        });
        points
    };
    let tried = divided(world, make, &round, tried, |lives, _, _, point| {
        lives.fail(std::slice::from_ref(point));
    });
    let points: Vec<Point> = tried.into_iter().map(|(point, ())| point).collect();
    Injected::of(&points)
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
    let rounds = |points: &[Point]| {
        let garbled = |point: &&Point| (point.entry, point.when) == (EXCHANGE, When::Garbled);
        let points: Vec<Point> = points.iter().filter(garbled).copied().collect();
        let mut rounds = Vec::new();
        for (which, &damage) in (0..).zip(damages) {
            let to = |point: &&Point| point.rank == (point.nth + which) % (world.ranks * stride);
            let here = points.iter().filter(to);
            rounds.extend(here.map(|&point| (damage, point)));
        }
        rounds
    };
    let lived = divided(
        world,
        make,
        &round,
        rounds,
        |lives, _, n, (damage, point)| {
            let mut next = lives.seat.damage.lock();
            *next.as_deref_mut().expect("the damage") = (*damage, n as u64 + 1);
            drop(next);
            lives.fail(std::slice::from_ref(point));
        },
    );
    lived.len()
}

/// Whose call fails after a first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Second {
    /// The other rank's.
    Other,
    /// The same rank's.
    Same,
}

/// [`every_call`] with two faults a round, of two ranks: each `stride`-th point, and after it each call and exchange that the
/// `second` rank makes only because of it, or where the other rank makes none the next of its own by the same stride. How many
/// pairs, and in how many of them both calls failed.
///
/// # Panics
///
/// As [`every_call`].
pub fn pairs_of_calls<S: Send>(
    second: Second,
    stride: usize,
    make: impl Fn(&Seat<'_>) -> S + Sync,
    round: impl Fn(&Seat<'_>, &mut S, Option<Point>) + Sync,
) -> (usize, usize) {
    let firsts = |points: &[Point]| points.iter().step_by(stride).copied().collect();
    let pair = |lives: &mut Lives<'_, S, _>, usual: &Usual<'_>, n: usize, &first: &Point| {
        lives.fail(&[first]);
        let now = lives.points(usual.ledgers);
        let same = second == Second::Same;
        let theirs = |points: &[Point]| -> Vec<Point> {
            let theirs = points
                .iter()
                .filter(|point| (point.rank == first.rank) == same);
            theirs.copied().collect()
        };
        let mut seconds = theirs(&now);
        // A drop prepares its thread a second time where that fails, and no third time.
        let twice = |point: &Point| first.prepares_a_thread() && point.prepares_a_thread();
        seconds.retain(|point| !(usual.points.contains(point) || same && twice(point)));
        if seconds.is_empty() && !same {
            let others = theirs(&usual.points);
            seconds.push(others[n * stride % others.len()]);
        }
        let both = seconds
            .iter()
            .map(|&second| lives.fail(&[first, second]).len() == 2);
        let both = both.filter(|both| *both).count();
        (seconds.len(), both)
    };
    let lived = divided(World::pushing(2), make, &round, firsts, pair);
    let sum = |(pairs, both), (_, (more, more_both))| (pairs + more, both + more_both);
    lived.into_iter().fold((0, 0), sum)
}

/// What ranks of a world do when nothing fails.
struct Usual<'a> {
    points: Vec<Point>,
    ledgers: &'a [&'static Ledger],
}

/// Lives through the rounds that `rounds` makes of the usual points, each by `live` in one of some equal worlds, which has its
/// number too. All rounds in their order, with what `live` has given.
fn divided<'r, S: Send, R: Fn(&Seat<'_>, &mut S, Option<Point>) + Sync, Q, T: Send>(
    world: World,
    make: impl Fn(&Seat<'_>) -> S + Sync,
    round: &'r R,
    rounds: impl Fn(&[Point]) -> Vec<Q> + Sync,
    live: impl Fn(&mut Lives<'_, S, &'r R>, &Usual<'_>, usize, &Q) -> T + Sync,
) -> Vec<(Q, T)>
where
    Q: PartialEq + fmt::Debug + Send,
{
    let one = |share: usize| {
        in_a_world(world, |seat, machine, ledgers| {
            let now = || machine.live();
            let mut lives = Lives::begin(seat, make(seat), round, &now, true);
            let usual = Usual {
                points: lives.points(ledgers),
                ledgers,
            };
            let all = rounds(&usual.points);
            let mine = (0..all.len()).skip(share).step_by(WORLDS);
            let lived = mine.map(|n| (n, live(&mut lives, &usual, n, &all[n])));
            let lived: Vec<(usize, T)> = lived.collect();
            lives.end();
            (all, lived)
        })
    };
    let worlds: Vec<_> = thread::scope(|scope| {
        let one = &one;
        let worlds: Vec<_> = (0..WORLDS)
            .map(|share| scope.spawn(move || one(share)))
            .collect();
        let ends = worlds.into_iter().map(|world| world.join());
        ends.map(|end| end.expect("a world's end")).collect()
    });
    let joined = worlds
        .into_iter()
        .reduce(|(all, mut lived), (other, of_other)| {
            assert_eq!(all, other, "the worlds' rounds");
            lived.extend(of_other);
            (all, lived)
        });
    let (all, mut lived) = joined.expect("worlds");
    lived.sort_by_key(|(n, _)| *n);
    assert!(lived.iter().map(|(n, _)| *n).eq(0..all.len()), "each once");
    let lived = lived.into_iter().map(|(_, given)| given);
    all.into_iter().zip(lived).collect()
}

/// Runs `body` as every rank of a world of threads whose calls are watched.
fn in_a_world<T: Send>(
    world: World,
    body: impl Fn(&Seat<'_>, &Machine, &[&'static Ledger]) -> T + Sync,
) -> T {
    let ranks = world.ranks;
    // Until the last driver that has their calls is gone.
    let seats = Seats::take(ranks as usize);
    let mut profile = Profile::named("h200-nvlink").expect("a profile");
    // Small allocations: pools are made thousands of times.
    profile.granularity = 1 << 16;
    let machine = Machine::new(profile, ranks).expect("a machine");
    let ledgers: Vec<&'static Ledger> = seats.iter().map(Ledger::of).collect();
    let drivers: Vec<Driver> = seats
        .iter()
        .map(|seat| watched(machine.api().expect("its table"), seat))
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
