//! Drivers that lack an entry, as a library that stands in for the driver under a profiler may: the call that needs it
//! says so, and everything else works.

use std::cell::RefCell;
use std::sync::Arc;

use slabfence::channel::Contract;
use slabfence::driver::{
    CaptureMode, Device, DeviceBuffer, Driver, Event, Graph, PinnedBuffer, Stream,
};
use slabfence::slab::{Mapping, Outbox};
use slabfence::sys::{Api, MissingSymbol};
use slabfence::{Error, Result};
use slabfence_emu::{Live, Machine, Profile};
use slabfence_tests::probe::Probe;
use slabfence_tests::ranks::on_ranks;

/// A machine of two devices whose driver was changed by `change`.
fn machine(change: impl FnOnce(&mut Api)) -> (Machine, Driver) {
    let machine = Machine::new(Profile::named("h200-nvlink").unwrap(), 2).unwrap();
    let mut api = machine.api().unwrap();
    change(&mut api);
    (machine, Driver::from_api(api).unwrap())
}

fn memory(device: &Device) -> Result<()> {
    let (buffer, mut back) = (DeviceBuffer::new(device, 8)?, [0; 8]);
    buffer.write(0, &[7; 8])?;
    buffer.read(0, &mut back)?;
    assert_eq!(back, [7; 8]);
    PinnedBuffer::new(device, 8)?.store(0, 1)
}

fn mapping(device: &Device) -> Result<()> {
    let mut mapping = Mapping::<Outbox>::create(device, 8)?;
    mapping.grant(&[1])?;
    mapping.write(0, &[5; 8])?;
    mapping.close()
}

fn events(device: &Device) -> Result<()> {
    let (stream, other) = (Stream::new(device)?, Stream::new(device)?);
    let (start, end) = (Event::timed(device)?, Event::timed(device)?);
    start.record(&stream)?;
    end.record(&stream)?;
    other.wait(&end)?;
    end.synchronize()?;
    assert!(end.query()?);
    end.since(&start)?;
    other.synchronize()
}

/// A captured graph that holds an object.
fn captured(probe: &Probe, to: u64) -> Result<Graph> {
    probe.stream.begin_capture(CaptureMode::ThreadLocal)?;
    let held = probe.stream.retain_in_capture(Arc::new(()));
    let enqueued = probe.enqueue_poke(to, 9);
    let graph = probe.stream.end_capture()?;
    held.and(enqueued)?;
    Ok(graph)
}

fn graphs(device: &Device) -> Result<()> {
    let (probe, buffer) = (Probe::new(device)?, DeviceBuffer::new(device, 8)?);
    let graph = captured(&probe, buffer.ptr().raw())?;
    assert_eq!(graph.kernel_nodes()?, 1);
    let mut exec = graph.instantiate()?;
    exec.upload(&probe.stream)?;
    exec.launch(&probe.stream)?;
    probe.stream.synchronize()
}

type Work = fn(&Device) -> Result<()>;

/// What a driver does, in groups that need different entries.
const GROUPS: [(&str, Work); 4] = [
    ("memory", memory),
    ("mapping", mapping),
    ("events", events),
    ("graphs", graphs),
];

/// A driver without the entry `missing` fails in `group` with an error that names the entry, works in the others, and
/// leaves nothing behind.
fn fails_only_in(group: &str, missing: (&'static str, i32), change: impl FnOnce(&mut Api)) {
    let (name, needs) = missing;
    let (machine, driver) = machine(change);
    let device = Device::open(&driver, 0).unwrap();
    for (other, work) in GROUPS {
        let result = work(&device);
        if other != group {
            assert!(result.is_ok(), "{other} without {name}: {result:?}");
            continue;
        }
        let Err(Error::Missing(missing)) = result else {
            panic!("{group} without {name}: {result:?}");
        };
        let driver = driver.version();
        assert_eq!(
            missing,
            MissingSymbol {
                name,
                needs,
                driver
            }
        );
    }
    drop(device);
    slabfence::driver::drop_released();
    assert_eq!(machine.live(), Live::default(), "without {name}");
}

macro_rules! each_fails_only_in {
    ($group:literal: $($entry:ident $needs:literal),* $(,)?) => { $(
        fails_only_in($group, (stringify!($entry), $needs), |api| api.$entry = None);
    )* };
}

#[test]
fn without_an_entry_of_virtual_memory_only_mappings_fail() {
    each_fails_only_in! { "mapping":
        cuMemGetAllocationGranularity 10020, cuMemCreate 10020, cuMemRelease 10020, cuMemAddressReserve 10020,
        cuMemAddressFree 10020, cuMemMap 10020, cuMemUnmap 10020, cuMemSetAccess 10020, cuMemsetD8Async 3020,
    }
}

#[test]
fn without_an_entry_of_events_only_events_fail() {
    each_fails_only_in! { "events":
        cuEventCreate 2000, cuEventDestroy 4000, cuEventRecord 2000, cuEventQuery 2000, cuEventSynchronize 2000,
        cuEventElapsedTime 2000, cuStreamWaitEvent 3020,
    }
}

#[test]
fn without_an_entry_of_graphs_only_graphs_fail() {
    each_fails_only_in! { "graphs":
        cuStreamBeginCapture 10010, cuStreamEndCapture 10000, cuUserObjectCreate 11030, cuUserObjectRelease 11030,
        cuGraphRetainUserObject 11030, cuGraphGetNodes 10000, cuGraphNodeGetType 10000,
        cuGraphInstantiateWithFlags 11040, cuGraphExecDestroy 10000,
        cuGraphUpload 11010, cuGraphLaunch 10000,
    }
}

#[test]
fn without_an_entry_of_host_memory_only_that_fails() {
    each_fails_only_in! { "memory":
        cuMemHostAlloc 2020, cuMemFreeHost 2000, cuMemHostGetDevicePointer 3020, cuMemcpyDtoHAsync 3020,
    }
}

#[test]
fn a_pool_without_mappings_fails_on_all_ranks_with_the_entrys_name() {
    let (machine, driver) = machine(|api| api.cuMemMap = None);
    let said = on_ranks(&driver, 2, |member| {
        let pool = member.pool(&Contract::new(4, 64, 64, 8));
        pool.map(|_| ()).unwrap_err().to_string()
    });
    assert_eq!(said[0], said[1]);
    assert!(
        said[0].contains(
            "rank 1: cuMemMap is missing, though a driver for CUDA 13.0 has it (since 10.2)"
        ),
        "{said:?}"
    );
    assert_eq!(machine.live(), Live::default());
}

thread_local! {
    static LOGGED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Keeps what each thread logs.
struct Log;

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        LOGGED.with_borrow_mut(|lines| lines.push(record.args().to_string()));
    }

    fn flush(&self) {}
}

#[test]
fn a_drop_that_lacks_its_entry_says_so_and_goes_on() {
    log::set_logger(&Log).unwrap();
    log::set_max_level(log::LevelFilter::Error);
    let (machine, driver) = machine(|api| api.cuGraphDestroy = None);
    let device = Device::open(&driver, 0).unwrap();
    graphs(&device).unwrap();
    assert_eq!(
        LOGGED.take(),
        [
            "while dropping: cuGraphDestroy is missing, though a driver for CUDA 13.0 has it (since 10.0): a tool's library \
             may stand in for libcuda.so.1 (a profiler or debugger), run without it"
        ]
    );
    let left = Live {
        contexts: 1,
        graphs: 1,
        user_objects: 1,
        ..Live::default()
    };
    assert_eq!(machine.live(), left, "the graph and what it holds");
}
