//! The kernels of a litmus test under all schedules, watched by the detector.

use std::collections::BTreeSet;

use slabfence::driver::{self, Device, Module, PinnedBuffer, Stream};
use slabfence_emu::held::{Bounds, End, Plan, Policy, RegionKind, Rule, Run, Writers};
use slabfence_emu::{Description, Machine};
use slabfence_emu_model::litmus::{Litmus, Term};
use slabfence_tests::probe::{Words, machine};

use super::kernel::{self, Unfit};

/// Warp-instructions of a run. The longest test needs a few hundred, and a loop without strong accesses never ends where
/// nobody else gets a turn.
const LIMIT: u64 = 10_000;
/// Most runs of all schedules.
const RUNS: u64 = 300;
/// Schedules drawn at random where not all were run.
const SEEDS: u64 = 20;

/// What was seen of a test's kernels.
#[derive(Debug, Default)]
pub struct Seen {
    /// Locations with a race, or with a write that is not ordered behind what was before.
    pub races: BTreeSet<usize>,
    /// What else was found.
    pub others: BTreeSet<String>,
    /// Whether a run ended in a deadlock.
    pub stuck: bool,
    /// Whether all schedules were run.
    pub complete: bool,
    /// Values of what the test's condition asks for, at the ends of runs.
    pub finals: BTreeSet<Vec<i64>>,
}

/// Runs the kernels of a test under all schedules, or where these cannot be had under some.
pub fn observe(litmus: &Litmus, kernel_boundary: bool) -> Result<Seen, Unfit> {
    let kernels = kernel::kernels(litmus)?;
    let (machine, driver) = machine(kernels.len() as u32);
    let ordinals = 0..kernels.len() as u32;
    let devices: Vec<Device> = ordinals
        .map(|ordinal| Device::open(&driver, ordinal).unwrap())
        .collect();
    let memory = PinnedBuffer::new(&devices[0], kernel::bytes(litmus) as usize).unwrap();
    for (number, &value) in litmus.initial.iter().enumerate() {
        let at = kernel::location(number) as usize;
        memory.store(at, value as u64).unwrap();
    }
    let base = memory.ptr().raw();
    describe(&machine, litmus, base);
    let load = |(device, kernels): (&Device, &kernel::Kernels)| {
        let module = Module::from_ptx(device, &litmus.name, &kernels.text).unwrap();
        let entries = (0..kernels.count).map(|k| module.kernel(&format!("k{k}")).unwrap());
        (Stream::new(device).unwrap(), entries.collect())
    };
    let loaded: Vec<(Stream, Vec<driver::Kernel>)> =
        devices.iter().zip(&kernels).map(load).collect();
    let mut held = machine.hold().unwrap();
    for (kernels, (stream, entries)) in kernels.iter().zip(&loaded) {
        let words = Words { to: base, word: 0 };
        for entry in entries {
            // SAFETY: the memory outlives the machine's work, which ends before it is freed.
            unsafe { entry.launch(stream, kernels.grid, kernels.threads, &words) }.unwrap();
        }
    }
    let plan = Plan {
        kernel_boundary,
        limit: LIMIT,
        ..Plan::new(Policy::RoundRobin)
    };
    let bounds = Bounds {
        runs: RUNS,
        ..Bounds::default()
    };
    let mut seen = Seen::default();
    let mut finals = BTreeSet::new();
    let mut end = || {
        finals.insert(values(litmus, &memory));
        Ok(())
    };
    let found = held.exhaust(&plan, &bounds, |_| end()).unwrap();
    seen.complete = found.complete;
    found.bad.iter().for_each(|bad| seen.add(litmus, base, bad));
    // They end with the first finding; others have others.
    if !seen.complete {
        let random = Plan {
            policy: Policy::Random,
            ..plan
        };
        for seed in 0..SEEDS {
            let run = held.run(&random, seed).unwrap();
            if run.end == End::Complete {
                end().unwrap();
            }
            seen.add(litmus, base, &run);
        }
    }
    seen.finals = finals;
    Ok(seen)
}

/// Says which locations are ordered ones: the epoch is such a word.
fn describe(machine: &Machine, litmus: &Litmus, base: u64) {
    if litmus.ordered.is_empty() {
        return;
    }
    let say = |at: u64, len: u64, name: &str, kind| {
        let description = Description {
            name: name.to_owned(),
            mapped: 0,
            kind,
            rank: 0,
            group: 0,
            slot: None,
            writers: Writers::Anyone,
        };
        machine.describe(base + at, len, description);
    };
    for (number, name) in litmus.locations.iter().enumerate() {
        let kind = match litmus.ordered.contains(&number) {
            true => RegionKind::Epoch,
            false => RegionKind::Buffer,
        };
        say(kernel::location(number), kernel::LOCATION, name, kind);
    }
    let registers = kernel::location(litmus.locations.len());
    let len = kernel::bytes(litmus) - registers;
    say(registers, len, "registers", RegionKind::Buffer);
}

/// What the test's condition asks for, in its order.
fn values(litmus: &Litmus, memory: &PinnedBuffer) -> Vec<i64> {
    let load = |at: u64| memory.load(at as usize).unwrap() as i64;
    let value = |term: Term| match term {
        Term::Number(number) => number,
        Term::Register { thread, register } => load(kernel::register(litmus, thread, register)),
        Term::Location(location) => load(kernel::location(location)),
    };
    litmus.condition.terms().into_iter().map(value).collect()
}

impl Seen {
    fn add(&mut self, litmus: &Litmus, base: u64, run: &Run) {
        match &run.end {
            End::Complete | End::Unfinished(_) => {}
            End::Deadlock(_) => self.stuck = true,
            End::Fault(words) => _ = self.others.insert(words.clone()),
        }
        for finding in &run.findings {
            let place = finding.place.as_ref();
            let offset = place.and_then(|place| place.address.checked_sub(base));
            let location = offset.map(|offset| (offset / kernel::LOCATION) as usize);
            match (finding.rule, location) {
                (Rule::Race | Rule::UnorderedOverwrite, Some(at))
                    if at < litmus.locations.len() =>
                {
                    self.races.insert(at);
                }
                _ => _ = self.others.insert(finding.to_string()),
            }
        }
    }
}
