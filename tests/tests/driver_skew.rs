//! Drivers of other ages than the headers that the bindings were made from: what is newer than the driver is absent and
//! says so by name and version, and the rest of the library works.

use slabfence::Error;
use slabfence::driver::{CaptureMode, Device, DeviceBuffer, Driver};
use slabfence::graph::Dump;
use slabfence::layout::Transport;
use slabfence::sys::{LoadError, MissingSymbol, SYMBOLS};
use slabfence_emu::{Live, Machine};
use slabfence_tests::captured::gathers_and_reduces;
use slabfence_tests::drivers::{V12_2, V12_4, V13_0, Version, posing};
use slabfence_tests::probe::Probe;
use slabfence_tests::ranks::on_ranks;

/// Older than what the library asks for.
const V11_3: Version = (11_030, (7, 3));
/// Without what tells a graph's kernels.
const V11_8: Version = (11_080, (7, 8));

/// A machine of two devices whose driver is of a version.
fn machine(version: Version) -> Machine {
    Machine::new(posing(version), 2).unwrap()
}

fn driver(machine: &Machine) -> Driver {
    Driver::from_api(machine.api().unwrap()).unwrap()
}

/// Captures both collectives on a driver of a version, and checks all their outputs.
fn right_on(version: Version, transport: Transport) {
    let machine = machine(version);
    let driver = driver(&machine);
    assert_eq!(driver.version(), version.0);
    on_ranks(&driver, 2, |member| {
        gathers_and_reduces(member, transport).unwrap();
    });
    drop(driver);
    slabfence::driver::drop_released();
    assert_eq!(machine.faults(), Vec::<String>::new());
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn captured_gathers_and_reduces_are_right_on_a_driver_of_12_2() {
    right_on(V12_2, Transport::Push);
    right_on(V12_2, Transport::Pull);
}

#[test]
fn captured_gathers_and_reduces_are_right_on_a_driver_of_12_4() {
    right_on(V12_4, Transport::Push);
    right_on(V12_4, Transport::Pull);
}

#[test]
fn captured_gathers_and_reduces_are_right_on_a_driver_of_13_0() {
    right_on(V13_0, Transport::Push);
    right_on(V13_0, Transport::Pull);
}

#[test]
fn exactly_the_entries_newer_than_the_driver_are_absent() {
    for (version, newer) in [
        (
            V12_2,
            &[
                ("cuStreamGetCaptureInfo_v3", 12_030),
                ("cuFuncLoad", 12_040),
                ("cuFuncGetParamInfo", 12_040),
                ("cuFuncGetName", 12_030),
                ("cuGraphGetEdges_v2", 12_030),
            ][..],
        ),
        (V12_4, &[]),
        (V13_0, &[]),
    ] {
        let machine = machine(version);
        let api = machine.api().unwrap();
        assert_eq!(api.driver_version, version.0);
        let names: Vec<_> = newer.iter().map(|(name, _)| *name).collect();
        assert_eq!(api.absent(), names, "CUDA {}", version.0);
        for (name, needs) in newer {
            let symbol = SYMBOLS.iter().find(|symbol| symbol.entry == *name).unwrap();
            assert_eq!(symbol.version, *needs, "{name}");
        }
    }
}

#[test]
fn an_entry_newer_than_the_driver_is_an_error_that_names_it_and_the_version_it_needs() {
    let machine = machine(V12_2);
    let missing = machine.api().unwrap().cuFuncGetParamInfo().unwrap_err();
    let expected = MissingSymbol {
        name: "cuFuncGetParamInfo",
        needs: 12_040,
        driver: 12_020,
    };
    assert_eq!(missing, expected);
    assert_eq!(
        missing.to_string(),
        "cuFuncGetParamInfo needs a driver for CUDA 12.4 or newer, this one serves CUDA 12.2: update the driver"
    );
}

/// A dump of two stores, one after the other, on a driver of a version.
fn dumped(version: Version) -> Dump {
    let machine = machine(version);
    let device = Device::open(&driver(&machine), 0).unwrap();
    let probe = Probe::new(&device).unwrap();
    let buffer = DeviceBuffer::new(&device, 16).unwrap();
    let stream = &probe.stream;
    stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
    probe.enqueue_poke(buffer.ptr().raw(), 1).unwrap();
    probe.enqueue_poke(buffer.ptr().raw() + 8, 2).unwrap();
    let graph = stream.end_capture().unwrap();
    Dump::of(&device, &graph, &[]).unwrap()
}

/// Ends of the edges.
fn edges(dump: &Dump) -> Vec<(usize, usize)> {
    let edges = dump.contents.edges.iter();
    edges.map(|edge| (edge.from, edge.to)).collect()
}

#[test]
fn a_dump_on_12_4_and_newer_tells_functions_and_parameters() {
    for version in [V12_4, V13_0] {
        let dump = dumped(version);
        assert_eq!(dump.driver_version, version.0);
        assert_eq!(edges(&dump), [(0, 1)]);
        for node in &dump.contents.nodes {
            let kernel = node.kernel().unwrap();
            assert_eq!(kernel.function.as_deref(), Some("poke"));
            let params = kernel.params.as_ref().unwrap();
            let sizes: Vec<_> = params.iter().map(|param| param.bytes.len()).collect();
            assert_eq!(sizes, [16]);
        }
        assert_eq!(dump.contents.nodes.len(), 2);
    }
}

#[test]
fn a_dump_on_12_2_has_all_nodes_and_edges_and_says_that_parameters_are_not_told() {
    let dump = dumped(V12_2);
    assert_eq!(dump.driver_version, 12_020);
    assert_eq!(edges(&dump), [(0, 1)]);
    assert_eq!(dump.contents.nodes.len(), 2);
    for node in &dump.contents.nodes {
        let kernel = node.kernel().unwrap();
        assert_eq!(kernel.grid, [1, 1, 1]);
        assert_eq!(
            (kernel.function.as_ref(), kernel.params.as_ref()),
            (None, None)
        );
    }
    let text = dump.to_string();
    assert!(
        text.contains("parameters: the driver does not tell them"),
        "{text}"
    );
}

#[test]
fn a_dump_on_a_driver_without_the_nodes_getter_names_it() {
    let text = dumped(V11_8).to_string();
    let said = "cuGraphKernelNodeGetParams needs a driver for CUDA 12.0 or newer, this one serves CUDA 11.8";
    assert!(text.contains(said), "{text}");
}

#[test]
fn a_driver_older_than_a_required_entry_is_refused_by_that_entrys_name() {
    let refused = machine(V11_3).api().unwrap_err();
    let missing = MissingSymbol {
        name: "cuDeviceGetUuid",
        needs: 11_040,
        driver: 11_030,
    };
    assert_eq!(refused, LoadError::MissingSymbol(missing));
    assert_eq!(Error::from(refused).to_string(), missing.to_string());
}
