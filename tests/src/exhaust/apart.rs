//! Ranks that are processes, each with a machine of its own, so that memory is exported and imported.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread;
use std::time::{Duration, Instant};

use slabfence::channel::Contract;
use slabfence::driver::Device;
use slabfence::driver::Driver;
use slabfence::group::{Bootstrap, Group, Rank};
use slabfence::layout::Transport;
use slabfence_emu::Machine;

use super::lives::Lives;
use super::{Injected, Seat, World};
use crate::adversary::Adversary;
use crate::injection::{Ledger, Point, watched};
use crate::processes::memory_of;
use crate::ranks::Member;

/// How long ranks wait for one another where one fails; half of it for memory that is not handed over.
const PATIENCE: Duration = Duration::from_secs(12);
/// Equal worlds among which the points are divided, as [`Place::share`] says. Most of a round is waiting, so they live at the same
/// time.
pub const SHARES: usize = 5;
/// How long an operation waits for a peer's: no process that merely comes late waits that long.
const FAIL: Duration = Duration::from_secs(1);
/// How long what is closed by another thread may take.
const CLOSED: Duration = Duration::from_secs(10);

/// One rank of a world of processes.
pub struct Place<'a> {
    /// Its machine.
    pub machine: &'a Machine,
    /// Its place.
    pub rank: u32,
    /// How many there are.
    pub world: u32,
    /// Which share of the points is this world's.
    pub share: usize,
    /// How their pools reach one another.
    pub transport: Transport,
    /// What the pools' exchanges go over, and fail.
    pub bootstrap: Arc<dyn Bootstrap>,
    /// What the ranks tell one another by that they are between two rounds.
    pub meeting: Arc<dyn Bootstrap>,
}

impl std::fmt::Debug for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place")
            .field("rank", &self.rank)
            .finish_non_exhaustive()
    }
}

/// Open descriptors of this process, and files of device memory that it holds or maps.
fn holdings() -> (usize, usize) {
    let descriptors = fs::read_dir("/proc/self/fd").expect("/proc").count();
    let files = memory_of(std::process::id()).expect("/proc");
    (descriptors, files.len())
}

/// [`every_call`](super::every_call) for this rank of a world of processes, over its share of the points that are `wanted` of the
/// steps of these names. After every round each process has the descriptors and the memory that it had before.
///
/// # Panics
///
/// When a rank does: these are tests.
pub fn every_call_apart<S: Send>(
    place: &Place<'_>,
    steps: &[&'static str],
    wanted: impl Fn(&Point) -> bool,
    make: impl Fn(&Seat<'_>) -> S,
    round: impl Fn(&Seat<'_>, &mut S, Option<Point>) + Sync,
) -> Injected {
    let &Place {
        machine,
        rank,
        world,
        share,
        transport,
        ..
    } = place;
    let ranks = World {
        transport,
        ..World::pushing(world)
    };
    let ledger = Ledger::of(0);
    let driver = watched(machine.api().expect("its table"), 0);
    let driver = Driver::from_api(driver).expect("a driver");
    let adversary = Adversary::before(Arc::clone(&place.bootstrap), rank as usize, ledger);
    let damage = adversary.damage();
    let bootstrap: Arc<dyn Bootstrap> = Arc::new(adversary);
    let group = Group::new(Arc::clone(&bootstrap), Rank(rank), world).expect("a group");
    let member = Member {
        device: Device::open(&driver, rank).expect("a device"),
        bootstrap,
        group: group.with_timeout(PATIENCE),
    };
    let seat = Seat {
        member: &member,
        contract: Contract {
            fail: FAIL,
            ..ranks.contract()
        },
        keeps: false,
        meeting: Arc::clone(&place.meeting),
        ledger,
        faults: AtomicUsize::default(),
        damage,
    };
    let now = || machine.live();
    let mut lives = Lives::begin(&seat, make(&seat), &round, &now, false);
    let mut mine = ledger.points(rank);
    mine.retain(wanted);
    let mine: Vec<Point> = mine.into_iter().skip(share).step_by(SHARES).collect();
    let counts = seat.meet(&mine.len().to_string());
    let counts = counts.iter().map(|count| count.parse().expect("a number"));
    let mut held = holdings();
    let mut points = Vec::new();
    for (owner, count) in counts.enumerate() {
        let count: usize = count;
        for at in 0..count {
            let mine = mine.get(at).filter(|_| owner == rank as usize);
            let said = seat.meet(&mine.map_or(String::new(), |point| point.write(steps)));
            let point = Point::read(&said[owner], steps).expect("a point");
            lives.fail(&[point]);
            points.push(point);
            if mine.is_some() {
                let files = leaked(point, ranks);
                held.0 += files;
                held.1 += files;
            }
            let until = Instant::now() + CLOSED;
            while holdings() != held && Instant::now() < until {
                thread::yield_now();
            }
            assert_eq!(holdings(), held, "descriptors and memory after {point}");
        }
    }
    lives.end();
    Injected::of(&points)
}

/// Files of memory that stay after this call has failed.
fn leaked(point: Point, world: World) -> usize {
    super::lives::leak(point, world.ranks, world.transport).physical
}
