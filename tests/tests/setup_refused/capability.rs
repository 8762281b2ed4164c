//! Ranks whose devices cannot do what the pool needs.

use std::ffi::c_int;
use std::sync::Mutex;

use slabfence::channel::Contract;
use slabfence::group::Rank;
use slabfence::sys::{Api, CUdevice, CUdevice_attribute, CUresult, pfn};

use super::{WORLD, contract, counted, members};

/// That of the machine at hand: each has functions of its own.
static ATTRIBUTE: Mutex<Option<pfn::cuDeviceGetAttribute>> = Mutex::new(None);

/// Tells of seven multiprocessors, as a MIG instance has.
#[allow(unsafe_code, reason = "stands in for an entry of the driver")]
unsafe extern "C" fn few(value: *mut i32, of: CUdevice_attribute, device: CUdevice) -> CUresult {
    let Some(original) = ATTRIBUTE.lock().ok().and_then(|original| *original) else {
        return CUresult::CUDA_ERROR_UNKNOWN;
    };
    // SAFETY: the caller's arguments, by the caller's word.
    let code = unsafe { original(value, of, device) };
    if of == CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT && code.is_success() {
        // SAFETY: where the original has written.
        unsafe { value.write(7) };
    }
    code
}

#[test]
fn a_rank_with_a_smaller_device_is_refused_on_all_before_anything_is_allocated() {
    for small in 0..WORLD {
        let change = |rank, mut api: Api| {
            if rank == small {
                *ATTRIBUTE.lock().unwrap() = Some(api.cuDeviceGetAttribute);
                api.cuDeviceGetAttribute = few;
            }
            api
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
                "Pool::create refused: device {from} of rank {from} has no peer access to device {to}; \
                 look at PCIe ACS and IOMMU settings (a virtual machine whose devices they keep apart grants no peer access by PCIe), \
                 MIG (its instances have no peer access), \
                 container isolation of the devices (a sandbox may pass them on without their links), \
                 `nvidia-smi topo -p2p r` and `-p2p w` (only pairs that are OK have peer access)"
            );
            let failures = seat.refused(&contract(), "create: capability");
            assert_eq!(failures, [(Rank(to), words)]);
        });
    }
}
