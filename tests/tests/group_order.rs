//! Ranks in the caller's order, in several groups at once, and in groups of some of a group's ranks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use slabfence::Error;
use slabfence::channel::{Channel, Contract, Pool};
use slabfence::collective::{Layout, LseBase};
use slabfence::driver::Stream;
use slabfence::group::{Group, Rank, ThreadBootstrap};
use slabfence::layout::{Cause, DType, Transport};
use slabfence_emu::Live;
use slabfence_tests::exchange::Exchange;
use slabfence_tests::late::{FAIL, on_ranks};
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, Member};
use slabfence_tests::shape::{Kind, Shape};

/// Names in the caller's world, in an order that no sorting gives.
const ORDER: [u64; 3] = [7, 2, 9];
const ROUNDS: u32 = 5;

fn contract(world: u32) -> Contract {
    Contract {
        fail: FAIL,
        ..Contract::new(2 * world, 64, 64, 4)
    }
}

/// A rank that goes by its name in a group.
struct Named {
    name: u32,
    pool: Pool,
    channel: Channel,
    stream: Stream,
    gather: Gather,
}

impl Named {
    fn new(member: &Member, contract: &Contract) -> Self {
        let group = &member.group;
        let name = group.member(group.me()).expect("this rank's name") as u32;
        let (pool, channel) = member.channel(contract, "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, contract, 3).unwrap();
        Self {
            name,
            pool,
            channel,
            stream,
            gather,
        }
    }

    /// Writes the round's input. Copies wait for what runs on the device.
    fn fill(&self, round: u32) {
        self.gather.fill(self.name, round).unwrap();
    }

    fn enqueue(&self) {
        self.gather.enqueue(&self.channel, &self.stream).unwrap();
    }

    /// Waits for the round's end, and finds the bytes of the members in this order.
    fn check(&self, order: &[u32], round: u32) {
        self.stream.synchronize().unwrap();
        assert_eq!(self.channel.fault().unwrap(), None);
        let output = self.gather.output().unwrap();
        let at = (self.name, &order, round);
        assert!(output == self.gather.expected_of(order, round), "{at:?}");
    }
}

/// Three ranks with the names of [`ORDER`].
fn in_order(member: &Member) -> Member {
    let group = Group::of_members(member.bootstrap.clone(), member.group.me(), ORDER.to_vec());
    member.of(group.unwrap().with_timeout(member.group.timeout()))
}

#[test]
fn a_gather_puts_the_members_bytes_in_the_callers_order() {
    for transport in [Transport::Push, Transport::Pull] {
        let (machine, driver) = machine(3);
        on_ranks(&driver, 3, |member| {
            let contract = Contract {
                transport,
                ..contract(3)
            };
            let rank = Named::new(&in_order(member), &contract);
            for round in 0..ROUNDS {
                rank.fill(round);
                rank.enqueue();
                rank.check(&[7, 2, 9], round);
            }
            rank.pool.close().unwrap();
        });
        assert_eq!(machine.faults(), Vec::<String>::new());
    }
}

#[test]
fn a_reduction_gives_each_member_the_heads_of_its_place_in_the_callers_order() {
    for transport in [Transport::Push, Transport::Pull] {
        let (machine, driver) = machine(3);
        on_ranks(&driver, 3, |member| {
            let contract = Contract {
                transport,
                reduce_element_bytes: 4,
                ..contract(3)
            };
            let name = ORDER[member.rank() as usize];
            let member = in_order(member);
            let place = member.group.members().iter().position(|m| *m == name);
            let (pool, channel) = member.channel(&contract, "decode").unwrap();
            let stream = Stream::new(&member.device).unwrap();
            let shape = Shape {
                kind: Kind::Reduce(LseBase::E, Layout::TokenMajor, Layout::TokenMajor),
                ..Shape::reduce(DType::F32, 3, 2, 64)
            };
            let mut exchange = Exchange::new(&member, shape).unwrap();
            exchange.rank = place.unwrap() as u32;
            for operation in 0..ROUNDS {
                exchange.supply(operation).unwrap();
                exchange.enqueue(&channel, &stream).unwrap();
                stream.synchronize().unwrap();
                exchange.check(operation, &exchange.read().unwrap());
            }
            pool.close().unwrap();
        });
        assert_eq!(machine.faults(), Vec::<String>::new());
    }
}

#[test]
fn a_late_rank_is_reported_by_its_place_which_has_the_members_name() {
    let (_machine, driver) = machine(3);
    on_ranks(&driver, 3, |member| {
        let contract = Contract {
            fail: Duration::from_millis(300),
            ..contract(3)
        };
        let rank = Named::new(&in_order(member), &contract);
        if rank.name != 2 {
            rank.enqueue();
            rank.stream.synchronize().unwrap();
            let fault = rank.channel.fault().unwrap().expect("a fault");
            let group = rank.pool.group();
            assert_eq!(group.member(fault.rank), Some(rank.name.into()));
            // Of the two that wait, one may hear of it from the other.
            let late = fault.late_rank.and_then(|late| group.member(late));
            match fault.cause {
                Some(Cause::EntryTimeout) => assert_eq!(late, Some(2)),
                cause => assert_eq!(cause, Some(Cause::PeerFailed)),
            }
        }
        rank.pool.close().unwrap();
    });
}

#[test]
fn groups_with_ranks_in_common_run_side_by_side_and_one_goes_on_when_the_other_closes() {
    let (machine, driver) = machine(3);
    // Of the ranks 2 and 1 of the first group, in this order.
    let pair: Vec<_> = ThreadBootstrap::world(2)
        .into_iter()
        .map(|member| Mutex::new(Some(member)))
        .collect();
    on_ranks(&driver, 3, |member| {
        let all = Named::new(&in_order(member), &contract(3));
        let place = [2, 1].iter().position(|rank| *rank == member.rank());
        let pair = place.map(|place| {
            let bootstrap = pair[place].lock().unwrap().take().unwrap();
            let me = bootstrap.rank();
            let group = Group::of_members(Arc::new(bootstrap), me, vec![9, 2]).unwrap();
            let group = group.with_timeout(member.group.timeout());
            Named::new(&member.of(group), &contract(2))
        });
        // In one process memory is freed when nothing runs on any device, as at the end of a creation and in a close.
        member.meet();
        for round in 0..ROUNDS {
            all.fill(round);
            pair.iter().for_each(|pair| pair.fill(round));
            // One of the two begins with the one, the other with the other: neither operation waits for the other.
            if member.rank() == 1 {
                pair.iter().for_each(|pair| pair.enqueue());
                all.enqueue();
            } else {
                all.enqueue();
                pair.iter().for_each(|pair| pair.enqueue());
            }
            pair.iter().for_each(|pair| pair.check(&[9, 2], round));
            all.check(&[7, 2, 9], round);
        }
        all.fill(ROUNDS);
        all.enqueue();
        if let Some(pair) = pair {
            pair.pool.close().unwrap();
        }
        all.check(&[7, 2, 9], ROUNDS);
        member.meet();
        for round in ROUNDS + 1..2 * ROUNDS {
            all.fill(round);
            all.enqueue();
            all.check(&[7, 2, 9], round);
        }
        all.pool.close().unwrap();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

fn ranks(numbers: &[u32]) -> Vec<Rank> {
    numbers.iter().copied().map(Rank).collect()
}

#[test]
fn subgroups_side_by_side_and_across_run_each_in_its_order_without_their_parent() {
    let (machine, driver) = machine(4);
    on_ranks(&driver, 4, |member| {
        let group = Group::of_members(
            member.bootstrap.clone(),
            member.group.me(),
            vec![40, 10, 30, 20],
        );
        let group = group.unwrap().with_timeout(member.group.timeout());
        let (own, order) = match member.rank() % 2 {
            0 => ([0, 2], [40, 30]),
            _ => ([1, 3], [10, 20]),
        };
        let half = group.subgroup(&ranks(&own)).unwrap().expect("a subgroup");
        let across = match member.rank() {
            1 | 2 => group.subgroup(&ranks(&[2, 1])).unwrap(),
            _ => group.subgroup(&[]).unwrap(),
        };
        assert_eq!(across.is_some(), [1, 2].contains(&member.rank()));
        assert_eq!(half.timeout(), group.timeout());
        let half = Named::new(&member.of(half), &contract(2));
        let across = across.map(|group| {
            assert_eq!(group.members(), [30, 10]);
            assert_eq!(group.me(), Rank(2 - member.rank()));
            Named::new(&member.of(group), &contract(2))
        });
        member.meet();
        for round in 0..ROUNDS {
            half.fill(round);
            across.iter().for_each(|across| across.fill(round));
            half.enqueue();
            across.iter().for_each(|across| across.enqueue());
            half.check(&order, round);
            across
                .iter()
                .for_each(|across| across.check(&[30, 10], round));
        }
        if let Some(across) = across {
            across.pool.close().unwrap();
        }
        member.meet();
        half.fill(ROUNDS);
        half.enqueue();
        half.check(&order, ROUNDS);
        half.pool.close().unwrap();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn a_subgroup_that_ranks_disagree_about_is_refused_on_all_and_the_next_is_formed() {
    let (_machine, driver) = machine(3);
    on_ranks(&driver, 3, |member| {
        let group = &member.group;
        let refused = |wishes: [&[u32]; 3]| {
            let wish = ranks(wishes[member.rank() as usize]);
            match group.subgroup(&wish) {
                Err(Error::Setup { phase, failures }) => {
                    assert_eq!(phase, "subgroup: ranks");
                    failures
                }
                other => panic!("{other:?}"),
            }
        };
        let named = |failures: Vec<(Rank, String)>| -> Vec<Rank> {
            failures.into_iter().map(|(rank, _)| rank).collect()
        };
        // Another order, somebody who does not know, and what cannot be.
        assert_eq!(named(refused([&[0, 1], &[1, 0], &[]])), ranks(&[0, 1]));
        assert_eq!(named(refused([&[0, 1], &[], &[]])), ranks(&[0]));
        assert_eq!(named(refused([&[0, 1], &[0, 1], &[1, 2]])), ranks(&[2]));
        assert_eq!(named(refused([&[0], &[], &[]])), ranks(&[0]));
        assert_eq!(named(refused([&[0, 0], &[], &[]])), ranks(&[0]));
        assert_eq!(named(refused([&[0, 3], &[], &[]])), ranks(&[0]));
        assert_eq!(named(refused([&[1, 2], &[1, 2], &[1, 2]])), ranks(&[0]));
        let wish = [&[][..], &[2, 1], &[2, 1]][member.rank() as usize];
        let formed = group.subgroup(&ranks(wish)).unwrap();
        let me = formed.map(|group| group.me());
        assert_eq!(
            me,
            [None, Some(Rank(1)), Some(Rank(0))][member.rank() as usize]
        );
    });
}
