//! What the driver's calls order on a held machine: streams, events, the legacy stream, graphs. One kernel stores a word,
//! another loads it, and nothing on the device orders them.

use slabfence::driver::{
    CaptureMode, Device, DeviceBuffer, Driver, Event, GraphExec, PinnedBuffer, Stream,
};
use slabfence::sys::{CUstream, CUstream_flags};
use slabfence_emu::held::{End, Plan, Policy, Rule};
use slabfence_tests::probe::{Probe, machine};
use slabfence_tests::watched::Watched;

const PLAN: Plan = Plan::new(Policy::Random);
/// The word's offset in its buffer.
const AT: u64 = 16;

/// Two devices with two streams each, a word that both reach, and a place to copy it to on each device.
struct Bench {
    machine: Watched,
    _driver: Driver,
    devices: [Device; 2],
    probes: [[Probe; 2]; 2],
    word: PinnedBuffer,
    copies: [DeviceBuffer; 2],
}

impl Bench {
    fn new() -> Self {
        let (machine, driver) = machine(2);
        let devices = [0, 1].map(|ordinal| Device::open(&driver, ordinal).unwrap());
        let probe = |device: &Device| [(); 2].map(|()| Probe::new(device).unwrap());
        let buffer = |device: &Device| {
            let buffer = DeviceBuffer::new(device, 64).unwrap();
            buffer.fill(0).unwrap();
            buffer
        };
        Self {
            probes: [probe(&devices[0]), probe(&devices[1])],
            word: PinnedBuffer::new(&devices[0], 64).unwrap(),
            copies: [buffer(&devices[0]), buffer(&devices[1])],
            devices,
            machine,
            _driver: driver,
        }
    }

    fn store(&self, by: &Probe) {
        by.enqueue_poke(self.word.ptr().raw() + AT, 5).unwrap();
    }

    fn load(&self, by: &Probe) {
        let to = &self.copies[by.stream.device().ordinal() as usize];
        by.enqueue_copy(to.ptr().raw(), self.word.ptr().raw() + AT)
            .unwrap();
    }

    /// Makes what `second` does from now on wait for all that `first` was told to do.
    fn order(&self, first: &Probe, second: &Probe) {
        let event = Event::new(first.stream.device()).unwrap();
        event.record(&first.stream).unwrap();
        second.stream.wait(&event).unwrap();
    }

    /// Whether what is enqueued is free of races under some schedules. If it is not, each of them finds one, on the
    /// word, of the kernel that stores with the one that loads.
    fn is_clean(&self, enqueue: impl FnOnce()) -> bool {
        let mut held = self.machine.hold().unwrap();
        enqueue();
        let clean: Vec<bool> = (0..8)
            .map(|seed| {
                let run = held.run(&PLAN, seed).unwrap();
                assert_eq!(run.end, End::Complete);
                let [finding] = &run.findings[..] else {
                    assert_eq!(run.findings, []);
                    return true;
                };
                assert_eq!(finding.rule, Rule::Race, "{finding}");
                let place = finding.place.as_ref().unwrap();
                let word = self.word.ptr().raw() + AT;
                assert_eq!((place.address, place.offset), (word, AT));
                let mut kernels = [&finding.earlier, &finding.later].map(|party| {
                    let thread = party.as_ref().unwrap().thread.as_ref();
                    thread.unwrap().kernel.as_str()
                });
                kernels.sort_unstable();
                assert_eq!(kernels, ["copy", "poke"]);
                false
            })
            .collect();
        assert!(clean.iter().all(|&one| one == clean[0]), "{clean:?}");
        clean[0]
    }
}

/// Runs work of a probe of device 0 and another one: its neighbour, and one of the other device.
fn with_each(check: impl Fn(&Bench, &Probe, &Probe)) {
    for device in 0..2 {
        let bench = Bench::new();
        let [[first, neighbour], [abroad, _]] = &bench.probes;
        check(&bench, first, [neighbour, abroad][device]);
    }
}

#[test]
fn an_event_orders_what_was_enqueued_before_its_record_before_what_waits() {
    with_each(|bench, first, second| {
        assert!(bench.is_clean(|| {
            bench.store(first);
            bench.order(first, second);
            bench.load(second);
        }));
    });
    // In the other direction: the store waits for the load.
    with_each(|bench, first, second| {
        assert!(bench.is_clean(|| {
            bench.load(second);
            bench.order(second, first);
            bench.store(first);
        }));
    });
}

#[test]
fn two_streams_without_an_event_race() {
    with_each(|bench, first, second| {
        assert!(!bench.is_clean(|| {
            bench.store(first);
            bench.load(second);
        }));
    });
}

#[test]
fn an_event_says_nothing_of_what_comes_after_its_record_or_before_the_wait() {
    with_each(|bench, first, second| {
        assert!(!bench.is_clean(|| {
            bench.order(first, second);
            bench.store(first);
            bench.load(second);
        }));
    });
    with_each(|bench, first, second| {
        assert!(!bench.is_clean(|| {
            bench.store(first);
            bench.load(second);
            bench.order(first, second);
        }));
    });
    // The wait is for the stream that waits alone, and for the stream that recorded alone.
    with_each(|bench, first, second| {
        assert!(!bench.is_clean(|| {
            bench.store(first);
            bench.order(first, &bench.probes[1][1]);
            bench.load(second);
        }));
    });
}

#[test]
fn a_wait_is_for_the_last_record_before_it() {
    for again in [false, true] {
        with_each(|bench, first, second| {
            let event = Event::new(first.stream.device()).unwrap();
            let clean = bench.is_clean(|| {
                event.record(&first.stream).unwrap();
                bench.store(first);
                if again {
                    event.record(&first.stream).unwrap();
                }
                second.stream.wait(&event).unwrap();
                bench.load(second);
                event.record(&first.stream).unwrap();
            });
            assert_eq!(clean, again);
        });
    }
}

#[test]
fn order_is_passed_on_by_a_stream_that_does_nothing_itself() {
    for last in [true, false] {
        with_each(|bench, first, second| {
            let between = &bench.probes[1][1];
            let clean = bench.is_clean(|| {
                bench.store(first);
                bench.order(first, between);
                if last {
                    bench.order(between, second);
                }
                bench.load(second);
            });
            assert_eq!(clean, last);
        });
    }
}

/// A stream of device 0 with these flags.
fn stream(bench: &Bench, flags: CUstream_flags) -> Stream {
    let device = &bench.devices[0];
    let _guard = device.bind().unwrap();
    let mut raw = CUstream::null();
    let create = device.driver().api().cuStreamCreate().unwrap();
    // SAFETY: a live out-parameter, and the device's context is current.
    assert!(unsafe { create(&mut raw, flags) }.is_success());
    // SAFETY: a stream of the device that lives as long as the machine.
    unsafe { Stream::from_raw(device, raw) }
}

#[test]
fn the_legacy_stream_orders_streams_that_block_and_no_others() {
    for (flags, blocks) in [
        (CUstream_flags::empty(), true),
        (CUstream_flags::CU_STREAM_NON_BLOCKING, false),
    ] {
        for legacy_first in [false, true] {
            let mut bench = Bench::new();
            // SAFETY: the null stream names the legacy stream, which no one destroys.
            let legacy = unsafe { Stream::from_raw(&bench.devices[0], CUstream::null()) };
            let other = stream(&bench, flags);
            let streams = match legacy_first {
                true => [legacy, other],
                false => [other, legacy],
            };
            for (probe, stream) in bench.probes[0].iter_mut().zip(streams) {
                probe.stream = stream;
            }
            let [first, second] = &bench.probes[0];
            let clean = bench.is_clean(|| {
                bench.store(first);
                bench.load(second);
            });
            assert_eq!(clean, blocks, "legacy first: {legacy_first}");
        }
    }
}

/// Captures on a stream of device 0.
fn captured(on: &Probe, enqueue: impl FnOnce()) -> GraphExec {
    on.stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
    enqueue();
    let graph = on.stream.end_capture().unwrap();
    graph.instantiate().unwrap()
}

#[test]
fn the_edges_of_a_graph_order_its_kernels_and_their_absence_does_not() {
    for edge in [true, false] {
        with_each(|bench, first, second| {
            let mut exec = captured(first, || {
                if edge {
                    bench.store(first);
                }
                bench.order(first, second);
                if !edge {
                    bench.store(first);
                }
                bench.load(second);
                bench.order(second, first);
            });
            let clean = bench.is_clean(|| exec.launch(&first.stream).unwrap());
            assert_eq!(clean, edge);
        });
    }
}

#[test]
fn a_graph_is_ordered_by_the_stream_that_it_is_launched_on() {
    for same in [true, false] {
        let bench = Bench::new();
        let [first, second] = &bench.probes[0];
        let mut exec = captured(first, || bench.load(first));
        let on = if same { first } else { second };
        // Before it and after it.
        let clean = bench.is_clean(|| {
            bench.store(first);
            exec.launch(&on.stream).unwrap();
        });
        assert_eq!(clean, same);
        let bench = Bench::new();
        let [first, second] = &bench.probes[0];
        let mut exec = captured(first, || bench.load(first));
        let on = if same { first } else { second };
        let clean = bench.is_clean(|| {
            exec.launch(&on.stream).unwrap();
            bench.store(first);
        });
        assert_eq!(clean, same);
    }
}
