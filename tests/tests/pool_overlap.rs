//! Two operations of one channel at the same time, which a caller must not ask for: the kernel finds out and says so.

use std::time::Duration;

use slabfence::Error;
use slabfence::channel::Contract;
use slabfence::driver::Stream;
use slabfence::health::Health;
use slabfence::layout::{Cause, Transport, split_verdict};
use slabfence_tests::graphs::{capture, grids};
use slabfence_tests::late::{FAIL, Onset, until};
use slabfence_tests::probe::{Probe, machine};
use slabfence_tests::ranks::{Gather, on_ranks};

#[test]
fn two_operations_of_a_channel_on_two_streams_are_found_to_overlap() {
    let (machine, driver) = machine(2);
    let contract = Contract {
        fail: FAIL,
        ..Contract::new(4, 64, 64, 8)
    };
    on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        let streams = [(); 2].map(|()| Stream::new(&member.device).unwrap());
        let gathers = [(); 2].map(|()| Gather::new(member, &contract, 2).unwrap());
        for gather in &gathers {
            gather.fill(member.rank(), 0).unwrap();
        }
        let probe = Probe::new(&member.device).unwrap();
        let onset = Onset::of(&pool, "decode");
        let verdict = || split_verdict(probe.peek(channel.verdict().unwrap().raw()).unwrap());
        assert_eq!(verdict(), None);
        if member.rank() == 0 {
            // The first waits for rank 1, which does not come before the second has started.
            gathers[0].enqueue(&channel, &streams[0]).unwrap();
            onset.wait();
            gathers[1].enqueue(&channel, &streams[1]).unwrap();
            for (gather, stream) in gathers.iter().zip(&streams) {
                stream.synchronize().unwrap();
                assert!(gather.output().unwrap().iter().all(|&byte| byte == 0xff));
            }
            let fault = channel.fault().unwrap().unwrap();
            assert_eq!(fault.cause, Some(Cause::Overlap), "{fault}");
            assert_eq!(fault.late_rank, None, "{fault}");
            assert_eq!(verdict(), Some((Cause::Overlap, fault.epoch)));
            let Err(Error::Fault(report)) = gathers[0].enqueue(&channel, &streams[0]) else {
                panic!("a poisoned channel accepted an operation");
            };
            assert_eq!(*report, fault);
            member.group.verdict("failed", &Ok(())).unwrap();
        } else {
            member.group.verdict("failed", &Ok(())).unwrap();
            gathers[0].enqueue(&channel, &streams[0]).unwrap();
            streams[0].synchronize().unwrap();
            let fault = channel.fault().unwrap().unwrap();
            assert_eq!(fault.cause, Some(Cause::Skipped), "{fault}");
            assert_eq!(verdict(), Some((Cause::Skipped, 2)));
        }
        assert_eq!(pool.health().unwrap(), Health::Failed);
        pool.reset().unwrap();
        assert_eq!(pool.health().unwrap(), Health::Healthy);
        assert_eq!(verdict(), None);
        for round in 1..4 {
            gathers[0].fill(member.rank(), round).unwrap();
            gathers[0].enqueue(&channel, &streams[0]).unwrap();
            streams[0].synchronize().unwrap();
            assert_eq!(
                gathers[0].output().unwrap(),
                gathers[0].expected(round),
                "round {round}"
            );
        }
        pool.close().unwrap();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}

/// Two graphs of one channel, of different operations, on two streams of rank 0 at once.
fn two_replays(transport: Transport, fail: Duration) {
    let (machine, driver) = machine(2);
    let contract = Contract {
        transport,
        fail,
        ..Contract::new(4, 256, 256, 8)
    };
    on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        let streams = [(); 2].map(|()| Stream::new(&member.device).unwrap());
        let gathers = [2, 5].map(|batch| Gather::new(member, &contract, batch).unwrap());
        let graphs = gathers.each_ref().map(|gather| {
            capture(&pool, &streams[0], "decode", |channel| {
                gather.enqueue(channel, &streams[0]).unwrap();
            })
        });
        // Each CTA fills its own part of what fails: of the second there are two.
        assert_eq!(graphs.each_ref().map(grids), [[1], [2]]);
        let mut execs = graphs.each_ref().map(|graph| graph.instantiate().unwrap());
        let onset = Onset::of(&pool, "decode");
        if member.rank() == 0 {
            execs[0].launch(&streams[0]).unwrap();
            onset.wait();
            execs[1].launch(&streams[1]).unwrap();
            // Both end, though rank 1 has not come.
            until("at rest", || {
                streams.iter().all(|stream| stream.query().unwrap())
            });
            for gather in &gathers {
                assert!(gather.output().unwrap().iter().all(|&byte| byte == 0xff));
            }
            let fault = channel.fault().unwrap().unwrap();
            // The one that came second says so: the first has taken epoch 2.
            assert_eq!((fault.cause, fault.epoch), (Some(Cause::Overlap), 3));
            member.group.verdict("failed", &Ok(())).unwrap();
        } else {
            member.group.verdict("failed", &Ok(())).unwrap();
            execs[0].launch(&streams[0]).unwrap();
            until("at rest", || streams[0].query().unwrap());
            assert!(
                gathers[0]
                    .output()
                    .unwrap()
                    .iter()
                    .all(|&byte| byte == 0xff)
            );
            let fault = channel.fault().unwrap().unwrap();
            assert_eq!(fault.cause, Some(Cause::Skipped), "{fault}");
        }
        pool.reset().unwrap();
        for round in 0..3 {
            for (gather, exec) in gathers.iter().zip(&mut execs) {
                gather.fill(member.rank(), round).unwrap();
                exec.launch(&streams[0]).unwrap();
                streams[0].synchronize().unwrap();
                assert!(gather.output().unwrap() == gather.expected(round));
            }
        }
        assert_eq!(pool.health().unwrap(), Health::Healthy);
        drop((execs, graphs));
        pool.close().unwrap();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn two_replays_on_two_streams_are_found_to_overlap_and_both_graphs_outlive_it() {
    two_replays(Transport::Push, FAIL);
}

#[test]
fn replays_that_overlap_end_also_where_no_wait_has_a_limit() {
    two_replays(Transport::Pull, Duration::ZERO);
    two_replays(Transport::Push, Duration::ZERO);
}

#[test]
fn one_ranks_failure_ends_the_waits_of_the_others_which_name_it() {
    let (machine, driver) = machine(4);
    let contract = Contract {
        // Nothing but the word of the one that failed ends a wait.
        fail: Duration::ZERO,
        ..Contract::new(8, 64, 64, 8)
    };
    let causes = on_ranks(&driver, 4, |member| {
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        let streams = [(); 2].map(|()| Stream::new(&member.device).unwrap());
        let gathers = [(); 2].map(|()| Gather::new(member, &contract, 2).unwrap());
        let [gather, other] = &gathers;
        let onset = Onset::of(&pool, "decode");
        let step = |name: &'static str| member.group.verdict(name, &Ok(())).unwrap();
        if member.rank() < 3 {
            gather.enqueue(&channel, &streams[0]).unwrap();
            onset.wait();
        }
        step("three of four wait");
        if member.rank() == 0 {
            other.enqueue(&channel, &streams[1]).unwrap();
            streams[1].synchronize().unwrap();
        }
        if member.rank() < 3 {
            until("at rest", || streams[0].query().unwrap());
        }
        step("three of four have failed");
        if member.rank() == 3 {
            gather.enqueue(&channel, &streams[0]).unwrap();
            streams[0].synchronize().unwrap();
        }
        assert!(gather.output().unwrap().iter().all(|&byte| byte == 0xff));
        let fault = channel.fault().unwrap().unwrap();
        pool.reset().unwrap();
        pool.close().unwrap();
        (fault.cause.unwrap(), fault.late_rank.map(|rank| rank.0))
    });
    let told = (Cause::PeerFailed, Some(0));
    assert_eq!(causes[..3], [(Cause::Overlap, None), told, told]);
    assert_eq!(causes[3].0, Cause::Skipped);
    assert_eq!(machine.faults(), Vec::<String>::new());
}
