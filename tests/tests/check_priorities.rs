//! Schedules by priorities.

use slabfence::driver::{Device, DeviceBuffer, Module, PinnedBuffer, Stream};
use slabfence_emu::held::{Plan, Policy};
use slabfence_emu_mutants::Family;
use slabfence_tests::mutants::every_bug_is_found_and_nothing_else;
use slabfence_tests::probe::{Words, machine};

/// Stores 1, 2 and so on to a word.
const COUNT: &str = "
.version 7.0
.target sm_80
.address_size 64

.visible .entry count(.param .align 8 .b8 block[16])
{
    .reg .b64 %word, %last, %number;
    .reg .pred %more;
    ld.param.u64 %word, [block];
    ld.param.u64 %last, [block+8];
    mov.u64 %number, 0;
AGAIN:
    add.s64 %number, %number, 1;
    st.relaxed.gpu.global.u64 [%word], %number;
    setp.lt.u64 %more, %number, %last;
    @%more bra AGAIN;
    ret;
}
";

#[test]
fn priorities_change_in_every_part_of_a_run() {
    const LAST: u64 = 1000;
    let (machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let (counts, copies) = (Stream::new(&device).unwrap(), Stream::new(&device).unwrap());
    let module = Module::from_ptx(&device, "count", COUNT).unwrap();
    let word = DeviceBuffer::new(&device, 8).unwrap();
    word.fill(0).unwrap();
    let copy = PinnedBuffer::new(&device, 8).unwrap();
    let mut held = machine.hold().unwrap();
    let block = Words {
        to: word.ptr().raw(),
        word: LAST,
    };
    let count = module.kernel("count").unwrap();
    // SAFETY: the word outlives the launch.
    unsafe { count.launch(&counts, 1, 1, &block).unwrap() };
    // SAFETY: both buffers outlive the copy.
    unsafe { word.read_async(0, &copy, 0, 8, &copies).unwrap() };
    let plan = Plan {
        detect: false,
        ..Plan::new(Policy::Priorities { changes: 1 })
    };
    // What the counter had come to when its kernel lost its priority to the copy.
    let mut seen = Vec::new();
    let found = held.explore(&plan, 0..200, |_| {
        seen.push(copy.load(0).unwrap());
        Ok(())
    });
    assert_eq!(found.unwrap().bad, None);
    for quarter in 0..4 {
        let part = quarter * LAST / 4..(quarter + 1) * LAST / 4;
        let within = |seen: &&u64| **seen > 0 && part.contains(seen);
        let times = seen.iter().filter(within).count();
        assert!(times >= 5, "{times} times within {part:?}: {seen:?}");
    }
}

#[test]
fn every_bug_of_pushing_gathers_is_found_by_priorities_and_nothing_else() {
    let policy = Policy::Priorities { changes: 3 };
    every_bug_is_found_and_nothing_else(policy, Family::GatherPush);
}

#[test]
fn every_third_seed_of_a_mixed_policy_goes_by_priorities() {
    let (machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let module = Module::from_ptx(&device, "count", COUNT).unwrap();
    let count = module.kernel("count").unwrap();
    let words = DeviceBuffer::new(&device, 16).unwrap();
    words.fill(0).unwrap();
    let streams = [(); 2].map(|()| Stream::new(&device).unwrap());
    let mut held = machine.hold().unwrap();
    for (at, stream) in (0..).zip(&streams) {
        let block = Words {
            to: words.ptr().raw() + 8 * at,
            word: 100,
        };
        // SAFETY: the words outlive the launch.
        unsafe { count.launch(stream, 1, 1, &block).unwrap() };
    }
    let mut run = |policy, seed| {
        let plan = Plan {
            detect: false,
            ..Plan::new(policy)
        };
        held.run(&plan, seed).unwrap()
    };
    let changes = 3;
    for seed in 0..9 {
        let policy = match seed % 3 {
            1 => Policy::Priorities { changes },
            _ => Policy::Random,
        };
        assert_eq!(run(Policy::Mixed { changes }, seed), run(policy, seed));
        let other = match seed % 3 {
            1 => Policy::Random,
            _ => Policy::Priorities { changes },
        };
        assert_ne!(run(policy, seed), run(other, seed), "seed {seed}");
    }
}
