//! Small kernels on held machines: what all schedules find that one does not, and what the detector sees.

use slabfence::driver::{Device, Driver, Kernel, Module, PinnedBuffer, Stream};
use slabfence_emu::held::{Bounds, End, Exhaustion, Plan, Policy, Reason, Rule, Wait, Waiter};
use slabfence_tests::probe::{Words, machine};
use slabfence_tests::watched::Watched;

const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64

.visible .entry step(.param .align 8 .b8 block[16])
{
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [block];
    ld.relaxed.sys.global.u64 %rd3, [%rd1];
    add.u64 %rd4, %rd3, 1;
    st.relaxed.sys.global.u64 [%rd1], %rd4;
    ret;
}

.visible .entry send(.param .align 8 .b8 block[16])
{
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [block];
    st.global.u64 [%rd1], 7;
    st.release.sys.global.u64 [%rd1+64], 1;
    ret;
}

.visible .entry send_relaxed(.param .align 8 .b8 block[16])
{
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [block];
    st.global.u64 [%rd1], 7;
    st.relaxed.sys.global.u64 [%rd1+64], 1;
    ret;
}

.visible .entry send_twice(.param .align 8 .b8 block[16])
{
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [block];
    st.global.u64 [%rd1], 7;
    st.release.sys.global.u64 [%rd1+64], 1;
    st.release.sys.global.u64 [%rd1+64], 2;
    ret;
}

.visible .entry take(.param .align 8 .b8 block[16])
{
    .reg .b64 %rd<5>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [block];
POLL:
    ld.acquire.sys.global.u64 %rd3, [%rd1+64];
    setp.ne.u64 %p1, %rd3, 1;
    @%p1 bra POLL;
    ld.global.u64 %rd4, [%rd1];
    st.global.u64 [%rd1+128], %rd4;
    ret;
}

.visible .entry chain(.param .align 8 .b8 block[16])
{
    .reg .b64 %rd<5>;
    .reg .b32 %r<2>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [block];
    mov.u32 %r1, %ctaid.x;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra POLL;
    st.release.gpu.global.u64 [%rd1+64], 1;
    ret;
POLL:
    ld.acquire.gpu.global.u64 %rd3, [%rd1+64];
    setp.ne.u64 %p1, %rd3, 1;
    @%p1 bra POLL;
    ret;
}
";

/// Two devices, a kernel on each, and memory that both reach: data at 0, a flag at 64, a result at 128.
struct Pair {
    machine: Watched,
    _driver: Driver,
    memory: PinnedBuffer,
    kernels: [(Kernel, Stream); 2],
}

impl Pair {
    fn new(kernels: [&str; 2]) -> Self {
        let (machine, driver) = machine(2);
        let devices = [0, 1].map(|ordinal| Device::open(&driver, ordinal).unwrap());
        let memory = PinnedBuffer::new(&devices[0], 256).unwrap();
        let load = |at: usize| {
            let module = Module::from_ptx(&devices[at], "litmus", PTX).unwrap();
            let stream = Stream::new(&devices[at]).unwrap();
            (module.kernel(kernels[at]).unwrap(), stream)
        };
        Self {
            kernels: [load(0), load(1)],
            memory,
            machine,
            _driver: driver,
        }
    }

    fn enqueue(&self) {
        (0..2).for_each(|device| self.enqueue_grid(device, 1));
    }

    fn enqueue_grid(&self, device: usize, grid: u32) {
        let (kernel, stream) = &self.kernels[device];
        let to = self.memory.ptr().raw();
        // SAFETY: the memory outlives the machine's work, which ends before `Pair` is dropped.
        unsafe { kernel.launch(stream, grid, 1, &Words { to, word: 0 }) }.unwrap();
    }

    /// All schedules; gives what was at `word` after each.
    fn all(&self, word: usize) -> (Exhaustion, Vec<u64>) {
        let mut held = self.machine.hold().unwrap();
        self.enqueue();
        let bounds = Bounds {
            runs: 100,
            ..Bounds::default()
        };
        let mut seen = Vec::new();
        let found = held.exhaust(&Plan::new(Policy::RoundRobin), &bounds, |_| {
            seen.push(self.memory.load(word).unwrap());
            Ok(())
        });
        seen.sort_unstable();
        (found.unwrap(), seen)
    }
}

#[test]
fn all_schedules_of_two_increments_that_are_no_atomics_are_four_and_two_lose_one() {
    let (found, seen) = Pair::new(["step", "step"]).all(0);
    assert_eq!((found.runs, found.complete, found.bad), (4, true, None));
    assert_eq!(seen, [1, 1, 2, 2]);
}

#[test]
fn a_wait_for_a_flag_has_one_schedule() {
    let (found, seen) = Pair::new(["send", "take"]).all(128);
    assert_eq!((found.runs, found.complete, found.bad), (1, true, None));
    assert_eq!(seen, [7]);
}

#[test]
fn a_flag_that_is_overwritten_before_it_is_seen_is_found() {
    let pair = Pair::new(["send_twice", "take"]);
    let (found, _) = pair.all(128);
    let bad = found.bad.expect("a deadlock");
    let End::Deadlock(waiters) = &bad.end else {
        panic!("{bad}");
    };
    let [waiter] = &waiters[..] else {
        panic!("{bad}");
    };
    let Wait::Warp {
        reason: Reason::Polls(polls),
        ..
    } = &waiter.wait
    else {
        panic!("{bad}");
    };
    let [poll] = &polls[..] else {
        panic!("{bad}");
    };
    let last = poll.last.as_ref().map(|by| (by.device, by.kernel.as_str()));
    assert_eq!(
        (waiter.device, poll.expected, poll.seen, poll.now, last),
        (1, Some(1), 2, Some(2), Some((0, "send_twice")))
    );
    // Nobody has said whose word it is. The one grid whose parameters lead there and which has not ended waits itself.
    let may: Vec<_> = poll
        .writers
        .iter()
        .map(|writer| (writer.device, &writer.operations[..]))
        .collect();
    assert_eq!(may, [(Some(1), &[(1, "take".to_owned())][..])]);
    // The device that waits is broken, as by a watchdog; the other is not.
    assert!(pair.kernels[1].1.synchronize().is_err());
    assert!(pair.kernels[0].1.synchronize().is_ok());
}

#[test]
fn data_behind_a_relaxed_flag_is_a_race_and_behind_a_release_is_none() {
    let plan = Plan::new(Policy::Random);
    let found = |sender| {
        let pair = Pair::new([sender, "take"]);
        let mut held = pair.machine.hold().unwrap();
        pair.enqueue();
        held.explore(&plan, 0..8, |_| Ok(())).unwrap().bad
    };
    assert_eq!(found("send"), None);
    let bad = found("send_relaxed").expect("a race");
    let rules: Vec<Rule> = bad.findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, [Rule::Race], "{bad}");
    let blind = Plan {
        detect: false,
        ..plan
    };
    let pair = Pair::new(["send_relaxed", "take"]);
    let mut held = pair.machine.hold().unwrap();
    pair.enqueue();
    assert_eq!(held.explore(&blind, 0..8, |_| Ok(())).unwrap().bad, None);
}

#[test]
fn a_block_that_waits_for_one_without_room_is_a_deadlock_in_that_order_of_dispatch_only() {
    let pair = Pair::new(["chain", "chain"]);
    let mut held = pair.machine.hold().unwrap();
    pair.enqueue_grid(0, 2);
    let crowded = Plan {
        residency: Some(1),
        ..Plan::new(Policy::Random)
    };
    let ends: Vec<End> = (0..16)
        .map(|seed| held.run(&crowded, seed).unwrap().end)
        .collect();
    let stuck: Vec<_> = ends
        .iter()
        .filter_map(|end| match end {
            End::Deadlock(waiters) => Some(waiters),
            _ => None,
        })
        .collect();
    let whole = ends.iter().filter(|end| **end == End::Complete).count();
    assert_eq!(stuck.len() + whole, 16);
    assert!(!stuck.is_empty() && whole > 0, "{ends:?}");
    let lacks_room = |waiter: &Waiter| waiter.wait == Wait::Room { blocks: 1 };
    assert!(stuck.iter().all(|waiters| waiters.iter().any(lacks_room)));
    // With room for both it always ends, and without drawn dispatch it never does.
    let free = Plan::new(Policy::Random);
    assert_eq!(held.explore(&free, 0..16, |_| Ok(())).unwrap().bad, None);
    let in_order = Plan {
        drawn_dispatch: false,
        ..crowded
    };
    let stuck = |seed| matches!(held.run(&in_order, seed).unwrap().end, End::Deadlock(_));
    assert!((0..4).all(stuck));
}
