//! Blocking copies and fills, on a stream of the library's own: the blocking calls of the driver use the legacy default
//! stream, which waits for the host's blocking streams and breaks their captures.

use slabfence_sys::{Api, CUdeviceptr, CUresult, CUstream, MissingSymbol};

use super::device::Device;
use crate::error::{Error, Result};

/// How often a wait that failed is asked for again.
const WAITS: u32 = 3;

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
    enqueued.and(wait(device, stream))
}

/// Waits for what is on the device's own stream. Such an error is of what ran there, or of the wait itself, which then has not
/// waited: it is told, and the wait is asked for again until it is had. Who gets none has a context in which nothing runs.
fn wait(device: &Device, stream: CUstream) -> Result<()> {
    let ask = || {
        // SAFETY: the device's own stream.
        let code = unsafe { (device.api().cuStreamSynchronize)(stream) };
        device.check("cuStreamSynchronize", code)
    };
    let waited = ask();
    if waited.is_err() {
        let _ = (0..WAITS).find(|_| ask().is_ok());
    }
    waited
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::{DeviceBuffer, fake};

    #[test]
    fn a_wait_that_fails_is_told_and_asked_for_again_since_the_copy_may_not_have_ended() {
        let device = fake::device();
        let buffer = DeviceBuffer::new(&device, 8).unwrap();
        let waits = || {
            let said = buffer.read(0, &mut [0; 8]);
            let calls = fake::calls().into_iter();
            let waits = calls.filter(|call| call.starts_with("cuStreamSynchronize"));
            (said.is_ok(), waits.count() as u32)
        };
        assert_eq!(waits(), (true, 1));
        fake::fail("cuStreamSynchronize", CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        assert_eq!(waits(), (false, 1 + WAITS));
        fake::fail("cuStreamSynchronize", CUresult::CUDA_SUCCESS);
        assert_eq!(waits(), (true, 1));
    }
}
