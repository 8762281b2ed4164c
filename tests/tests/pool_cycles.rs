//! Set-up and close again and again, between threads and between processes: descriptors, threads, ranges of addresses and
//! memory end where they were.

use std::alloc::{GlobalAlloc, Layout, System};
use std::env;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use slabfence::channel::Contract;
use slabfence::driver::{Driver, Stream, drop_released};
use slabfence::layout::Transport;
use slabfence_emu::{Live, Machine, Profile};
use slabfence_tests::graphs::capture;
use slabfence_tests::processes::{Ending, Folder, Ranks};
use slabfence_tests::ranks::{Gather, on_ranks};
use slabfence_tests::usage::{KEEPS_NOTHING, Usage};

const PROGRAM: &str = env!("CARGO_BIN_EXE_slabfence-test-rank");

/// After so many, what is made once and kept is there.
const WARM_UP: u32 = 10;
const CYCLES: u32 = 1000;
/// Threads that have done their work may take so long to free what is theirs, on a busy host.
const PATIENCE: Duration = Duration::from_secs(30);
/// Every so many, the pool is used too, of both transports in turn: by an operation, a graph and a reset.
const USED: u32 = 7;
/// The test that has a process to itself.
const ALONE: &str = "a_thousand_set_ups_and_closes_of_threads_leave_the_process_as_it_was";

/// Allocations that are alive. The size of a process tells of large ones only.
static ALIVE: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[allow(unsafe_code, reason = "an allocator is unsafe to implement")]
// SAFETY: the system's allocator does it all.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALIVE.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn contract(cycle: u32) -> Contract {
    let mut contract = Contract {
        fail: Duration::from_secs(60),
        max_channels: 2,
        max_grid: 4,
        ..Contract::new(4, 16, 16, 2)
    };
    if cycle % 2 == 1 {
        contract.transport = Transport::Pull;
    }
    contract
}

/// Two ranks that make devices, group and pool, use them, and close.
fn cycle(driver: &Driver, cycle: u32) {
    let contract = contract(cycle);
    on_ranks(driver, 2, |member| {
        let (pool, channel) = member.channel(&contract, "decode").unwrap();
        if cycle.is_multiple_of(USED) {
            let stream = Stream::new(&member.device).unwrap();
            let gather = Gather::new(member, &contract, 1).unwrap();
            let graph = capture(&pool, &stream, "decode", |channel| {
                gather.enqueue(channel, &stream).unwrap();
            });
            let mut exec = graph.instantiate().unwrap();
            gather.fill(member.rank(), cycle).unwrap();
            gather.enqueue(&channel, &stream).unwrap();
            exec.launch(&stream).unwrap();
            stream.synchronize().unwrap();
            assert!(gather.output().unwrap() == gather.expected(cycle));
            pool.reset().unwrap();
            drop((graph, exec));
        }
        pool.close().unwrap();
    });
}

#[test]
fn a_thousand_set_ups_and_closes_of_threads_leave_the_process_as_it_was() {
    let (variable, value) = KEEPS_NOTHING;
    if env::var(variable).is_ok_and(|set| set == value) {
        return threads();
    }
    // Alone, and with a C library that keeps nothing: then all is as it was.
    let mut again = Command::new(env::current_exe().unwrap());
    again.env(variable, value).args(["--exact", ALONE]);
    let run = again.output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(
        run.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&run.stderr)
    );
}

/// How many allocations are alive once they are so many, or at the end of all patience.
fn settled(before: usize) -> usize {
    let until = Instant::now() + PATIENCE;
    loop {
        let now = ALIVE.load(Ordering::Relaxed);
        if now == before || Instant::now() > until {
            return now;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn threads() {
    let mut profile = Profile::named("h200-nvlink").unwrap();
    profile.granularity = 1 << 16;
    let machine = Machine::new(profile, 2).unwrap();
    let driver = Driver::from_api(machine.api().unwrap()).unwrap();
    (0..WARM_UP).for_each(|n| cycle(&driver, n));
    drop_released();
    let before = Usage::still();
    let alive = ALIVE.load(Ordering::Relaxed);
    assert_eq!(machine.live(), Live::default());
    for n in WARM_UP..CYCLES {
        cycle(&driver, n);
        assert_eq!(machine.live(), Live::default(), "cycle {n}");
    }
    drop_released();
    let after = Usage::settled(&before);
    let left = settled(alive);
    println!("before: {before:?}, {alive} allocations\nafter:  {after:?}, {left} allocations");
    assert!(after.is_that(&before), "{after:?} after {before:?}");
    assert_eq!(left, alive);
    assert_eq!(machine.faults(), Vec::<String>::new());
}

/// Each rank looks at itself behind the first ones and at the end, and at its memory files behind each.
#[test]
fn a_thousand_set_ups_and_closes_between_processes_leave_them_as_they_were() {
    let folder = Folder::new();
    let scenario = format!("cycles:{CYCLES}");
    let (ranks, variables) = ([0, 1], [KEEPS_NOTHING]);
    let ranks = Ranks::start_in(&variables, PROGRAM, &scenario, folder.path(), &ranks, 2);
    for ending in ranks.finish() {
        let right = Ending::right();
        assert_eq!(ending, right);
    }
    assert_eq!(folder.files(), 0);
}
