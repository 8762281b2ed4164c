//! What memory the driver is asked for.

use slabfence_sys::{
    CUmemAllocationGranularity_flags, CUmemAllocationHandleType, CUmemAllocationProp,
    CUmemAllocationType, CUmemLocation, CUmemLocationType,
};

use super::share::POSIX;
use crate::driver::device::Device;
use crate::error::{Error, Result};

/// A device as memory calls name it.
pub(super) fn location(ordinal: u32) -> Result<CUmemLocation> {
    Ok(CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        id: i32::try_from(ordinal).map_err(|_| Error::Argument {
            operation: "cuMem",
            what: format!("ordinal {ordinal} is no device"),
        })?,
    })
}

/// Pinned memory of the device, exportable where the device can: a form not asked for here cannot be had later.
pub(super) fn properties(device: &Device) -> Result<CUmemAllocationProp> {
    let handles = if device.info().posix_handles {
        POSIX
    } else {
        CUmemAllocationHandleType::empty()
    };
    Ok(CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: handles,
        location: location(device.ordinal())?,
        ..CUmemAllocationProp::default()
    })
}

/// Bytes of which allocations and mappings of this device are multiples.
pub(crate) fn granularity(device: &Device) -> Result<usize> {
    let _guard = device.setup()?;
    let properties = properties(device)?;
    let mut bytes = 0usize;
    let which = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
    // SAFETY: `bytes` is a live out-parameter, the properties are live and wholly initialised.
    let code =
        unsafe { (device.api().cuMemGetAllocationGranularity()?)(&mut bytes, &properties, which) };
    device.check("cuMemGetAllocationGranularity", code)?;
    if !bytes.is_power_of_two() {
        return Err(Error::Refused {
            operation: "Device::granularity",
            why: format!("the driver gives {bytes} bytes, which is no power of two"),
        });
    }
    Ok(bytes)
}
