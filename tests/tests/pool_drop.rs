//! Drops in any order, on any thread, and at a thread's end: what is kept is what is documented and logged, the rest goes.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use slabfence::channel::{CaptureScope, Contract, Pool};
use slabfence::driver::{CaptureMode, Device, Driver, Stream, drop_released};
use slabfence::group::{Bootstrap, Group, Rank, ThreadBootstrap};
use slabfence_emu::{Live, Machine, Profile};
use slabfence_tests::graphs::capture;
use slabfence_tests::ranks::{Gather, Member, on_ranks};

const WORLD: u32 = 2;
/// How long a graph that was destroyed may take to let go, on a busy host.
const PATIENCE: Duration = Duration::from_secs(30);

static LOGGED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps what is logged.
struct Log;

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        logged().push(record.args().to_string());
    }

    fn flush(&self) {}
}

fn logged() -> MutexGuard<'static, Vec<String>> {
    LOGGED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One test at a time: the log is the process's.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    static LOG: Once = Once::new();
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    LOG.call_once(|| {
        log::set_logger(&Log).unwrap();
        log::set_max_level(log::LevelFilter::Warn);
    });
    logged().clear();
    turn
}

fn contract() -> Contract {
    Contract {
        fail: Duration::from_secs(60),
        max_channels: 1,
        max_grid: 4,
        ..Contract::new(2 * WORLD, 16, 16, 2)
    }
}

fn machine() -> (Machine, Driver) {
    let mut profile = Profile::named("h200-nvlink").unwrap();
    // Small allocations: pools are made again and again, and kept.
    profile.granularity = 1 << 16;
    let machine = Machine::new(profile, WORLD).unwrap();
    let driver = Driver::from_api(machine.api().unwrap()).unwrap();
    (machine, driver)
}

/// What is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Driver,
    Device,
    Group,
    Pool,
    Channel,
    Stream,
    Scope,
    Graph,
    Exec,
    /// No drop: the pool is closed.
    Close,
}

use What::{Channel, Close, Exec, Graph, Scope};

/// All but what a close needs gone.
const BASE: [What; 6] = [
    What::Driver,
    What::Device,
    What::Group,
    What::Pool,
    Channel,
    What::Stream,
];
const CAPTURED: [What; 3] = [Scope, Graph, Exec];

/// Orders of `all` in which every three come in every order.
fn orders(all: &[What]) -> Vec<Vec<What>> {
    let triples = |order: &[What]| -> BTreeSet<[What; 3]> {
        let n = order.len();
        let places =
            (0..n).flat_map(|a| (a + 1..n).flat_map(move |b| (b + 1..n).map(move |c| [a, b, c])));
        places.map(|places| places.map(|at| order[at])).collect()
    };
    let n = all.len();
    let wanted = n * (n - 1) * (n - 2);
    let mut seen = BTreeSet::new();
    let mut orders = Vec::new();
    let mut random: u64 = 1;
    while seen.len() < wanted {
        let candidates = (0..60).map(|_| {
            let mut order = all.to_vec();
            for at in (1..n).rev() {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                order.swap(at, (random >> 33) as usize % (at + 1));
            }
            order
        });
        let best = candidates.max_by_key(|order| triples(order).difference(&seen).count());
        let best = best.unwrap();
        seen.extend(triples(&best));
        orders.push(best);
    }
    orders
}

/// One of the things that a rank has.
enum Thing {
    /// Anything that can go to another thread.
    Free(Box<dyn Any + Send>),
    /// Stays on its thread.
    Scope(CaptureScope),
    /// To be closed, if it still is.
    Close(Weak<Pool>),
}

/// Where things are dropped.
#[derive(Clone, Copy, Debug)]
enum Place {
    Here,
    /// Each on a thread of its own that has never called the library.
    FreshThreads,
    /// In the destructor of a thread-local that is older than the library's, or younger.
    ThreadEnd {
        older: bool,
    },
}

const PLACES: [Place; 4] = [
    Place::Here,
    Place::FreshThreads,
    Place::ThreadEnd { older: true },
    Place::ThreadEnd { older: false },
];

fn end(thing: Thing, fresh: bool) {
    match thing {
        Thing::Free(thing) if fresh => thread::spawn(move || drop(thing)).join().unwrap(),
        Thing::Free(thing) => drop(thing),
        Thing::Scope(scope) => drop(scope),
        Thing::Close(pool) => {
            let pool = pool.upgrade().expect("the pool is dropped later");
            pool.close().expect("nothing holds it any more");
        }
    }
}

/// Ends its things in their order when the thread ends.
struct Kept(Vec<Thing>);

impl Drop for Kept {
    fn drop(&mut self) {
        for thing in self.0.drain(..) {
            end(thing, false);
        }
    }
}

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept(Vec::new())) };
}

fn gathered(gather: &Gather, member: &Member, round: u32, enqueue: impl FnOnce()) {
    gather.fill(member.rank(), round).unwrap();
    enqueue();
}

/// Lives one rank's life up to the drops, and ends its things in this order. With `flying`, a replay is under way meanwhile.
fn live(
    driver: Driver,
    bootstrap: Arc<dyn Bootstrap>,
    rank: u32,
    order: &[What],
    place: Place,
    flying: bool,
) {
    if let Place::ThreadEnd { older: true } = place {
        KEPT.with_borrow(|_| ());
    }
    let device = Device::open(&driver, rank).unwrap();
    let group = Group::new(Arc::clone(&bootstrap), Rank(rank), WORLD).unwrap();
    let member = Member {
        device,
        bootstrap,
        group: group.with_timeout(Duration::from_secs(20)),
    };
    let (pool, channel) = member.channel(&contract(), "decode").unwrap();
    let stream = Stream::new(&member.device).unwrap();
    let gather = Gather::new(&member, &contract(), 1).unwrap();
    gathered(&gather, &member, 0, || {
        gather.enqueue(&channel, &stream).unwrap();
    });
    stream.synchronize().unwrap();
    assert!(gather.output().unwrap() == gather.expected(0));
    let scope = pool.capture("decode", &stream).unwrap();
    stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
    gather.enqueue(&channel, &stream).unwrap();
    let graph = stream.end_capture().unwrap();
    let mut exec = graph.instantiate().unwrap();
    gathered(&gather, &member, 1, || exec.launch(&stream).unwrap());
    let gather = match flying {
        true => Some(gather),
        false => {
            stream.synchronize().unwrap();
            assert!(gather.output().unwrap() == gather.expected(1));
            None
        }
    };
    let Member { device, group, .. } = member;
    let pool = Arc::new(pool);
    let close = Arc::downgrade(&pool);
    fn some<T: Any + Send>(thing: T) -> Option<Thing> {
        Some(Thing::Free(Box::new(thing)))
    }
    let mut things = [
        (What::Driver, some(driver)),
        (What::Device, some(device)),
        (What::Group, some(group)),
        (What::Pool, some(pool)),
        (Channel, some(channel)),
        (What::Stream, some(stream)),
        (Scope, Some(Thing::Scope(scope))),
        (Graph, some(graph)),
        (Exec, some(exec)),
        (Close, Some(Thing::Close(close))),
    ];
    let things = order.iter().map(|what| {
        let thing = things.iter_mut().find(|(this, _)| this == what);
        thing.and_then(|(_, thing)| thing.take()).unwrap()
    });
    match place {
        Place::Here => things.for_each(|thing| end(thing, false)),
        Place::FreshThreads => things.for_each(|thing| end(thing, true)),
        Place::ThreadEnd { .. } => KEPT.with_borrow_mut(|kept| kept.0.extend(things)),
    }
    if let Some(gather) = gather {
        let until = Instant::now() + PATIENCE;
        while gather.output().unwrap() != gather.expected(1) {
            assert!(Instant::now() < until, "{order:?}: the replay is wrong");
            thread::yield_now();
        }
    }
}

/// What a pool keeps that is dropped without close: its four arenas with what was announced of them, its health page, the
/// kernels of its two collectives, and its device, which has a stream for copies.
const KEPT_BY_A_POOL: Live = Live {
    physical: 4,
    mappings: 4,
    reservations: 4,
    host_allocations: 1,
    modules: 2,
    announced: 18,
    streams: 1,
    ..NOTHING
};

const NOTHING: Live = Live {
    contexts: 0,
    allocations: 0,
    host_allocations: 0,
    physical: 0,
    mappings: 0,
    reservations: 0,
    streams: 0,
    events: 0,
    modules: 0,
    captures: 0,
    graphs: 0,
    execs: 0,
    user_objects: 0,
    announced: 0,
    abandoned: 0,
};

/// What is alive while so many pools are kept.
fn kept(pools: usize) -> Live {
    let one = KEPT_BY_A_POOL;
    Live {
        contexts: pools.min(WORLD as usize),
        physical: pools * one.physical,
        mappings: pools * one.mappings,
        reservations: pools * one.reservations,
        host_allocations: pools * one.host_allocations,
        modules: pools * one.modules,
        announced: pools * one.announced,
        streams: pools * one.streams,
        ..NOTHING
    }
}

/// Waits until the machine has what so many kept pools have and no more, and these ranks' pools, which were dropped without
/// close, have been told of and nothing else has: the machine tells of destroyed graphs from a thread of its own.
fn settle(machine: &Machine, pools: usize, dropped: &[u32], words: &dyn Fn() -> String) {
    let expected = dropped.iter().map(|rank| {
        format!(
            "a pool of rank {rank} was dropped without close: its memory is kept, since peers or running kernels may still use it"
        )
    });
    let expected = (kept(pools), expected.collect::<Vec<_>>());
    let until = Instant::now() + PATIENCE;
    loop {
        drop_released();
        let mut said = logged().clone();
        said.sort();
        let now = (machine.live(), said);
        if now == expected {
            logged().clear();
            return;
        }
        assert!(
            Instant::now() < until,
            "{}: {now:?} is not {expected:?}",
            words()
        );
        thread::yield_now();
    }
}

/// Two ranks that end their things in each of these orders, in each of these places.
fn in_every_order(orders: &[Vec<What>], places: &[Place], flying: bool) {
    let _alone = alone();
    let (machine, driver) = machine();
    // Each rank has the driver's last owner.
    drop(driver);
    let mut pools = 0;
    for &place in places {
        for order in orders {
            thread::scope(|threads| {
                for (rank, bootstrap) in (0..).zip(ThreadBootstrap::world(WORLD)) {
                    let driver = Driver::from_api(machine.api().unwrap()).unwrap();
                    threads.spawn(move || {
                        live(driver, Arc::new(bootstrap), rank, order, place, flying);
                    });
                }
            });
            let dropped: &[u32] = match order.contains(&Close) {
                true => &[],
                false => &[0, 1],
            };
            pools += dropped.len();
            settle(&machine, pools, dropped, &|| {
                format!("{place:?}, {order:?}")
            });
        }
    }
    assert_eq!(machine.faults(), Vec::<String>::new());
}

/// All of them, with no close.
fn unclosed() -> Vec<Vec<What>> {
    orders(&[BASE.as_slice(), &CAPTURED].concat())
}

#[test]
fn whatever_is_dropped_in_any_order_without_close_keeps_the_pool_alone() {
    let orders = unclosed();
    println!("{} orders in {} places", orders.len(), PLACES.len());
    in_every_order(&orders, &PLACES, false);
}

#[test]
fn whatever_is_dropped_in_any_order_before_and_after_a_close_leaves_nothing() {
    let before = orders(&CAPTURED);
    assert_eq!(before.len(), 6);
    let after = orders(&BASE).into_iter();
    let orders: Vec<_> = after
        .zip(before.iter().cycle())
        .map(|(after, before)| [before.as_slice(), &[Close], &after].concat())
        .collect();
    println!("{} orders in {} places", orders.len(), PLACES.len());
    in_every_order(&orders, &PLACES, false);
}

#[test]
fn a_replay_that_is_under_way_while_everything_is_dropped_ends_right() {
    in_every_order(&unclosed(), &PLACES[..2], true);
}

#[test]
fn a_graph_whose_pool_was_dropped_replays_right_and_its_end_leaves_what_is_kept() {
    let _alone = alone();
    let (machine, driver) = machine();
    on_ranks(&driver, WORLD, |member| {
        let (pool, channel) = member.channel(&contract(), "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 1).unwrap();
        let graph = capture(&pool, &stream, "decode", |channel| {
            gather.enqueue(channel, &stream).unwrap();
        });
        let mut exec = graph.instantiate().unwrap();
        drop((pool, channel));
        for round in 0..3 {
            gathered(&gather, member, round, || exec.launch(&stream).unwrap());
            stream.synchronize().unwrap();
            assert!(gather.output().unwrap() == gather.expected(round));
        }
        // The graph has all of it: nothing is kept for the life of the process yet.
        assert_eq!(*logged(), [""; 0]);
        assert!(member.group.verdict("all have looked", &Ok(())).is_ok());
        drop(graph);
        drop_released();
        gathered(&gather, member, 3, || exec.launch(&stream).unwrap());
        stream.synchronize().unwrap();
        assert!(gather.output().unwrap() == gather.expected(3));
        assert_eq!(*logged(), [""; 0]);
        assert!(
            member
                .group
                .verdict("all have looked again", &Ok(()))
                .is_ok()
        );
        drop(exec);
    });
    drop(driver);
    settle(&machine, 2, &[0, 1], &|| "the graph's end".to_owned());
    assert_eq!(machine.faults(), Vec::<String>::new());
}
