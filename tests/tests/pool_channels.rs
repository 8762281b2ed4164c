//! Preparing channels, and closing a pool.

use std::sync::Arc;
use std::time::Duration;

use slabfence::Error;
use slabfence::channel::Contract;
use slabfence::collective::{Layout, LseBase};
use slabfence::driver::{Driver, Stream};
use slabfence::group::{Bootstrap, Rank, ThreadBootstrap};
use slabfence::layout::{DType, Transport};
use slabfence_emu::Live;
use slabfence_tests::exchange::Exchange;
use slabfence_tests::injection::{Ledger, Point, When, watched};
use slabfence_tests::late::FAIL;
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, on_drivers, on_ranks};
use slabfence_tests::shape::{Kind, Shape};

fn contract() -> Contract {
    Contract::new(4, 64, 64, 8)
}

#[test]
fn names_may_come_in_any_order_and_again() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let pool = member.pool(&contract()).unwrap();
        let names = [["b", "a", "a"], ["a", "b", "b"]][member.rank() as usize];
        pool.prepare(&names).unwrap();
        pool.prepare(&["c", "a"]).unwrap();
        for name in ["a", "b", "c"] {
            assert_eq!(pool.channel(name).unwrap().name(), name);
        }
        let unknown = pool.channel("d").unwrap_err().to_string();
        assert!(unknown.contains("channel 'd' is not prepared"), "{unknown}");
        assert!(unknown.contains(r#"["a", "b", "c"]"#), "{unknown}");
        pool.close().unwrap();
    });
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn names_that_differ_are_refused_on_all_ranks_and_add_nothing() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let pool = member.pool(&contract()).unwrap();
        let names = [["a", "b"], ["a", "c"]][member.rank() as usize];
        let Err(Error::Setup { phase, failures }) = pool.prepare(&names) else {
            panic!("prepared");
        };
        assert_eq!(phase, "prepare: names");
        let words = r#"it wants ["a", "c"], rank 0 wants ["a", "b"]"#.to_owned();
        assert_eq!(failures, [(Rank(1), words)]);
        assert!(pool.channel("a").is_err());
        pool.prepare(&["a", "b"]).unwrap();
        pool.close().unwrap();
    });
}

#[test]
fn the_contract_bounds_the_number_of_channels() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let pool = member.pool(&contract()).unwrap();
        pool.prepare(&["1", "2", "3"]).unwrap();
        let said = pool.prepare(&["4", "5"]).unwrap_err().to_string();
        assert!(
            said.contains("3 channels are prepared and 2 more wanted"),
            "{said}"
        );
        pool.prepare(&["4"]).unwrap();
        pool.close().unwrap();
    });
}

/// What a machine has of each while every one of so many channels has just been used.
fn live_with(channels: u32) -> Live {
    let (machine, driver) = machine(2);
    let contract = Contract {
        max_channels: channels,
        ..contract()
    };
    let live = on_ranks(&driver, 2, |member| {
        let pool = member.pool(&contract).unwrap();
        let names: Vec<String> = (0..channels).map(|n| format!("decode.{n}")).collect();
        pool.prepare(&names).unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract, 8).unwrap();
        for (round, name) in (0..).zip(&names) {
            gather.fill(member.rank(), round).unwrap();
            let channel = pool.channel(name).unwrap();
            gather.enqueue(&channel, &stream).unwrap();
            stream.synchronize().unwrap();
            assert!(gather.output().unwrap() == gather.expected(round), "{name}");
        }
        let step = |name: &'static str| member.group.verdict(name, &Ok(())).unwrap();
        step("all channels used");
        let live = machine.live();
        step("all counted");
        pool.close().unwrap();
        live
    });
    live[0]
}

#[test]
fn sixty_four_channels_in_use_share_the_allocations_and_mappings_of_one() {
    let one = live_with(1);
    let many = live_with(64);
    // Four kinds of memory on each of two ranks.
    assert_eq!((one.physical, one.mappings, one.reservations), (8, 8, 8));
    // Each channel's ranges are announced to a checker, and cost nothing else.
    assert_eq!(
        Live {
            announced: one.announced,
            ..many
        },
        one
    );
}

#[test]
fn a_closed_pool_refuses_everything_and_closes_again() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract(), "a").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 1).unwrap();
        pool.close().unwrap();
        pool.close().unwrap();
        assert!(matches!(
            gather.enqueue(&channel, &stream),
            Err(Error::Closed { .. })
        ));
        assert!(matches!(pool.prepare(&["b"]), Err(Error::Closed { .. })));
        assert!(matches!(pool.reset(), Err(Error::Closed { .. })));
        assert!(matches!(pool.channel("a"), Err(Error::Closed { .. })));
    });
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn a_verdict_is_not_given_once_a_failed_close_has_freed_its_memory() {
    let (machine, driver) = machine(2);
    let drivers = [0, 1].map(|seat| {
        let api = watched(driver.api().clone(), seat);
        Driver::from_api(api).unwrap()
    });
    let members = ThreadBootstrap::world(2).into_iter();
    let members = members.map(|member| Arc::new(member) as Arc<dyn Bootstrap>);
    let limit = Duration::from_secs(60);
    on_drivers(&drivers, members.collect(), limit, |member| {
        let (pool, channel) = member.channel(&contract(), "a").unwrap();
        let ledger = Ledger::of(member.rank() as usize);
        // The first that rank 0 unmaps is a staging slot; what comes later is freed all the same.
        let point = Point {
            rank: 0,
            step: "close",
            entry: "cuMemUnmap",
            nth: 0,
            when: When::Before,
        };
        let points = [point];
        ledger.arm(&points[..usize::from(member.rank() == 0)]);
        channel.verdict().unwrap();
        let closed = ledger.step("close", || pool.close());
        assert!(matches!(closed, Err(Error::Setup { .. })), "{closed:?}");
        if member.rank() == 0 {
            let said = channel.verdict().unwrap_err().to_string();
            assert!(said.contains("given back in part; close"), "{said}");
            assert!(channel.fault().unwrap().is_none());
        }
        pool.close().unwrap();
        assert!(matches!(channel.verdict(), Err(Error::Closed { .. })));
    });
    drop((drivers, driver));
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn ranks_in_different_collective_calls_are_told_apart() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let pool = member.pool(&contract()).unwrap();
        let result = match member.rank() {
            0 => pool.prepare(&["a"]),
            _ => pool.close(),
        };
        let Err(Error::Setup { failures, .. }) = result else {
            panic!("not told");
        };
        let there = ["close: drain", "prepare: drain"][member.rank() as usize];
        assert_eq!(failures[0].0, Rank(1 - member.rank()));
        assert!(failures[0].1.contains(there), "{}", failures[0].1);
        // Nothing has changed on either rank.
        pool.close().unwrap();
    });
}

#[test]
fn a_pool_that_is_dropped_without_close_keeps_its_memory() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| drop(member.pool(&contract()).unwrap()));
    drop(driver);
    assert_eq!((machine.live().mappings, machine.live().physical), (8, 8));
}

#[test]
fn calls_that_the_contract_does_not_allow_are_refused_before_any_launch() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let contract = Contract {
            fail: Duration::from_secs(5),
            ..contract()
        };
        let (pool, channel) = member.channel(&contract, "a").unwrap();
        let before = machine.executed();
        let stream = Stream::new(&member.device).unwrap();
        let good = Gather::new(member, &contract, 8).unwrap();
        let refused = |change: &dyn Fn(&mut Gather), words: &str| {
            let mut gather = Gather::new(member, &contract, 8).unwrap();
            change(&mut gather);
            let Err(Error::Argument { operation, what }) = gather.enqueue(&channel, &stream) else {
                panic!("not refused: {words}");
            };
            assert_eq!(operation, "all_gather_heads");
            assert!(what.contains(words), "{what}");
        };
        refused(
            &|g| g.call.batch = 9,
            "batch is 9, the contract's max_batch is 8",
        );
        refused(&|g| g.call.batch = 0, "batch is 0");
        refused(
            &|g| g.call.dtype = slabfence::layout::DType::F32,
            "the operation stages 4096 bytes, the contract's slots hold 2176",
        );
        refused(
            &|g| g.call.input = g.call.input.offset(2).unwrap(),
            "is not aligned to 16 bytes",
        );
        refused(&|g| g.call.output = g.call.input, "overlaps");
        let other = Stream::new(
            &slabfence::driver::Device::open(member.device.driver(), 1 - member.rank()).unwrap(),
        );
        let wrong = good
            .enqueue(&channel, &other.unwrap())
            .unwrap_err()
            .to_string();
        assert!(wrong.contains("the stream is of device"), "{wrong}");
        assert_eq!(machine.executed(), before);
        pool.close().unwrap();
    });
}

#[test]
fn batches_up_to_the_contracts_and_the_layouts_capacity_run_and_one_more_is_refused() {
    const CAPACITY: u32 = 8;
    for transport in [Transport::Push, Transport::Pull] {
        let (machine, driver) = machine(2);
        let contract = Contract {
            transport,
            fail: FAIL,
            reduce_element_bytes: 4,
            ..Contract::new(4, 64, 64, CAPACITY)
        };
        on_ranks(&driver, 2, |member| {
            let (pool, channel) = member.channel(&contract, "a").unwrap();
            let stream = Stream::new(&member.device).unwrap();
            let full = Layout::HeadMajor { capacity: CAPACITY };
            let less = Layout::HeadMajor {
                capacity: CAPACITY - 1,
            };
            let reduce = |from, to, batch| Shape {
                kind: Kind::Reduce(LseBase::E, from, to),
                ..Shape::reduce(DType::F32, batch, 2, 64)
            };
            let gather = |batch| Shape::gather(DType::Bf16, batch, 2, 64);
            for shape in [
                gather(CAPACITY - 1),
                gather(CAPACITY),
                reduce(Layout::TokenMajor, full, CAPACITY - 1),
                reduce(Layout::TokenMajor, full, CAPACITY),
                reduce(full, Layout::TokenMajor, CAPACITY - 1),
                reduce(full, Layout::TokenMajor, CAPACITY),
                reduce(less, less, CAPACITY - 1),
            ] {
                let exchange = Exchange::new(member, shape).unwrap();
                for operation in 0..2 {
                    exchange.supply(operation).unwrap();
                    exchange.enqueue(&channel, &stream).unwrap();
                    stream.synchronize().unwrap();
                    exchange.check(operation, &exchange.read().unwrap());
                }
            }
            let before = machine.executed();
            let beyond = "batch is 9, the contract's max_batch is 8";
            let within = |what: &str| format!("{what} has room for 7 tokens a head, batch is 8");
            let more = Layout::HeadMajor {
                capacity: CAPACITY + 1,
            };
            for (shape, words) in [
                (gather(CAPACITY + 1), beyond.to_owned()),
                (
                    reduce(Layout::TokenMajor, more, CAPACITY + 1),
                    beyond.to_owned(),
                ),
                (reduce(less, Layout::TokenMajor, CAPACITY), within("input")),
                (reduce(Layout::TokenMajor, less, CAPACITY), within("output")),
            ] {
                // The call is refused before its buffers matter, which are those of a smaller one.
                let fits = Shape {
                    batch: CAPACITY - 1,
                    ..shape
                };
                let mut exchange = Exchange::new(member, fits).unwrap();
                exchange.shape = shape;
                match exchange.enqueue(&channel, &stream) {
                    Err(Error::Argument { what, .. }) => assert!(what.contains(&words), "{what}"),
                    other => panic!("{shape:?}: {other:?}"),
                }
            }
            assert_eq!(machine.executed(), before);
            pool.close().unwrap();
        });
        assert_eq!(machine.faults(), Vec::<String>::new());
    }
}
