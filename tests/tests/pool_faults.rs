//! What a failing operation leaves: a record that names the cause and the late rank, a typed error, and a way back.

use std::time::{Duration, Instant};

use slabfence::Error;
use slabfence::channel::{Channel, Contract, Pool};
use slabfence::driver::Stream;
use slabfence::group::Rank;
use slabfence::health::Health;
use slabfence::layout::{Cause, DType, OperationKind, Transport};
use slabfence_tests::exchange::Exchange;
use slabfence_tests::graphs::{capture, grids};
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, Member, on_ranks};
use slabfence_tests::shape::Shape;

fn contract(fail_ms: u64) -> Contract {
    Contract {
        warn: Duration::from_millis(50),
        fail: Duration::from_millis(fail_ms),
        ..Contract::new(4, 64, 64, 8)
    }
}

/// One right gather of 2 tokens.
fn works(member: &Member, contract: &Contract, channel: &Channel, stream: &Stream, round: u32) {
    let gather = Gather::new(member, contract, 2).unwrap();
    gather.fill(member.rank(), round).unwrap();
    gather.enqueue(channel, stream).unwrap();
    stream.synchronize().unwrap();
    assert!(
        gather.output().unwrap() == gather.expected(round),
        "round {round}"
    );
}

fn wait_for(pool: &Pool, wanted: Health) {
    let begin = Instant::now();
    while pool.health().unwrap() != wanted {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "never {wanted:?}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn different_operations_at_the_same_epoch_are_diagnosed_on_both_ranks() {
    let (_machine, driver) = machine(2);
    let contract = contract(30_000);
    let faults = on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        works(member, &contract, &channel, &stream, 0);
        let gather = Gather::new(member, &contract, [2, 3][member.rank() as usize]).unwrap();
        gather.enqueue(&channel, &stream).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(pool.health().unwrap(), Health::Failed);
        let faults = pool.faults().unwrap();
        assert_eq!(faults.len(), 1);
        let fault = &faults[0];
        assert_eq!((fault.rank, fault.epoch), (Rank(member.rank()), 3));
        assert_eq!(fault.operation, Some(OperationKind::AllGatherHeads));
        assert_eq!(fault.channel, "decode");
        // Who notices first says so; the other may learn of it from the first, in a wait or, where some of its warps have
        // yet to begin, from the poison that they find.
        let causes = [Cause::TagMismatch, Cause::PeerFailed, Cause::Skipped];
        assert!(causes.contains(&fault.cause.unwrap()), "{fault}");
        let Err(Error::Fault(report)) = gather.enqueue(&channel, &stream) else {
            panic!("a poisoned channel accepted an operation");
        };
        assert_eq!(&*report, fault);
        let report = fault.clone();
        pool.reset().unwrap();
        assert_eq!(pool.health().unwrap(), Health::Healthy);
        works(member, &contract, &channel, &stream, 1);
        pool.close().unwrap();
        report
    });
    let mismatches = faults
        .iter()
        .filter(|fault| fault.cause == Some(Cause::TagMismatch));
    let mut told = 0;
    for fault in mismatches {
        let [mine, other] = [fault.rank.0, 1 - fault.rank.0].map(|rank| &faults[rank as usize]);
        assert_ne!(mine.tag, other.tag);
        let tags = [mine.tag, other.tag].map(|tag| tag & 0xffff_ffff);
        assert_eq!([fault.expected, fault.seen], tags);
        assert_eq!(fault.late_rank, Some(other.rank), "{fault}");
        told += 1;
    }
    assert!(told > 0, "one rank saw the other's tag: {faults:?}");
}

#[test]
fn a_timeout_names_the_late_rank_and_reset_revives_the_channel() {
    let (_machine, driver) = machine(3);
    let contract = Contract {
        total_heads: 6,
        ..contract(200)
    };
    on_ranks(&driver, 3, |member| {
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        works(member, &contract, &channel, &stream, 0);
        // Rank 2 does not come.
        if member.rank() != 2 {
            let gather = Gather::new(member, &contract, 2).unwrap();
            gather.fill(member.rank(), 1).unwrap();
            gather.enqueue(&channel, &stream).unwrap();
            wait_for(&pool, Health::Failed);
            stream.synchronize().unwrap();
            assert!(gather.output().unwrap().iter().all(|&byte| byte == 0xff));
            let fault = channel.fault().unwrap().unwrap();
            // Nobody is late with its data who has not entered.
            if fault.cause == Some(Cause::EntryTimeout) {
                assert_eq!(fault.late_rank, Some(Rank(2)), "{fault}");
                assert_eq!(fault.late_ranks, [Rank(2)], "{fault}");
                assert!(fault.waited >= Duration::from_millis(200), "{fault}");
                assert_eq!((fault.expected, fault.seen), (3, 0), "{fault}");
            } else {
                assert_eq!(fault.cause, Some(Cause::PeerFailed), "{fault}");
            }
            let warning = channel.warning().unwrap().unwrap();
            assert!(warning.warning && warning.waited < Duration::from_millis(200));
        }
        pool.reset().unwrap();
        assert_eq!(pool.health().unwrap(), Health::Healthy);
        assert_eq!(pool.faults().unwrap(), []);
        for round in 2..5 {
            works(member, &contract, &channel, &stream, round);
        }
        pool.close().unwrap();
    });
}

#[test]
fn all_late_ranks_are_named_and_their_failure_is_told_to_each() {
    let (_machine, driver) = machine(4);
    let contract = Contract {
        total_heads: 8,
        ..contract(200)
    };
    let own = on_ranks(&driver, 4, |member| {
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        works(member, &contract, &channel, &stream, 0);
        let mut cause = None;
        // Ranks 1 and 3 do not come.
        if member.rank() % 2 == 0 {
            let gather = Gather::new(member, &contract, 2).unwrap();
            gather.fill(member.rank(), 1).unwrap();
            gather.enqueue(&channel, &stream).unwrap();
            stream.synchronize().unwrap();
            let fault = channel.fault().unwrap().unwrap();
            cause = fault.cause;
            if cause == Some(Cause::EntryTimeout) {
                assert_eq!(fault.late_ranks, [Rank(1), Rank(3)], "{fault}");
                let words = fault.to_string();
                assert!(words.contains("ranks 1, 3 did not enter"), "{words}");
            } else {
                assert_eq!(cause, Some(Cause::PeerFailed), "{fault}");
                assert_eq!(fault.late_ranks, [fault.late_rank.unwrap()], "{fault}");
            }
        }
        pool.reset().unwrap();
        works(member, &contract, &channel, &stream, 1);
        pool.close().unwrap();
        cause
    });
    assert!(own.contains(&Some(Cause::EntryTimeout)), "{own:?}");
}

#[test]
fn a_late_rank_is_warned_of_and_waited_for() {
    let (_machine, driver) = machine(2);
    let contract = contract(60_000);
    on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract, 2).unwrap();
        gather.fill(member.rank(), 0).unwrap();
        if member.rank() == 0 {
            gather.enqueue(&channel, &stream).unwrap();
            wait_for(&pool, Health::Warned);
            // The record is there while the kernel still waits.
            let warnings = pool.warnings().unwrap();
            assert!(!stream.query().unwrap());
            assert_eq!(warnings.len(), 1);
            assert_eq!(warnings[0].late_ranks, [Rank(1)]);
            assert_eq!(warnings[0].late_rank, Some(Rank(1)));
            assert_eq!(warnings[0].epoch, 2);
            assert!(warnings[0].warning && warnings[0].waited >= contract.warn);
            member.group.verdict("warned", &Ok(())).unwrap();
        } else {
            member.group.verdict("warned", &Ok(())).unwrap();
            gather.enqueue(&channel, &stream).unwrap();
        }
        stream.synchronize().unwrap();
        assert!(gather.output().unwrap() == gather.expected(0));
        assert_eq!(pool.faults().unwrap(), []);
        pool.close().unwrap();
    });
}

#[test]
fn whatever_fails_by_whatever_transport_leaves_all_ones_in_its_output() {
    // Each CTA fills its own part: of several, all must.
    let shapes = [
        (Shape::gather(DType::Bf16, 3, 2, 64), 1),
        (Shape::gather(DType::Bf16, 7, 2, 512), 4),
        (Shape::reduce(DType::Bf16, 3, 2, 64), 1),
        (Shape::reduce(DType::Bf16, 7, 2, 512), 4),
    ];
    for transport in [Transport::Push, Transport::Pull] {
        let (_machine, driver) = machine(2);
        let contract = Contract {
            transport,
            query_head_dim: 512,
            value_head_dim: 512,
            ..contract(200)
        };
        on_ranks(&driver, 2, |member| {
            let (pool, channel) = member.channel(&contract, "decode").unwrap();
            let stream = Stream::new(&member.device).unwrap();
            for (shape, grid) in shapes {
                let exchange = Exchange::new(member, shape).unwrap();
                let graph = capture(&pool, &stream, "decode", |channel| {
                    exchange.enqueue(channel, &stream).unwrap();
                });
                assert_eq!(grids(&graph), [grid], "{shape:?}");
                drop(graph);
                let fails = |cause: Cause| {
                    exchange.enqueue(&channel, &stream).unwrap();
                    stream.synchronize().unwrap();
                    let fault = channel.fault().unwrap().unwrap();
                    assert_eq!(fault.cause, Some(cause), "{fault}");
                    let output = exchange.read().unwrap();
                    let other = output.iter().position(|&byte| byte != 0xff);
                    assert_eq!(other, None, "{shape:?}: {fault}");
                    member.group.verdict("failed", &Ok(())).unwrap();
                };
                exchange.supply(0).unwrap();
                if member.rank() == 0 {
                    fails(Cause::EntryTimeout);
                } else {
                    member.group.verdict("failed", &Ok(())).unwrap();
                }
                // The other rank comes too late.
                if member.rank() == 1 {
                    fails(Cause::Skipped);
                } else {
                    member.group.verdict("failed", &Ok(())).unwrap();
                }
                pool.reset().unwrap();
            }
            pool.close().unwrap();
        });
    }
}

#[test]
fn epochs_pass_the_limits_of_32_bits() {
    let (_machine, driver) = machine(2);
    let contract = contract(30_000);
    on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        for floor in [(1 << 31) - 2, (1 << 32) - 2, (1 << 40) + 1] {
            pool.reset_above(floor).unwrap();
            for round in 0..5 {
                works(member, &contract, &channel, &stream, round);
            }
        }
        assert_eq!(pool.health().unwrap(), Health::Healthy);
        pool.close().unwrap();
    });
}
