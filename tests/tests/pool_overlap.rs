//! Two operations of one channel at the same time, which a caller must not ask for: the kernel finds out and says so.

use std::time::Duration;

use slabfence::Error;
use slabfence::channel::Contract;
use slabfence::driver::Stream;
use slabfence::health::Health;
use slabfence::layout::{Cause, split_verdict};
use slabfence_tests::late::FAIL;
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
        let verdict = || split_verdict(probe.peek(channel.verdict().unwrap().raw()).unwrap());
        assert_eq!(verdict(), None);
        if member.rank() == 0 {
            // The first waits for rank 1, which does not come before the second has started.
            gathers[0].enqueue(&channel, &streams[0]).unwrap();
            std::thread::sleep(Duration::from_millis(100));
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
