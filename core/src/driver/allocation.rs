//! What memory an address belongs to.

use core::ffi::{c_int, c_void};

use slabfence_sys::{CUdeviceptr, CUmemorytype, CUpointer_attribute, CUresult};

use super::device::Device;
use crate::error::Result;

/// Memory that the driver knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// First address.
    pub base: u64,
    /// Length; 0 where the driver does not tell it.
    pub bytes: u64,
    /// Ordinal of the device that owns it, if one does.
    pub device: Option<u32>,
    /// Whether it is host memory.
    pub host: bool,
}

impl Device {
    /// The live allocation that `address` belongs to; `None` where the driver knows none: freed or unmapped memory,
    /// pageable host memory, or no address at all.
    pub fn allocation(&self, address: u64) -> Result<Option<Allocation>> {
        use CUpointer_attribute as P;
        let _guard = self.bind()?;
        let Some(kind) =
            self.pointer_attribute::<CUmemorytype>(P::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address)?
        else {
            return Ok(None);
        };
        let device =
            self.pointer_attribute::<c_int>(P::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address)?;
        let (base, bytes) = match self.address_range(address) {
            Some(range) => range,
            None => {
                let base = self.pointer_attribute::<CUdeviceptr>(
                    P::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                    address,
                )?;
                let bytes =
                    self.pointer_attribute::<usize>(P::CU_POINTER_ATTRIBUTE_RANGE_SIZE, address)?;
                match (base, bytes) {
                    (Some(base), Some(bytes)) => (base.0, bytes as u64),
                    _ => (address, 0),
                }
            }
        };
        Ok(Some(Allocation {
            base,
            bytes,
            device: device.and_then(|ordinal| u32::try_from(ordinal).ok()),
            host: kind == CUmemorytype::CU_MEMORYTYPE_HOST,
        }))
    }

    fn address_range(&self, address: u64) -> Option<(u64, u64)> {
        let (mut base, mut bytes) = (CUdeviceptr(0), 0usize);
        let get = self.api().cuMemGetAddressRange?;
        // SAFETY: both out-parameters are live; an address that is none is refused.
        let code = unsafe { get(&mut base, &mut bytes, CUdeviceptr(address)) };
        let inside = code.is_success() && address.wrapping_sub(base.0) < bytes as u64;
        inside.then_some((base.0, bytes as u64))
    }

    /// An attribute; `None` where the driver does not know the address or the attribute. `T` is the attribute's type.
    fn pointer_attribute<T: Default>(
        &self,
        which: CUpointer_attribute,
        address: u64,
    ) -> Result<Option<T>> {
        let mut value = T::default();
        let to = (&raw mut value).cast::<c_void>();
        let get = self.api().cuPointerGetAttribute()?;
        // SAFETY: every caller names the type that the driver stores for the attribute; an address that is none is refused.
        let code = unsafe { get(to, which, CUdeviceptr(address)) };
        match code {
            CUresult::CUDA_ERROR_INVALID_VALUE | CUresult::CUDA_ERROR_NOT_FOUND => Ok(None),
            code => self
                .check("cuPointerGetAttribute", code)
                .map(|()| Some(value)),
        }
    }
}
