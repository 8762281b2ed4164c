//! What kernels have reported is read from host memory, whatever the device does.

use std::sync::Arc;
use std::time::Duration;

use slabfence::channel::Contract;
use slabfence::driver::{Driver, Stream};
use slabfence::group::{Bootstrap, ThreadBootstrap};
use slabfence::health::Health;
use slabfence_tests::injection::{Ledger, watched};
use slabfence_tests::late::{FAIL, until};
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, on_drivers};

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
