//! Ranks whose devices cannot do what the pool needs.

use std::ffi::c_int;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use slabfence::channel::Contract;
use slabfence::group::{Bootstrap, BootstrapError, Rank};
use slabfence::sys::{
    Api, CUdevice, CUdevice_attribute, CUmemAllocationGranularity_flags, CUmemAllocationProp,
    CUresult, pfn,
};
use slabfence_tests::envelope::Envelope;

use super::{WORLD, contract, counted, members};

/// What a device tells of this attribute, and the entry of the machine at hand: each has functions of its own.
static ATTRIBUTE: Mutex<Option<(CUdevice_attribute, i32, pfn::cuDeviceGetAttribute)>> =
    Mutex::new(None);

#[allow(unsafe_code, reason = "stands in for an entry of the driver")]
unsafe extern "C" fn told(value: *mut i32, of: CUdevice_attribute, device: CUdevice) -> CUresult {
    let Some((which, other, original)) = ATTRIBUTE.lock().ok().and_then(|told| *told) else {
        return CUresult::CUDA_ERROR_UNKNOWN;
    };
    // SAFETY: the caller's arguments, by the caller's word.
    let code = unsafe { original(value, of, device) };
    if of == which && code.is_success() {
        // SAFETY: where the original has written.
        unsafe { value.write(other) };
    }
    code
}

/// A driver whose devices have `value` as this attribute.
fn with(attribute: CUdevice_attribute, value: i32, mut api: Api) -> Api {
    *ATTRIBUTE.lock().unwrap() = Some((attribute, value, api.cuDeviceGetAttribute));
    api.cuDeviceGetAttribute = told;
    api
}

/// How refusals name a device.
fn named(device: u32) -> String {
    format!(
        "device {device} (EMULATED H200 (h200-nvlink), {})",
        uuid(device)
    )
}

fn uuid(device: u32) -> String {
    format!("GPU-454d5500-6832-3030-2d6e-766c696e6b{device:02x}")
}

#[test]
fn a_rank_with_a_smaller_device_is_refused_on_all_before_anything_is_allocated() {
    for small in 0..WORLD {
        let which = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let change = |rank, api| match rank == small {
            // As a MIG instance has.
            true => with(which, 7, api),
            false => api,
        };
        counted(members(WORLD), change, |seat| {
            let large = Contract {
                max_grid: 128,
                ..contract()
            };
            let failures = seat.refused(&large, "create: capability");
            let [(rank, words)] = &failures[..] else {
                panic!("{failures:?}");
            };
            assert_eq!(*rank, Rank(small));
            let needed = "1 rank(s) here × concurrent_operations 1 × max_grid 128 = 128 CTAs";
            let there = format!("device {small} (EMULATED H200 (h200-nvlink)) holds ");
            assert!(words.contains(needed) && words.contains(&there), "{words}");
            // What fits the smallest fits all.
            seat.created(&Contract {
                max_grid: 7,
                ..contract()
            });
        });
    }
}

#[test]
fn a_rank_whose_device_maps_no_memory_is_refused_on_all_before_anything_is_allocated() {
    for odd in 0..WORLD {
        let which = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
        let change = |rank, api| match rank == odd {
            true => with(which, 0, api),
            false => api,
        };
        counted(members(WORLD), change, |seat| {
            let words = format!(
                "Pool::create refused: {} has no virtual memory management (cuMemCreate)",
                named(odd)
            );
            let failures = seat.refused(&contract(), "create: capability");
            assert_eq!(failures, [(Rank(odd), words)]);
        });
    }
}

/// What a device tells of its granularity.
const GRANULARITY: usize = 1 << 16;

#[allow(unsafe_code, reason = "stands in for an entry of the driver")]
unsafe extern "C" fn granularity(
    bytes: *mut usize,
    _: *const CUmemAllocationProp,
    _: CUmemAllocationGranularity_flags,
) -> CUresult {
    // SAFETY: the caller's out-parameter, by the caller's word.
    unsafe { bytes.write(GRANULARITY) };
    CUresult::CUDA_SUCCESS
}

#[test]
fn a_device_that_allocates_by_other_multiples_is_refused_on_all_before_anything_is_allocated() {
    for odd in 0..WORLD {
        let change = |rank, mut api: Api| {
            if rank == odd {
                api.cuMemGetAllocationGranularity = Some(granularity);
            }
            api
        };
        counted(members(WORLD), change, |seat| {
            let words = |here: usize, first: usize| {
                format!(
                    "its device's allocations are multiples of {here} bytes, those of rank 0 of {first}; \
                     use devices of one kind"
                )
            };
            let usual = 2 << 20;
            let wanted: Vec<(Rank, String)> = match odd {
                0 => [1, 2]
                    .map(|rank| (Rank(rank), words(usual, GRANULARITY)))
                    .into(),
                rank => vec![(Rank(rank), words(GRANULARITY, usual))],
            };
            assert_eq!(seat.refused(&contract(), "create: devices"), wanted);
        });
    }
}

#[test]
fn a_rank_that_cannot_tell_its_devices_granularity_is_named_on_all_ranks() {
    let change = |rank, mut api: Api| {
        if rank == 1 {
            api.cuMemGetAllocationGranularity = None;
        }
        api
    };
    counted(members(WORLD), change, |seat| {
        let failures = seat.refused(&contract(), "create: devices");
        let [(Rank(1), words)] = &failures[..] else {
            panic!("{failures:?}");
        };
        assert!(
            words.starts_with("cuMemGetAllocationGranularity is missing"),
            "{words}"
        );
    });
}

/// Where every rank takes the others for other processes.
struct Apart {
    inner: Arc<dyn Bootstrap>,
    rank: usize,
}

impl Bootstrap for Apart {
    fn all_gather(&self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, BootstrapError> {
        let mut parts = self.inner.all_gather(bytes, deadline)?;
        for (_, part) in (0..).zip(&mut parts).filter(|(from, _)| *from != self.rank) {
            let mut message = Envelope::read(part).expect("the form of a message");
            if message.step == "create: devices" {
                // A verdict's word, then the token of the sender's process.
                message.payload[8] ^= 1;
                *part = message.write();
            }
        }
        Ok(parts)
    }
}

#[test]
fn a_rank_whose_device_exports_no_memory_is_refused_on_all_where_ranks_are_other_processes() {
    for odd in 0..WORLD {
        let which =
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED;
        let change = |rank, api| match rank == odd {
            true => with(which, 0, api),
            false => api,
        };
        let apart = (0..).zip(members(WORLD));
        let apart =
            apart.map(|(rank, inner)| Arc::new(Apart { inner, rank }) as Arc<dyn Bootstrap>);
        counted(apart.collect(), change, |seat| {
            let words = format!(
                "Pool::create refused: {} cannot export memory to other processes as file descriptors: \
                 run the ranks as threads of one",
                named(odd)
            );
            let failures = seat.refused(&contract(), "create: capability");
            assert_eq!(failures, [(Rank(odd), words)]);
        });
        // Threads of one process have no need of it.
        counted(members(WORLD), change, |seat| seat.created(&contract()));
    }
}

/// The device that is not let into the memory of the other.
static DENIED: Mutex<Option<(c_int, c_int)>> = Mutex::new(None);

/// Tells that all devices are peers, but for the two of [`DENIED`] in that direction.
#[allow(unsafe_code, reason = "stands in for an entry of the driver")]
unsafe extern "C" fn deny(can: *mut c_int, device: CUdevice, peer: CUdevice) -> CUresult {
    let Ok(denied) = DENIED.lock() else {
        return CUresult::CUDA_ERROR_UNKNOWN;
    };
    let denied = *denied == Some((device.0, peer.0));
    // SAFETY: the caller's out-parameter, by the caller's word.
    unsafe { can.write(c_int::from(!denied)) };
    CUresult::CUDA_SUCCESS
}

#[test]
fn a_device_that_is_not_let_into_a_peers_memory_is_refused_on_all_with_the_usual_causes() {
    for (from, to) in [(1, 0), (0, 1), (2, 1)] {
        let change = |_, mut api: Api| {
            *DENIED.lock().unwrap() = Some((from as c_int, to as c_int));
            api.cuDeviceCanAccessPeer = Some(deny);
            api
        };
        counted(members(WORLD), change, |seat| {
            // Each rank has the device of its number. The owner asks.
            let words = format!(
                "Pool::create refused: device {from} ({}) of rank {from} has no peer access to device {to} ({}); \
                 look at PCIe ACS and IOMMU settings (a virtual machine whose devices they keep apart grants no peer access by PCIe), \
                 MIG (its instances have no peer access), \
                 container isolation of the devices (a sandbox may pass them on without their links), \
                 `nvidia-smi topo -p2p r` and `-p2p w` (only pairs that are OK have peer access)",
                uuid(from),
                uuid(to)
            );
            let failures = seat.refused(&contract(), "create: capability");
            assert_eq!(failures, [(Rank(to), words)]);
        });
    }
}
