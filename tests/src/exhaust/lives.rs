//! One round after another, each with other failures, and what each leaves.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use slabfence::layout::Transport;
use slabfence_emu::Live;

use super::{BOUND, Seat};
use crate::injection::{EXCHANGE, Effect, Ledger, Point, When};

/// What is left in a world of so many ranks of an object whose end failed before it had an effect, or of a graph that was made
/// and not given.
pub(super) fn leak(point: Point, ranks: u32, transport: Transport) -> Live {
    let Point { entry, when, .. } = point;
    let mut live = Live::default();
    if point.strays() {
        // It holds the pool, which every rank has abandoned: its own keeps all arenas, and beside them the page, two modules,
        // and the buffer and stream by which counters are read. The others keep the arenas that this one may use.
        let ranks = ranks as usize;
        let arenas = 3 * ranks + 1;
        // Of its one channel: a local block in four parts, and of each rank flags a slot and phase, three lines of each source,
        // and each source's inboxes or a rank's own outboxes.
        let staged = match transport {
            Transport::Pull => 2,
            _ => 2 * ranks,
        };
        let announced = 4 + ranks * (4 + 3 * ranks + staged);
        let executable = usize::from(entry == "cuGraphExecDestroy");
        return Live {
            physical: arenas,
            mappings: arenas,
            reservations: arenas,
            host_allocations: 2,
            modules: 2,
            streams: 1,
            graphs: 1 - executable,
            execs: executable,
            user_objects: 1,
            announced,
            ..live
        };
    }
    if when == When::Before && entry != EXCHANGE && Effect::of(entry) == Effect::Ends {
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

/// Of each number of two of these what `of` makes of them.
fn each(a: Live, b: Live, of: fn(usize, usize) -> usize) -> Live {
    Live {
        contexts: of(a.contexts, b.contexts),
        allocations: of(a.allocations, b.allocations),
        host_allocations: of(a.host_allocations, b.host_allocations),
        physical: of(a.physical, b.physical),
        mappings: of(a.mappings, b.mappings),
        reservations: of(a.reservations, b.reservations),
        streams: of(a.streams, b.streams),
        events: of(a.events, b.events),
        modules: of(a.modules, b.modules),
        captures: of(a.captures, b.captures),
        graphs: of(a.graphs, b.graphs),
        execs: of(a.execs, b.execs),
        user_objects: of(a.user_objects, b.user_objects),
        announced: of(a.announced, b.announced),
        abandoned: of(a.abandoned, b.abandoned),
    }
}

/// The rounds of one rank.
pub(super) struct Lives<'a, S, R> {
    pub seat: &'a Seat<'a>,
    pub state: S,
    pub round: R,
    /// What is alive: on one machine of all ranks, or on this rank's own.
    pub now: &'a (dyn Fn() -> Live + Sync),
    pub one_machine: bool,
    alive: Live,
    /// What a round keeps for good.
    keeps: Live,
    wrong: Vec<String>,
}

impl<'a, S: Send, R: Fn(&Seat<'_>, &mut S, Option<Point>) + Sync> Lives<'a, S, R> {
    /// Two undisturbed rounds, since what is made once and kept is none of a round's.
    pub fn begin(
        seat: &'a Seat<'a>,
        state: S,
        round: R,
        now: &'a (dyn Fn() -> Live + Sync),
        one_machine: bool,
    ) -> Self {
        let mut lives = Self {
            seat,
            state,
            round,
            now,
            one_machine,
            alive: Live::default(),
            keeps: Live::default(),
            wrong: Vec::new(),
        };
        for before in [None, Some(())] {
            seat.ledger.arm(&[]);
            lives.live(None, &[]);
            seat.meet("");
            let now = now();
            if before.is_some() {
                lives.keeps = each(now, lives.alive, usize::wrapping_sub);
                let keeps = lives.keeps != Live::default();
                assert!(keeps == seat.keeps, "{now:?} after {:?}", lives.alive);
            }
            lives.alive = now;
            // All have looked before any goes on.
            seat.meet("");
        }
        lives
    }

    fn live(&mut self, told: Option<Point>, points: &[Point]) {
        let Self {
            seat, state, round, ..
        } = self;
        // A failed call may leave the thread with another context or capture mode.
        let round = || round(seat, state, told);
        let lived = thread::scope(|threads| threads.spawn(round).join());
        assert!(lived.is_ok(), "{points:?}");
    }

    /// A round in which calls fail: the first of these points, and perhaps the others, if they are still come to. Which have
    /// failed.
    pub fn fail(&mut self, points: &[Point]) -> Vec<Point> {
        let Self { seat, .. } = *self;
        let rank = seat.member.rank();
        seat.meet("");
        let mine = points.iter().filter(|point| point.rank == rank);
        let mine: Vec<Point> = mine.copied().collect();
        seat.ledger.arm(&mine);
        seat.faults.store(points.len(), Ordering::Relaxed);
        let exchange = points.iter().find(|point| point.entry == EXCHANGE);
        let begin = Instant::now();
        self.live(exchange.or(points.first()).copied(), points);
        assert!(begin.elapsed() < BOUND, "{points:?}");
        let hits = seat.meet(&seat.ledger.hits().to_string());
        let hits: Vec<usize> = hits.iter().map(|n| n.parse().expect("a number")).collect();
        // A rank's later point is of what it does because of the one before.
        let failed = points.iter().enumerate().filter(|&(at, point)| {
            let before = points[..at].iter().filter(|of| of.rank == point.rank);
            before.count() < hits[point.rank as usize]
        });
        let failed: Vec<Point> = failed.map(|(_, point)| *point).collect();
        assert_eq!(failed.first(), points.first(), "it was not come to");
        let now = (self.now)();
        let world = seat.member.group.world();
        let here = failed
            .iter()
            .filter(|point| self.one_machine || point.rank == rank);
        let transport = seat.contract.transport;
        let usual = each(self.alive, self.keeps, usize::wrapping_add);
        let expected = here.fold(usual, |live, &point| {
            each(live, leak(point, world, transport), usize::wrapping_add)
        });
        if now != expected {
            let before = self.alive;
            self.wrong
                .push(format!("{points:?}: {now:?} after {before:?}"));
        }
        self.alive = now;
        failed
    }

    /// # Panics
    ///
    /// When a round has left more than it should.
    pub fn end(self) {
        self.seat.meet("");
        assert!(self.wrong.is_empty(), "{:#?}", self.wrong);
    }

    /// The points of the last round of all ranks of this process.
    pub fn points(&self, ledgers: &[&'static Ledger]) -> Vec<Point> {
        let points = (0..).zip(ledgers);
        let points: Vec<Point> = points
            .flat_map(|(rank, ledger)| ledger.points(rank))
            .collect();
        assert!(!points.is_empty());
        self.seat.meet("");
        points
    }
}
