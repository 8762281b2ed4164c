//! Blocking copies and fills, on a stream of the library's own: the blocking calls of the driver use the legacy default
//! stream, which waits for the host's blocking streams and breaks their captures.

use slabfence_sys::{Api, CUdeviceptr, CUresult, CUstream, MissingSymbol};

use super::device::Device;
use crate::error::{Error, Result};

/// Refuses a part that does not lie inside `len` bytes.
pub(crate) fn check_part(
    operation: &'static str,
    len: usize,
    offset: usize,
    bytes: usize,
) -> Result<()> {
    match offset.checked_add(bytes) {
        Some(end) if end <= len => Ok(()),
        _ => Err(Error::Argument {
            operation,
            what: format!("{bytes} bytes at offset {offset} do not lie inside {len} bytes"),
        }),
    }
}

fn on_service(
    device: &Device,
    call: &'static str,
    enqueue: impl FnOnce(&Api, CUstream) -> Result<CUresult, MissingSymbol>,
) -> Result<()> {
    let _guard = device.setup()?;
    let stream = device.service()?;
    let enqueued = match enqueue(device.api(), stream) {
        Ok(code) => device.check(call, code),
        Err(missing) => Err(missing.into()),
    };
    // Also after a failure: nothing of the caller's memory may be in use when this returns.
    // SAFETY: the device's own stream.
    let code = unsafe { (device.api().cuStreamSynchronize)(stream) };
    enqueued.and(device.check("cuStreamSynchronize", code))
}

/// Copies `bytes` to `to` and waits.
///
/// # Safety
///
/// The destination is live memory of at least that length which this library may overwrite.
pub(crate) unsafe fn write(device: &Device, to: u64, bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    // SAFETY: the source is live until the copy has ended, which is waited for; the destination by the contract.
    on_service(device, "cuMemcpyHtoDAsync", |api, stream| unsafe {
        Ok((api.cuMemcpyHtoDAsync()?)(
            CUdeviceptr(to),
            bytes.as_ptr().cast(),
            bytes.len(),
            stream,
        ))
    })
}

/// Copies from `from` into `bytes` and waits.
///
/// # Safety
///
/// The source is live memory of at least that length.
pub(crate) unsafe fn read(device: &Device, from: u64, bytes: &mut [u8]) -> Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    // SAFETY: the destination is exclusively borrowed until the copy has ended, which is waited for.
    on_service(device, "cuMemcpyDtoHAsync", |api, stream| unsafe {
        Ok((api.cuMemcpyDtoHAsync()?)(
            bytes.as_mut_ptr().cast(),
            CUdeviceptr(from),
            bytes.len(),
            stream,
        ))
    })
}

/// Sets `bytes` bytes at `to` to `value` and waits.
///
/// # Safety
///
/// As for [`write`].
pub(crate) unsafe fn fill(device: &Device, to: u64, value: u8, bytes: usize) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: by the contract.
    on_service(device, "cuMemsetD8Async", |api, stream| unsafe {
        Ok((api.cuMemsetD8Async()?)(
            CUdeviceptr(to),
            value,
            bytes,
            stream,
        ))
    })
}
