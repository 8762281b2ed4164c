//! Ranks as processes on drivers that differ from what the bindings were made for, and that number the devices differently:
//! both collectives through memory that one process exports and the other imports.

use slabfence_tests::processes::{Ending, Folder, Ranks};

const PROGRAM: &str = env!("CARGO_BIN_EXE_slabfence-test-rank");
/// What a rank imports of each peer: signal memory, and two inboxes or outboxes.
const SHARED: usize = 3;

/// What a rank tells of the driver and the devices: version, own number, and pairs of devices of which the second was asked
/// to be reached from the first.
struct Told<'a> {
    version: u32,
    device: u32,
    reach: &'a str,
}

/// Runs the exchange with these words; every rank must end well, tell this and leave nothing.
fn exchange(words: &str, ranks: &[Told<'_>]) {
    let folder = Folder::new();
    let world = ranks.len() as u32;
    let all: Vec<u32> = (0..world).collect();
    let scenario = format!("exchange{words}");
    let endings = Ranks::start(PROGRAM, &scenario, folder.path(), &all, world).finish();
    for (told, ending) in ranks.iter().zip(&endings) {
        let right = Ending {
            code: Some(0),
            out: vec![
                format!("CUDA {}, device {}", told.version, told.device),
                format!("reach: {}", told.reach),
                format!("imported: {}", SHARED * (ranks.len() - 1)),
                "done".to_owned(),
                "nothing left".to_owned(),
            ],
            errors: String::new(),
        };
        assert_eq!(*ending, right, "{scenario}: {endings:?}");
    }
    assert_eq!(endings.len(), ranks.len());
    assert_eq!(folder.files(), 0);
}

/// Two ranks that number the devices alike.
fn on_version(word: &str, version: u32) {
    for transport in ["", ":pull"] {
        let told = |device, reach| Told {
            version,
            device,
            reach,
        };
        let ranks = [told(0, "{(1, 0)}"), told(1, "{(0, 1)}")];
        exchange(&format!("{word}{transport}"), &ranks);
    }
}

#[test]
fn processes_gather_and_reduce_on_a_driver_of_12_2() {
    on_version(":cuda=12.2", 12_020);
}

#[test]
fn processes_gather_and_reduce_on_a_driver_of_12_4() {
    on_version(":cuda=12.4", 12_040);
}

#[test]
fn processes_gather_and_reduce_on_a_driver_of_13_0() {
    on_version(":cuda=13.0", 13_000);
}

/// Rank 0 sees devices 3, 2, 1, 0 of the host in this order and is on the last, rank 1 sees 1, 0 and is on the first. Each
/// asks by its own numbers whether the other's device reaches its own.
#[test]
fn two_processes_that_number_the_devices_differently_find_each_others_by_uuid() {
    let told = |device, reach| Told {
        version: 13_000,
        device,
        reach,
    };
    for transport in ["", ":pull"] {
        let ranks = [told(3, "{(2, 3)}"), told(0, "{(1, 0)}")];
        exchange(&format!(":renumbered{transport}"), &ranks);
    }
}

/// Rank 0 sees 4, 3, 2, 1, 0; rank 1 sees 1, 2, 0; rank 2 sees 2, 0, 1.
#[test]
fn three_processes_that_number_the_devices_differently_find_each_others_by_uuid() {
    let told = |device, reach| Told {
        version: 13_000,
        device,
        reach,
    };
    let ranks = [
        told(4, "{(2, 4), (3, 4)}"),
        told(0, "{(1, 0), (2, 0)}"),
        told(0, "{(1, 0), (2, 0)}"),
    ];
    exchange(":renumbered", &ranks);
}

#[test]
fn a_process_that_does_not_see_a_peers_device_is_refused_by_that_devices_uuid() {
    let folder = Folder::new();
    let ranks = Ranks::start(PROGRAM, "exchange:alone", folder.path(), &[0, 1], 2);
    for ending in ranks.finish() {
        for words in [
            "failed: create: capability failed",
            "rank 0: Pool::create refused: rank 1 is on device GPU-454d5500-6832-3030-2d6e-766c696e6b01, which this process does not see (this rank is on GPU-454d5500-6832-3030-2d6e-766c696e6b00)",
            "rank 1: Pool::create refused: rank 0 is on device GPU-454d5500-6832-3030-2d6e-766c696e6b00, which this process does not see (this rank is on GPU-454d5500-6832-3030-2d6e-766c696e6b01)",
        ] {
            assert!(ending.out[0].contains(words), "{ending:?}");
        }
        assert_eq!(ending.out[1], "nothing left");
    }
    assert_eq!(folder.files(), 0);
}
