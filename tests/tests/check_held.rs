//! What a held machine does, and what it refuses.

use slabfence::Error;
use slabfence::driver::{Device, DeviceBuffer, Stream};
use slabfence::sys::CUresult;
use slabfence_emu::held::{End, HeldError, Plan, Policy};
use slabfence_tests::probe::{Probe, machine};

const PLAN: Plan = Plan::new(Policy::Random);

fn is_refused<T>(result: Result<T, Error>) -> bool {
    let not_permitted = CUresult::CUDA_ERROR_NOT_PERMITTED;
    matches!(result, Err(Error::Driver(error)) if error.code == not_permitted)
}

#[test]
fn calls_that_would_wait_for_held_work_are_refused_and_those_that_enqueue_are_not() {
    let (machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let probe = Probe::new(&device).unwrap();
    let word = DeviceBuffer::new(&device, 8).unwrap();
    word.fill(0).unwrap();
    let held = machine.hold().unwrap();
    assert!(
        probe.stream.synchronize().is_ok(),
        "there is nothing to wait for"
    );
    probe.enqueue_poke(word.ptr().raw(), 5).unwrap();
    assert!(is_refused(probe.stream.synchronize()));
    assert!(is_refused(word.read(0, &mut [0; 8])));
    assert_eq!(machine.hold().err(), Some(HeldError::Twice));
    drop(held);
    probe.stream.synchronize().unwrap();
    assert_eq!(probe.peek(word.ptr().raw()).unwrap(), 5);
    assert_eq!(machine.faults(), Vec::<String>::new());
}

#[test]
fn every_run_starts_from_the_same_memory_and_the_last_one_stays() {
    let (machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let (first, second) = (Probe::new(&device).unwrap(), Probe::new(&device).unwrap());
    let word = DeviceBuffer::new(&device, 8).unwrap();
    word.fill(1).unwrap();
    let mut held = machine.hold().unwrap();
    let address = word.ptr().raw();
    first.enqueue_poke(address, 5).unwrap();
    second.enqueue_poke(address, 6).unwrap();
    let blind = Plan {
        detect: false,
        ..PLAN
    };
    let mut seen = Vec::new();
    let found = held.explore(&blind, 0..20, |looked| {
        let mut bytes = [0; 8];
        assert!(looked.read(address, &mut bytes));
        assert!(!looked.read(address, &mut [0; 9]));
        seen.push(u64::from_le_bytes(bytes));
        Ok(())
    });
    assert_eq!(found.unwrap().bad, None);
    assert!(seen.contains(&5) && seen.contains(&6), "{seen:?}");
    let stop = held.explore(&blind, 0..20, |looked| {
        let mut bytes = [0; 8];
        looked.read(address, &mut bytes);
        match u64::from_le_bytes(bytes) {
            5 => Err("it is five".to_owned()),
            _ => Ok(()),
        }
    });
    let bad = stop.unwrap().bad.expect("a run that leaves five");
    assert_eq!(bad.wrong.as_deref(), Some("it is five"));
    let at = seen.iter().position(|&word| word == 5);
    assert_eq!(at, Some(bad.seed as usize), "the first such seed");
    assert!(is_refused(first.enqueue_poke(address, 9)), "after a run");
    drop(held);
    first.stream.synchronize().unwrap();
    assert_eq!(first.peek(address).unwrap(), 5);
}

#[test]
fn memory_that_comes_or_goes_between_runs_ends_them() {
    let (machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let probe = Probe::new(&device).unwrap();
    let word = DeviceBuffer::new(&device, 8).unwrap();
    let mut held = machine.hold().unwrap();
    probe.enqueue_poke(word.ptr().raw(), 5).unwrap();
    let mut more = Vec::new();
    let found = held.explore(&PLAN, 0..2, |_| {
        more.push(DeviceBuffer::new(&device, 8).unwrap());
        Ok(())
    });
    assert_eq!(found, Err(HeldError::Changed));
}

#[test]
fn a_fault_ends_the_run_and_breaks_the_device_with_its_code() {
    let (machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let probe = Probe::new(&device).unwrap();
    let mut held = machine.hold().unwrap();
    probe.enqueue_poke(64, 5).unwrap();
    let run = held.run(&PLAN, 1).unwrap();
    let End::Fault(words) = &run.end else {
        panic!("{run}");
    };
    assert!(
        words.contains("illegal store of 8 bytes at 0x40"),
        "{words}"
    );
    drop(held);
    let error = probe.stream.synchronize().unwrap_err();
    assert!(
        slabfence_tests::probe::is_illegal_address(&error),
        "{error}"
    );
    assert_eq!(machine.faults(), [run.end.to_string()]);
}

#[test]
fn the_limit_of_instructions_ends_a_run_that_does_not_end() {
    let (machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let probe = Probe::new(&device).unwrap();
    let word = DeviceBuffer::new(&device, 8).unwrap();
    let mut held = machine.hold().unwrap();
    for value in 0..100 {
        probe.enqueue_poke(word.ptr().raw(), value).unwrap();
    }
    let plan = Plan { limit: 20, ..PLAN };
    let run = held.run(&plan, 1).unwrap();
    assert!(matches!(run.end, End::Unfinished(_)), "{run}");
    assert!((20..40).contains(&run.executed), "{}", run.executed);
    drop(held);
    assert!(probe.stream.synchronize().is_err());
    assert!(Stream::new(&device).is_err(), "the context is broken");
}
