//! Graphs that hold addresses of memory that is gone.

use slabfence::driver::{CaptureMode, Device, DeviceBuffer, GraphExec};
use slabfence::sys::{
    CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationProp, CUmemAllocationType,
    CUmemGenericAllocationHandle, CUmemLocation, CUmemLocationType,
};
use slabfence_emu::held::{End, Finding, Plan, Policy};
use slabfence_tests::probe::{Probe, machine};
use slabfence_tests::watched::Watched;

const PLAN: Plan = Plan::new(Policy::Random);
const PAGE: usize = 2 << 20;
const MAPPING: &str = "a cuMemMap mapping of device 0, 2097152 bytes";

/// Reserves addresses for a page.
fn reserve(device: &Device) -> u64 {
    let _guard = device.bind().unwrap();
    let mut base = CUdeviceptr::default();
    let reserve = device.driver().api().cuMemAddressReserve().unwrap();
    // SAFETY: a live out-parameter; no place is asked for.
    let code = unsafe { reserve(&mut base, PAGE, 0, CUdeviceptr::default(), 0) };
    assert!(code.is_success());
    base.0
}

/// Maps fresh memory, all zero.
fn map(device: &Device, base: u64) {
    let _guard = device.bind().unwrap();
    let api = device.driver().api();
    let location = CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        id: 0,
    };
    let properties = CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        location,
        ..CUmemAllocationProp::default()
    };
    let mut handle = CUmemGenericAllocationHandle::default();
    let create = api.cuMemCreate().unwrap();
    // SAFETY: a live out-parameter; the properties are live and wholly initialised.
    assert!(unsafe { create(&mut handle, PAGE, &properties, 0) }.is_success());
    let map = api.cuMemMap().unwrap();
    // SAFETY: the addresses are reserved and nothing is mapped there.
    assert!(unsafe { map(CUdeviceptr(base), PAGE, 0, handle, 0) }.is_success());
    let release = api.cuMemRelease().unwrap();
    // SAFETY: the handle is live; the mapping keeps the memory.
    assert!(unsafe { release(handle) }.is_success());
    let access = CUmemAccessDesc {
        location,
        flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    let set = api.cuMemSetAccess().unwrap();
    // SAFETY: the range is one whole mapping; the descriptor is live for the call.
    assert!(unsafe { set(CUdeviceptr(base), PAGE, &access, 1) }.is_success());
    let copy = api.cuMemcpyHtoD().unwrap();
    let zeros = vec![0_u8; PAGE];
    // SAFETY: both have so many bytes.
    assert!(unsafe { copy(CUdeviceptr(base), zeros.as_ptr().cast(), PAGE) }.is_success());
}

fn unmap(device: &Device, base: u64) {
    let _guard = device.bind().unwrap();
    let unmap = device.driver().api().cuMemUnmap().unwrap();
    // SAFETY: the range is one whole mapping, and nothing that uses it runs.
    assert!(unsafe { unmap(CUdeviceptr(base), PAGE) }.is_success());
}

/// A graph that stores a word.
fn poking(probe: &Probe, to: u64) -> GraphExec {
    let stream = &probe.stream;
    stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
    probe.enqueue_poke(to, 5).unwrap();
    let graph = stream.end_capture().unwrap();
    graph.instantiate().unwrap()
}

/// One device with the probe's kernels, and a page of reserved addresses.
fn bench() -> (Watched, Device, Probe, u64) {
    let (machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let probe = Probe::new(&device).unwrap();
    let base = reserve(&device);
    (machine, device, probe, base)
}

/// What a replay on the held machine finds.
fn replay(machine: &Watched, probe: &Probe, exec: &mut GraphExec) -> (Vec<Finding>, End) {
    let mut held = machine.hold().unwrap();
    exec.launch(&probe.stream).unwrap();
    let run = held.run(&PLAN, 1).unwrap();
    (run.findings, run.end)
}

#[test]
fn a_replay_that_uses_an_address_of_memory_that_was_replaced_is_found() {
    let (machine, device, probe, base) = bench();
    map(&device, base);
    let mut exec = poking(&probe, base + 64);
    unmap(&device, base);
    map(&device, base);
    let (findings, end) = replay(&machine, &probe, &mut exec);
    assert_eq!(end, End::Complete);
    let [finding] = &findings[..] else {
        panic!("{findings:?}");
    };
    assert_eq!(finding.rule.name(), "stale-address");
    let place = finding.place.as_ref().unwrap();
    assert_eq!((place.region.as_str(), place.offset), (MAPPING, 64));
    let words = format!(
        "the parameters hold its address (+ 0x40) since `{MAPPING}` was there, which is gone"
    );
    assert_eq!(finding.detail, words);
    let party = finding.later.as_ref().unwrap();
    assert_eq!(party.thread.as_ref().unwrap().kernel, "poke");
    // In an ordinary run too, once for both replays.
    for _ in 0..2 {
        exec.launch(&probe.stream).unwrap();
    }
    probe.stream.synchronize().unwrap();
    let [fault] = &machine.faults()[..] else {
        panic!("{:?}", machine.faults());
    };
    let words = format!(
        "`poke` uses the address {:#x}, which its parameters hold since {MAPPING} was there",
        base + 64
    );
    assert!(fault.contains(&words), "{fault}");
    drop(exec);
    unmap(&device, base);
}

#[test]
fn a_replay_that_uses_an_address_of_memory_that_was_freed_is_found() {
    let (machine, driver) = machine(1);
    let device = Device::open(&driver, 0).unwrap();
    let probe = Probe::new(&device).unwrap();
    let word = DeviceBuffer::new(&device, 40).unwrap();
    let mut exec = poking(&probe, word.ptr().raw());
    drop(word);
    let (findings, end) = replay(&machine, &probe, &mut exec);
    assert!(matches!(end, End::Fault(_)), "{end}");
    let [finding] = &findings[..] else {
        panic!("{findings:?}");
    };
    assert_eq!(finding.rule.name(), "stale-address");
    let was = "`cuMemAlloc memory of device 0, 40 bytes` was there";
    assert_eq!(finding.detail, was);
}

#[test]
fn a_replay_of_a_graph_whose_memory_lives_is_clean() {
    let (machine, device, probe, base) = bench();
    // Captured before there was anything, and again before other memory came and went.
    let mut early = poking(&probe, base);
    map(&device, base);
    let mut exec = poking(&probe, base);
    let other = reserve(&device);
    map(&device, other);
    unmap(&device, other);
    for exec in [&mut early, &mut exec] {
        let (findings, end) = replay(&machine, &probe, exec);
        assert_eq!((findings, end), (vec![], End::Complete));
        exec.launch(&probe.stream).unwrap();
        probe.stream.synchronize().unwrap();
    }
    assert_eq!(machine.faults(), Vec::<String>::new());
    drop((early, exec));
    unmap(&device, base);
}
