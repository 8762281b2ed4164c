//! Memory of one rank that others may map.

use slabfence::driver::{Device, DeviceBuffer};
use slabfence::sys::{
    CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationProp, CUmemAllocationType,
    CUmemGenericAllocationHandle, CUmemLocation, CUmemLocationType, CUresult, MissingSymbol,
};

use super::plan::Place;
use crate::failure::Failure;

/// Mappings are multiples of this many bytes.
const PAGE: usize = 2 << 20;

/// A buffer of a scenario. It goes with its machine.
#[derive(Debug)]
pub struct Memory {
    /// Where it begins, for every rank that may access it.
    pub address: u64,
    own: Option<DeviceBuffer>,
}

/// Says which call of the driver failed.
pub fn check(call: &str, code: CUresult) -> Result<(), Failure> {
    match code.is_success() {
        true => Ok(()),
        false => Err(Failure::Fault(format!("{call}: {code:?}"))),
    }
}

pub fn missing(error: MissingSymbol) -> Failure {
    Failure::Fault(error.to_string())
}

fn location(rank: u32) -> CUmemLocation {
    CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        id: rank as i32,
    }
}

impl Memory {
    /// Allocates a buffer: exactly its size if its owner alone has it, else whole pages.
    pub fn new(devices: &[Device], place: &Place) -> Result<Self, Failure> {
        let owner = &devices[place.owner as usize];
        if place.mapped.is_empty() {
            let own = DeviceBuffer::new(owner, place.initial.len())?;
            return Ok(Self {
                address: own.ptr().raw(),
                own: Some(own),
            });
        }
        Ok(Self {
            address: map(owner, place)?.0,
            own: None,
        })
    }

    /// Writes what it holds at first.
    pub fn write(&self, owner: &Device, initial: &[u8]) -> Result<(), Failure> {
        if let Some(own) = &self.own {
            return Ok(own.write(0, initial)?);
        }
        let _guard = owner.bind()?;
        let copy = owner.driver().api().cuMemcpyHtoD().map_err(missing)?;
        // SAFETY: the mapping has at least so many bytes, and so has the source.
        let code = unsafe {
            copy(
                CUdeviceptr(self.address),
                initial.as_ptr().cast(),
                initial.len(),
            )
        };
        check("cuMemcpyHtoD", code)
    }
}

/// Maps fresh memory of a device for all that have it.
fn map(owner: &Device, place: &Place) -> Result<CUdeviceptr, Failure> {
    let bytes = place.initial.len().next_multiple_of(PAGE);
    let _guard = owner.bind()?;
    let api = owner.driver().api();
    let properties = CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        location: location(place.owner),
        ..CUmemAllocationProp::default()
    };
    let mut handle = CUmemGenericAllocationHandle::default();
    let create = api.cuMemCreate().map_err(missing)?;
    // SAFETY: a live out-parameter; the properties are live and wholly initialised.
    let code = unsafe { create(&mut handle, bytes, &properties, 0) };
    check("cuMemCreate", code)?;
    let mut base = CUdeviceptr::default();
    let reserve = api.cuMemAddressReserve().map_err(missing)?;
    // SAFETY: a live out-parameter; no place is asked for.
    let code = unsafe { reserve(&mut base, bytes, 0, CUdeviceptr::default(), 0) };
    check("cuMemAddressReserve", code)?;
    let map = api.cuMemMap().map_err(missing)?;
    // SAFETY: the range was just reserved and is empty.
    let code = unsafe { map(base, bytes, 0, handle, 0) };
    check("cuMemMap", code)?;
    let ranks = place.mapped.iter().copied().chain([place.owner]);
    let access = |rank| CUmemAccessDesc {
        location: location(rank),
        flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    let all: Vec<CUmemAccessDesc> = ranks.map(access).collect();
    let set = api.cuMemSetAccess().map_err(missing)?;
    // SAFETY: the range is one whole mapping; the descriptors are live for the call.
    let code = unsafe { set(base, bytes, all.as_ptr(), all.len()) };
    check("cuMemSetAccess", code)?;
    Ok(base)
}
