//! The thread that looks for faults: there only while a pool is to be looked at. One test: it counts the process's threads.

use slabfence::channel::Contract;
use slabfence::driver::drop_released;
use slabfence_emu::Live;
use slabfence_tests::events::{open_events, watchers};
use slabfence_tests::late::until;
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::on_ranks;

#[test]
fn one_thread_looks_at_all_pools_and_ends_with_the_last_however_it_ends() {
    let contract = Contract::new(4, 64, 64, 8);
    for _ in 0..20 {
        let (machine, driver) = machine(2);
        let events = on_ranks(&driver, 2, |member| {
            let step = |name: &'static str| member.group.verdict(name, &Ok(())).unwrap();
            let [first, second] = [(); 2].map(|()| member.pool(&contract).unwrap());
            assert_eq!((watchers(), open_events()), (0, 0));
            step("none");
            first.fault_event().unwrap();
            let event = second.fault_event().unwrap().try_clone_to_owned().unwrap();
            step("all");
            // A new thread gives itself its name.
            until("watched", || watchers() == 1);
            // Two of each rank, and a copy of one.
            assert_eq!(open_events(), 6);
            step("counted");
            first.close().unwrap();
            drop(first);
            step("half of them");
            assert_eq!(watchers(), 1);
            step("counted again");
            second.close().unwrap();
            event
        });
        // Closed pools are not looked at, and gave their page back when they were dropped.
        until("without a watcher", || watchers() == 0);
        assert_eq!(open_events(), 2);
        drop(events);
        drop(driver);
        assert_eq!(machine.live(), Live::default());
    }
    // A pool that is dropped without close.
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let pool = member.pool(&contract).unwrap();
        pool.fault_event().unwrap();
    });
    until("without a watcher", || watchers() == 0);
    assert_eq!(open_events(), 0);
    drop_released();
    drop(driver);
    assert_eq!(machine.live().host_allocations, 2);
}
