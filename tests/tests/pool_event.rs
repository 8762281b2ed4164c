//! The event of a pool's faults: when it is readable, and when not.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use slabfence::Error;
use slabfence::channel::Contract;
use slabfence::driver::{CaptureMode, GraphExec};
use slabfence::health::Health;
use slabfence_tests::events::{count, is_readable};
use slabfence_tests::host::{Host, contract};
use slabfence_tests::late::{FAIL, until};
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Member, on_ranks};

/// Many times what a look takes: long enough to see an event that should not be.
const MOMENT: Duration = Duration::from_millis(50);

/// One rank with channels `a` and `b`.
fn host<'a>(member: &'a Member, contract: &Contract) -> Host<'a> {
    let host = Host::of(member, contract);
    host.pool.prepare(&["a", "b"]).unwrap();
    host
}

/// A graph of one gather, whose label says whose it is: graphs of different ranks do not fit together.
fn graph(host: &Host<'_>, name: &str, label: &str) -> GraphExec {
    let stream = &host.stream;
    let scope = host.pool.capture_labelled(name, label, stream).unwrap();
    stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
    host.gather.enqueue(&host.channel(name), stream).unwrap();
    let graph = stream.end_capture().unwrap();
    scope.finish().unwrap();
    graph.instantiate().unwrap()
}

/// A graph that fits no other rank's.
fn misfit(host: &Host<'_>, name: &str) -> GraphExec {
    graph(host, name, &format!("of {}", host.member.group.me()))
}

fn replay(host: &Host<'_>, exec: &mut GraphExec) {
    exec.launch(&host.stream).unwrap();
    host.stream.synchronize().unwrap();
}

fn silent(event: BorrowedFd<'_>) {
    assert!(!is_readable(event, MOMENT));
}

#[test]
fn a_fault_in_a_replay_is_told_once_for_each_channel_and_again_after_a_reset() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let host = host(member, &contract());
        let pool = &host.pool;
        let event = pool.fault_event().unwrap();
        assert_eq!(event.as_raw_fd(), pool.fault_event().unwrap().as_raw_fd());
        let mut fits = ["a", "b"].map(|name| graph(&host, name, name));
        let mut misfits = ["a", "b"].map(|name| misfit(&host, name));
        fits.iter_mut()
            .for_each(|exec| host.right(0, || exec.launch(&host.stream)));
        silent(event);
        for round in 1..4 {
            for misfit in &mut misfits {
                replay(&host, misfit);
                assert_eq!(count(event), 1, "round {round}");
                // What finds the channel failed is no new fault.
                replay(&host, misfit);
                silent(event);
            }
            pool.reset().unwrap();
            fits.iter_mut()
                .for_each(|exec| host.right(round, || exec.launch(&host.stream)));
            silent(event);
        }
        drop((fits, misfits));
        pool.close().unwrap();
        let closed = pool.fault_event();
        assert!(matches!(closed, Err(Error::Closed { .. })), "{closed:?}");
        silent(event);
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn what_nobody_has_read_is_taken_back_when_no_fault_is_left() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let host = host(member, &contract());
        let pool = &host.pool;
        let event = pool.fault_event().unwrap();
        let fails = |name: &str| {
            let mut exec = misfit(&host, name);
            replay(&host, &mut exec);
        };
        fails("a");
        assert!(is_readable(event, FAIL));
        pool.reset().unwrap();
        assert_eq!(pool.health().unwrap(), Health::Healthy);
        silent(event);
        fails("a");
        assert_eq!(count(event), 1);
        fails("b");
        assert!(is_readable(event, FAIL));
        pool.retire(&["a"]).unwrap();
        // The other fault is still there.
        assert!(is_readable(event, Duration::ZERO));
        pool.retire(&["b"]).unwrap();
        silent(event);
        // The ranges' next channel.
        pool.prepare(&["c"]).unwrap();
        fails("c");
        assert_eq!(count(event), 1);
        pool.close().unwrap();
    });
}

#[test]
fn an_event_that_is_asked_for_late_tells_of_all_faults_so_far() {
    let (_machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let host = host(member, &contract());
        for name in ["a", "b"] {
            replay(&host, &mut misfit(&host, name));
        }
        assert_eq!(count(host.pool.fault_event().unwrap()), 2);
        host.pool.close().unwrap();
    });
}

#[test]
fn a_warning_is_no_event() {
    let (_machine, driver) = machine(2);
    let contract = Contract {
        warn: Duration::from_millis(20),
        ..contract()
    };
    on_ranks(&driver, 2, |member| {
        let host = host(member, &contract);
        let event = host.pool.fault_event().unwrap();
        let mut exec = graph(&host, "a", "a");
        host.gather.fill(member.rank(), 0).unwrap();
        if member.rank() == 0 {
            exec.launch(&host.stream).unwrap();
            until("warned", || host.pool.health().unwrap() == Health::Warned);
            silent(event);
            member.group.verdict("warned", &Ok(())).unwrap();
        } else {
            member.group.verdict("warned", &Ok(())).unwrap();
            exec.launch(&host.stream).unwrap();
        }
        host.stream.synchronize().unwrap();
        assert!(host.gather.output().unwrap() == host.gather.expected(0));
        silent(event);
        drop(exec);
        host.pool.close().unwrap();
    });
}

#[test]
fn a_graph_that_outlives_its_pool_is_still_told_of() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let host = host(member, &contract());
        let mut exec = misfit(&host, "a");
        let event = host.pool.fault_event().unwrap();
        let event = event.try_clone_to_owned().unwrap();
        let Host { pool, stream, .. } = host;
        drop(pool);
        exec.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(count(&event), 1);
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
}
