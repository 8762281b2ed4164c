//! What a held machine's detector knows of memory before the first run: what was written.

use slabfence::driver::{Device, DeviceBuffer};
use slabfence_emu::held::{Plan, Policy, Run};
use slabfence_tests::probe::{Probe, machine};

const PLAN: Plan = Plan::new(Policy::Random);

/// Rule, region, offset in it and instruction of every finding.
fn found(run: &Run) -> Vec<(&'static str, String, u64, u32)> {
    let place = |finding: &slabfence_emu::held::Finding| {
        let place = finding.place.clone().expect("a place");
        let thread = finding.later.clone().and_then(|party| party.thread);
        let line = thread.expect("a thread").line;
        (finding.rule.name(), place.region, place.offset, line)
    };
    run.findings.iter().map(place).collect()
}

/// What is found when a kernel copies the second word of a buffer, after `first` was done with it.
fn copied(first: impl Fn(&DeviceBuffer, &Probe)) -> Run {
    let (machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let probe = Probe::new(&device).unwrap();
    let (from, to) = (
        DeviceBuffer::new(&device, 64).unwrap(),
        DeviceBuffer::new(&device, 8).unwrap(),
    );
    first(&from, &probe);
    let mut held = machine.hold().unwrap();
    probe
        .enqueue_copy(to.ptr().raw(), from.ptr().raw() + 8)
        .unwrap();
    held.run(&PLAN, 1).unwrap()
}

#[test]
fn a_kernel_that_loads_what_nobody_has_written_is_found() {
    for first in [
        |_: &DeviceBuffer, _: &Probe| {},
        |from: &DeviceBuffer, _: &Probe| from.write(16, &[7; 48]).unwrap(),
        |from: &DeviceBuffer, _: &Probe| from.write(0, &[7; 15]).unwrap(),
    ] {
        let run = copied(first);
        let [(rule, region, 8, 20)] = &found(&run)[..] else {
            panic!("{run}");
        };
        assert_eq!(*rule, "uninitialised");
        assert!(region.contains("cuMemAlloc memory"), "{region}");
    }
}

#[test]
fn what_a_copy_a_fill_or_a_kernel_has_written_may_be_loaded() {
    for first in [
        |from: &DeviceBuffer, _: &Probe| from.write(8, &[7; 8]).unwrap(),
        |from: &DeviceBuffer, _: &Probe| from.fill(0).unwrap(),
        |from: &DeviceBuffer, probe: &Probe| probe.poke(from.ptr().raw() + 8, 5).unwrap(),
    ] {
        let run = copied(first);
        assert!(run.is_clean(), "{run}");
    }
}

#[test]
fn a_store_of_one_run_does_not_excuse_the_load_of_the_next() {
    let (machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let (first, second) = (Probe::new(&device).unwrap(), Probe::new(&device).unwrap());
    let (from, to) = (
        DeviceBuffer::new(&device, 8).unwrap(),
        DeviceBuffer::new(&device, 8).unwrap(),
    );
    let mut held = machine.hold().unwrap();
    first.enqueue_poke(from.ptr().raw(), 5).unwrap();
    second
        .enqueue_copy(to.ptr().raw(), from.ptr().raw())
        .unwrap();
    let mut rules = Vec::new();
    for seed in 0..20 {
        let run = held.run(&PLAN, seed).unwrap();
        let names: Vec<_> = found(&run).into_iter().map(|one| one.0).collect();
        rules.push(names);
    }
    // Which of the two comes first is the schedule's; that nothing orders them is seen either way.
    assert!(rules.contains(&vec!["race"]), "{rules:?}");
    assert!(rules.contains(&vec!["uninitialised", "race"]), "{rules:?}");
    drop(held);
}
