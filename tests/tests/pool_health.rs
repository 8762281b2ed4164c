//! What kernels have reported is read from host memory, whatever the device does.

use core::mem::offset_of;
use std::sync::Arc;
use std::time::{Duration, Instant};

use slabfence::channel::{Contract, Part};
use slabfence::driver::{Driver, Stream};
use slabfence::group::{Bootstrap, ThreadBootstrap};
use slabfence::health::Health;
use slabfence::layout::ChannelHealth;
use slabfence_tests::injection::{Ledger, watched};
use slabfence_tests::late::{FAIL, until};
use slabfence_tests::probe::{Probe, machine};
use slabfence_tests::ranks::{Gather, on_drivers, on_ranks};

/// Entries that a rank has called in a step.
fn called(ledger: &Ledger, rank: u32, step: &str) -> Vec<&'static str> {
    let points = ledger.points(rank).into_iter();
    let points = points.filter(|point| point.step == step);
    points.map(|point| point.entry).collect()
}

#[test]
fn health_and_records_take_no_driver_call_while_a_kernel_waits_or_after_it_failed() {
    let (machine, driver) = machine(2);
    let drivers = [0, 1].map(|seat| {
        let api = watched(driver.api().clone(), seat);
        Driver::from_api(api).unwrap()
    });
    let contract = Contract {
        warn: Duration::from_millis(20),
        fail: FAIL,
        ..Contract::new(4, 64, 64, 8)
    };
    let members = ThreadBootstrap::world(2).into_iter();
    let members = members.map(|member| Arc::new(member) as Arc<dyn Bootstrap>);
    on_drivers(&drivers, members.collect(), FAIL * 2, |member| {
        let ledger = Ledger::of(member.rank() as usize);
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract, [2, 3][member.rank() as usize]).unwrap();
        ledger.arm(&[]);
        if member.rank() == 0 {
            gather.enqueue(&channel, &stream).unwrap();
            ledger.step("looks", || {
                until("warned", || pool.health().unwrap() == Health::Warned);
                until("recorded", || !pool.warnings().unwrap().is_empty());
                assert_eq!(pool.warnings().unwrap().len(), 1);
                assert!(channel.warning().unwrap().is_some());
                assert!(channel.fault().unwrap().is_none());
            });
            assert!(!ledger.step("control", || stream.query()).unwrap());
            member.group.verdict("warned", &Ok(())).unwrap();
        } else {
            member.group.verdict("warned", &Ok(())).unwrap();
            gather.enqueue(&channel, &stream).unwrap();
        }
        ledger.step("looks", || {
            until("failed", || pool.health().unwrap() == Health::Failed);
            // The record is waited for, on a loaded host perhaps not long enough.
            until("recorded", || !pool.faults().unwrap().is_empty());
            assert_eq!(pool.faults().unwrap().len(), 1);
            let fault = channel.fault().unwrap().unwrap();
            assert_eq!(fault.rank, member.group.me());
        });
        assert_eq!(called(ledger, member.rank(), "looks"), Vec::<&str>::new());
        if member.rank() == 0 {
            assert!(called(ledger, 0, "control").contains(&"cuStreamQuery"));
        }
        pool.reset().unwrap();
        pool.close().unwrap();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}

/// The word of a pool that fails is there before its record, where two warps fail at once and the slower one writes it.
#[test]
fn a_failure_without_a_record_yet_is_waited_for_one_moment_and_told_as_failed() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, channel) = member
            .channel(&Contract::new(4, 64, 64, 8), "decode")
            .unwrap();
        let ranges = pool.ranges().unwrap();
        let part = |part| ranges.iter().find(|range| range.part == part).unwrap().base;
        let probe = Probe::new(&member.device).unwrap();
        probe.poke(part(Part::HealthHeader), 3).unwrap();
        assert_eq!(pool.health().unwrap(), Health::Failed);
        let begin = Instant::now();
        assert_eq!(pool.faults().unwrap(), []);
        assert!(begin.elapsed() >= Duration::from_millis(100));
        // Whoever looks behind that has waited long enough.
        let begin = Instant::now();
        for _ in 0..50 {
            assert_eq!(pool.faults().unwrap(), []);
        }
        assert!(begin.elapsed() < 50 * Duration::from_millis(100));
        let status = pool.status().unwrap();
        assert_eq!(
            (status.health, &status.channels[0].fault),
            (Health::Failed, &None)
        );
        // A wait that was long has happened on no channel: nothing is waited for.
        assert_eq!(
            (pool.warnings().unwrap(), channel.fault().unwrap()),
            (vec![], None)
        );
        let fault = part(Part::HealthRecord) + offset_of!(ChannelHealth, fault) as u64;
        probe.poke(fault, 2).unwrap();
        let faults = pool.faults().unwrap();
        assert_eq!((faults.len(), faults[0].epoch), (1, 2));
        assert_eq!(
            pool.status().unwrap().channels[0].fault.as_ref(),
            faults.first()
        );
        drop(channel);
        pool.close().unwrap();
        // Nothing has a record any more, and nothing is waited for.
        assert_eq!(pool.faults().unwrap(), []);
    });
}
