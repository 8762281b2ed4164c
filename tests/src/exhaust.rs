//! Living through something again and again, each time with another failure.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use slabfence::channel::{Contract, Pool};
use slabfence::driver::{Driver, Stream};
use slabfence::group::{Bootstrap, ThreadBootstrap};
use slabfence_emu::{Live, Machine, Profile};

use crate::adversary::Adversary;
use crate::injection::{EXCHANGE, Effect, Ledger, Point, When, watched};
use crate::ranks::{Gather, Member, on_drivers};

/// How long ranks wait for one another where one fails.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often ranks try what has failed.
const TRIES: usize = 8;
/// Longer than any round may take.
const BOUND: Duration = Duration::from_secs(30);

/// A small contract, whose waits end soon.
pub fn contract(world: u32) -> Contract {
    Contract {
        fail: Duration::from_millis(500),
        max_channels: 2,
        max_grid: 4,
        ..Contract::new(2 * world, 16, 16, 2)
    }
}

/// One rank of the world that fails again and again.
#[derive(Debug)]
pub struct Seat<'a> {
    /// The rank.
    pub member: &'a Member,
    /// Its contract.
    pub contract: Contract,
    meeting: ThreadBootstrap,
    ledger: &'static Ledger,
}

impl Seat<'_> {
    /// Does `body` as a step of this name, in which calls are counted and may fail.
    pub fn step<T>(&self, name: &'static str, body: impl FnOnce() -> T) -> T {
        self.ledger.step(name, body)
    }

    /// Waits for all ranks, and gives what each says.
    ///
    /// # Panics
    ///
    /// When a rank does not come.
    pub fn meet(&self, say: &str) -> Vec<String> {
        let deadline = Instant::now() + BOUND;
        let parts = self.meeting.all_gather(say.as_bytes(), deadline);
        let parts = parts.expect("every rank comes in time").into_iter();
        parts
            .map(|part| String::from_utf8_lossy(&part).into_owned())
            .collect()
    }

    /// Ends a step whose call gave `result`. A driver call that failed has the same result on all ranks. After an exchange
    /// that failed, ranks may still wait for one another in it: they do no more afterwards. Whether all succeeded.
    ///
    /// # Panics
    ///
    /// When ranks differ where they must not.
    pub fn settle<T>(&self, point: Option<Point>, result: &slabfence::Result<T>) -> bool {
        let exchange = point.is_some_and(|point| point.entry == EXCHANGE);
        if exchange {
            let group = &self.member.group;
            let tries = (0..TRIES).find(|_| group.verdict("settled", &Ok(())).is_ok());
            assert!(tries.is_some(), "the ranks do not meet any more");
        }
        let own = match result {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        let said = self.meet(&own);
        let alike = said.iter().all(|words| *words == own);
        assert!(exchange || alike, "{said:?}");
        said.iter().all(String::is_empty)
    }

    /// Closes a pool on all ranks, however often that has to be tried.
    ///
    /// # Panics
    ///
    /// When that does not succeed.
    pub fn close(&self, point: Option<Point>, pool: &Pool) {
        let closed = (0..TRIES).find(|_| self.settle(point, &pool.close()));
        assert!(closed.is_some(), "the pool cannot be closed");
    }

    /// Runs an operation on the channel, and finds it right.
    ///
    /// # Panics
    ///
    /// When it is not.
    pub fn operate(&self, pool: &Pool, channel: &str) {
        let member = self.member;
        let channel = pool.channel(channel).expect("a channel");
        let stream = Stream::new(&member.device).expect("a stream");
        let gather = Gather::new(member, &self.contract, 1).expect("buffers");
        gather.fill(member.rank(), 1).expect("an upload");
        self.meet("");
        gather.enqueue(&channel, &stream).expect("enqueued");
        stream.synchronize().expect("done");
        assert!(gather.output().expect("an output") == gather.expected(1));
    }
}

/// What is left of an object whose end failed before it had an effect.
fn leak(point: Option<Point>) -> Live {
    let mut live = Live::default();
    let Some(Point {
        entry,
        when: When::Before,
        ..
    }) = point
    else {
        return live;
    };
    if entry != EXCHANGE && Effect::of(entry) == Effect::Ends {
        match entry {
            "cuMemFree" => live.allocations = 1,
            "cuMemFreeHost" => live.host_allocations = 1,
            "cuMemRelease" => live.physical = 1,
            "cuMemAddressFree" => live.reservations = 1,
            "cuStreamDestroy" => live.streams = 1,
            "cuModuleUnload" => live.modules = 1,
            other => panic!("what does a failed {other} leave?"),
        }
    }
    live
}

fn sum(a: Live, b: Live) -> Live {
    Live {
        contexts: a.contexts + b.contexts,
        allocations: a.allocations + b.allocations,
        host_allocations: a.host_allocations + b.host_allocations,
        physical: a.physical + b.physical,
        mappings: a.mappings + b.mappings,
        reservations: a.reservations + b.reservations,
        streams: a.streams + b.streams,
        modules: a.modules + b.modules,
        ..a
    }
}

/// How many points were tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Injected {
    /// Of the driver's calls.
    pub calls: usize,
    /// Of exchanges.
    pub exchanges: usize,
}

/// Makes a state on every rank of a world, lives through `round` with it once undisturbed, and then once for every driver
/// call and exchange of its steps, on every rank and in every way in which it can fail. What is alive after a round is what was
/// alive before. The number of points.
///
/// # Panics
///
/// When a rank does: these are tests.
pub fn every_call<S: Send>(
    world: u32,
    first_seat: usize,
    make: impl Fn(&Seat<'_>) -> S + Sync,
    round: impl Fn(&Seat<'_>, &mut S, Option<Point>) + Sync,
) -> Injected {
    let mut profile = Profile::named("h200-nvlink").expect("a profile");
    // Small allocations: pools are made thousands of times.
    profile.granularity = 1 << 16;
    let machine = Machine::new(profile, world).expect("a machine");
    let seats: Vec<usize> = (first_seat..).take(world as usize).collect();
    let drivers: Vec<Driver> = seats
        .iter()
        .map(|&seat| watched(machine.api().expect("its table"), seat))
        .map(|api| Driver::from_api(api).expect("a driver"))
        .collect();
    let members = ThreadBootstrap::world(world).into_iter();
    let members = members.zip(&seats).map(|(member, &seat)| {
        Arc::new(Adversary::new(member, Ledger::of(seat))) as Arc<dyn Bootstrap>
    });
    let meetings: Vec<_> = ThreadBootstrap::world(world)
        .into_iter()
        .map(|member| Mutex::new(Some(member)))
        .collect();
    let points = on_drivers(&drivers, members.collect(), PATIENCE, |member| {
        let rank = member.rank();
        let mut meeting = meetings[rank as usize]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let seat = Seat {
            member,
            contract: contract(world),
            meeting: meeting.take().expect("one rank each"),
            ledger: Ledger::of(seats[rank as usize]),
        };
        let mut state = make(&seat);
        seat.ledger.arm(&[]);
        // Twice: what is made once and kept is none of a round's.
        let live = |state: &mut S, point| {
            // A failed call may leave the thread with another context or capture mode.
            let round = || round(&seat, state, point);
            let lived = thread::scope(|threads| threads.spawn(round).join());
            assert!(lived.is_ok(), "{point:?}");
        };
        live(&mut state, None);
        seat.ledger.arm(&[]);
        seat.meet("");
        let mut alive = machine.live();
        seat.meet("");
        live(&mut state, None);
        seat.meet("");
        assert_eq!(machine.live(), alive);
        let points: Vec<Point> = (0..world)
            .flat_map(|rank| Ledger::of(seats[rank as usize]).points(rank))
            .collect();
        assert!(!points.is_empty());
        let mut wrong = Vec::new();
        for (at, &point) in points.iter().enumerate() {
            seat.meet("");
            let mine = point.rank == rank;
            seat.ledger.arm(if mine { &points[at..=at] } else { &[] });
            let begin = Instant::now();
            live(&mut state, Some(point));
            assert!(begin.elapsed() < BOUND, "{point}");
            assert_eq!(seat.ledger.hits(), usize::from(mine), "{point}");
            seat.ledger.arm(&[]);
            seat.meet("");
            let now = machine.live();
            if now != sum(alive, leak(Some(point))) {
                wrong.push(format!("{point}: {now:?} after {alive:?}"));
            }
            alive = now;
        }
        // All have looked before the first goes.
        seat.meet("");
        assert!(wrong.is_empty(), "{wrong:#?}");
        let exchanges = points.iter().filter(|point| point.entry == EXCHANGE);
        let exchanges = exchanges.count();
        Injected {
            calls: points.len() - exchanges,
            exchanges,
        }
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
    points.into_iter().next().expect("ranks")
}
