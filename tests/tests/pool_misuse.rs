//! What hosts get wrong about a pool's life as a whole, and what must then not happen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use slabfence::Error;
use slabfence::driver::{CaptureMode, Stream};
use slabfence::group::{Bootstrap, BootstrapError, Rank, ThreadBootstrap};
use slabfence::sys::{CUresult, CUstreamCaptureMode};
use slabfence_emu::Live;
use slabfence_tests::host::contract;
use slabfence_tests::late::{FAIL, hold};
use slabfence_tests::probe::machine;
use slabfence_tests::ranks::{Gather, on_members, on_ranks};

#[test]
fn close_during_a_capture_frees_nothing_that_runs_and_leaves_the_capture_alone() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract(), "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let foreign = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 2).unwrap();
        gather.fill(member.rank(), 1).unwrap();
        hold(&stream, Duration::from_millis(100));
        gather.enqueue(&channel, &stream).unwrap();
        foreign.begin_capture(CaptureMode::Relaxed).unwrap();
        let Err(Error::Setup { phase, failures }) = pool.close() else {
            panic!("closed");
        };
        assert_eq!((phase, failures.len()), ("close: drain", 2));
        assert!(failures[0].1.contains("after the capture has ended"));
        assert_eq!(foreign.end_capture().unwrap().nodes().unwrap().len(), 0);
        stream.synchronize().unwrap();
        assert!(gather.output().unwrap() == gather.expected(1));
        pool.close().unwrap();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

/// The raw call, as a host makes it: nothing tells the library of it.
fn begin_unseen(stream: &Stream) {
    let begin = stream
        .device()
        .driver()
        .api()
        .cuStreamBeginCapture()
        .unwrap();
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    let bound = stream.device().bind().unwrap();
    // SAFETY: the stream is live and captures nothing.
    let code = unsafe { begin(stream.raw(), mode) };
    assert_eq!(code, CUresult::CUDA_SUCCESS);
    drop(bound);
}

#[test]
fn close_during_a_capture_that_the_host_began_by_itself_frees_nothing_that_runs() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract(), "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let foreign = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 2).unwrap();
        gather.fill(member.rank(), 1).unwrap();
        hold(&stream, Duration::from_millis(100));
        gather.enqueue(&channel, &stream).unwrap();
        begin_unseen(&foreign);
        let Err(Error::Setup { phase, failures }) = pool.close() else {
            panic!("closed");
        };
        assert_eq!((phase, failures.len()), ("close: drain", 2));
        assert!(failures[0].1.contains("after the capture has ended"));
        foreign.end_capture().unwrap_err();
        stream.synchronize().unwrap();
        assert!(gather.output().unwrap() == gather.expected(1));
        pool.close().unwrap();
    });
    assert_eq!(machine.faults(), Vec::<String>::new());
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn a_pool_still_closes_on_a_context_that_a_fault_has_broken() {
    let (machine, driver) = machine(2);
    machine.may_fault();
    on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract(), "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        let gather = Gather::new(member, &contract(), 2).unwrap();
        let mut wild = gather.call;
        wild.input = slabfence::driver::DevicePtr::from_raw(0x10_0000);
        // SAFETY: the address is of nothing; the emulated driver checks every access.
        unsafe { wild.enqueue(&channel, &stream) }.unwrap();
        stream.synchronize().unwrap_err();
        pool.close().unwrap();
    });
    assert_eq!(machine.faults().len(), 2);
}

#[test]
fn pools_of_one_group_that_the_ranks_use_in_opposite_orders_are_told_apart() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let mut pools = [(); 2].map(|()| member.pool(&contract()).unwrap());
        for pool in &pools {
            pool.prepare(&["decode"]).unwrap();
        }
        pools.rotate_left(member.rank() as usize);
        let [first, second] = &pools;
        for (step, result) in [
            ("prepare: drain", first.prepare(&["more"])),
            ("close: drain", first.close()),
        ] {
            let Err(Error::Setup { phase, failures }) = result else {
                panic!("{step} met another pool's");
            };
            assert_eq!(phase, step);
            let words = format!("it is in '{step}' of another pool;");
            assert_eq!(failures[0].0, Rank(1 - member.rank()));
            assert!(failures[0].1.starts_with(&words), "{failures:?}");
        }
        // Both are as they were.
        let [one, two] = match member.rank() {
            0 => [first, second],
            _ => [second, first],
        };
        one.reset().unwrap();
        two.close().unwrap();
        one.close().unwrap();
    });
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn a_scope_that_a_thread_leaked_is_left_when_the_thread_ends() {
    let (machine, driver) = machine(2);
    on_ranks(&driver, 2, |member| {
        let (pool, channel) = member.channel(&contract(), "decode").unwrap();
        let stream = Stream::new(&member.device).unwrap();
        thread::scope(|threads| {
            let leak = || std::mem::forget(pool.capture("decode", &stream).unwrap());
            threads.spawn(leak).join().unwrap();
        });
        let gather = Gather::new(member, &contract(), 2).unwrap();
        gather.fill(member.rank(), 1).unwrap();
        gather.enqueue(&channel, &stream).unwrap();
        stream.synchronize().unwrap();
        assert!(gather.output().unwrap() == gather.expected(1));
        pool.capture("decode", &stream).unwrap().finish().unwrap();
        pool.close().unwrap();
    });
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn the_longest_timeout_is_one_that_a_clock_can_add() {
    let (_machine, driver) = machine(2);
    let members = ThreadBootstrap::world(2).into_iter();
    let members = members.map(|member| Arc::new(member) as Arc<dyn Bootstrap>);
    on_members(&driver, members.collect(), Duration::MAX, |member| {
        let pool = member.pool(&contract()).unwrap();
        pool.close().unwrap();
    });
}

/// A bootstrap that panics once, when the switch is on.
struct Panicking {
    inner: ThreadBootstrap,
    on: Arc<AtomicBool>,
}

impl Bootstrap for Panicking {
    fn all_gather(&self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, BootstrapError> {
        assert!(!self.on.swap(false, Ordering::Relaxed), "no network");
        self.inner.all_gather(bytes, deadline)
    }
}

#[test]
fn a_panic_of_the_bootstrap_is_an_error_of_the_call_and_the_pool_can_be_closed() {
    let (machine, driver) = machine(2);
    let on = Arc::new(AtomicBool::new(false));
    let members = ThreadBootstrap::world(2).into_iter().map(|inner| {
        let on = if inner.rank() == Rank(1) {
            on.clone()
        } else {
            Arc::default()
        };
        Arc::new(Panicking { inner, on }) as Arc<dyn Bootstrap>
    });
    on_members(&driver, members.collect(), FAIL, |member| {
        let pool = member.pool(&contract()).unwrap();
        if member.rank() == 1 {
            on.store(true, Ordering::Relaxed);
            let said = pool.reset().unwrap_err().to_string();
            assert_eq!(said, "the bootstrap failed: it panicked: no network");
            let said = pool.reset().unwrap_err().to_string();
            assert!(said.contains("the pool can only be closed"), "{said}");
        }
        pool.close().unwrap();
    });
    drop(driver);
    assert_eq!(machine.live(), Live::default());
}
