//! Drops in any order, on any thread, and at a thread's end: what is kept is what is documented and logged, the rest goes.

mod kept;
mod life;
mod order;
mod record;

use std::thread;
use std::time::{Duration, Instant};

use slabfence::channel::Contract;
use slabfence::driver::{Driver, Stream, drop_released};
use slabfence::group::ThreadBootstrap;
use slabfence::layout::Transport::{self, Pull, Push};
use slabfence_emu::{Live, Machine, Profile};
use slabfence_tests::graphs::capture;
use slabfence_tests::lossy::all_lossy;
use slabfence_tests::ranks::{Gather, on_ranks};

use kept::{add, announced};
use life::{PLACES, Place, gathered, live};
use order::What::{self, Close};
use order::{BASE, CAPTURED, orders, reversed};
use record::{alone, logged};

const WORLD: u32 = 2;
/// How long a graph that was destroyed may take to let go, on a busy host.
const PATIENCE: Duration = Duration::from_secs(30);

fn contract(transport: Transport) -> Contract {
    Contract {
        transport,
        fail: Duration::from_secs(60),
        max_channels: 2,
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

/// What is said of a pool, whatever its number is.
fn without_pool(line: &str) -> String {
    let (rank, rest) = line.split_once(", pool ").expect(line);
    let (number, words) = rest.split_once(':').expect(line);
    number.parse::<u64>().expect(line);
    format!("{rank}:{words}")
}

/// What is said of pools that all ranks have dropped without close, and of their tickets, which end as pools do.
fn said_of(pools: bool, tickets: bool) -> Vec<String> {
    let dropped = "a pool was dropped without close: its memory is kept, since peers or running kernels may still use it";
    let lost = "the bootstrap failed: lost; peers may use its memory";
    let lines = [(pools, dropped), (tickets, dropped), (tickets, lost)];
    let lines = lines.iter().filter(|(is_said, _)| *is_said);
    let lines =
        lines.flat_map(|(_, words)| (0..WORLD).map(move |rank| format!("rank {rank}: {words}")));
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    lines
}

/// Waits until the machine has what is kept and no more, and this was said and nothing else: the machine tells of destroyed
/// graphs from a thread of its own.
fn settle(machine: &Machine, expected: (Live, Vec<String>), words: &dyn Fn() -> String) {
    let until = Instant::now() + PATIENCE;
    loop {
        drop_released();
        let mut said = logged().clone();
        // Reports of the channel that fails on purpose.
        said.retain(|line| !line.contains(", channel 'failed', "));
        let mut said: Vec<_> = said.iter().map(|line| without_pool(line)).collect();
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

/// Two ranks that end their things in each of these orders, the second the other way round, in each of these places. Every
/// other time they pull.
fn in_every_order(orders: &[Vec<What>], places: &[Place], flying: bool) {
    let _alone = alone();
    let (machine, driver) = machine();
    // Each rank has the driver's last owner.
    drop(driver);
    let mut kept = Live::default();
    for &place in places {
        for (order, transport) in orders.iter().zip([Push, Pull].into_iter().cycle()) {
            let both = [order.clone(), reversed(order)];
            thread::scope(|threads| {
                let members = (0..).zip(ThreadBootstrap::world(WORLD));
                for ((rank, bootstrap), order) in members.zip(&both) {
                    let driver = Driver::from_api(machine.api().unwrap()).unwrap();
                    threads.spawn(move || {
                        let how = (transport, flying);
                        let bootstrap = all_lossy(bootstrap, "create: commit");
                        live(driver, bootstrap, rank, order, place, how);
                    });
                }
            });
            let closed = order.contains(&Close);
            for _ in 0..WORLD {
                kept = match closed {
                    true => add(kept, 1, 0),
                    false => add(kept, 2, announced(transport)),
                };
            }
            settle(&machine, (kept, said_of(!closed, true)), &|| {
                format!("{place:?}, {transport:?}, {order:?}")
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
fn whatever_is_dropped_in_any_order_without_close_keeps_the_pool_and_the_ticket_alone() {
    let orders = unclosed();
    println!("{} orders in {} places", orders.len(), PLACES.len());
    in_every_order(&orders, &PLACES, false);
}

#[test]
fn whatever_is_dropped_in_any_order_before_and_after_a_close_leaves_the_ticket_alone() {
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
        let contract = contract(Push);
        let pool = member.pool(&contract).unwrap();
        pool.prepare(&["decode", "failed"]).unwrap();
        let channel = pool.channel("decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract, 1).unwrap();
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
    let kept = (0..WORLD).fold(Live::default(), |kept, _| add(kept, 1, announced(Push)));
    settle(&machine, (kept, said_of(true, false)), &|| {
        "the graph's end".to_owned()
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}
