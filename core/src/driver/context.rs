//! Guards of the calling thread's driver state: the current context and the capture mode. Both belong to the host, so
//! both are put back.

use core::marker::PhantomData;

use slabfence_sys::{CUcontext, CUstreamCaptureMode};

use super::device::Device;
use super::{deferred, fork};
use crate::error::Result;

/// A device's primary context, current on this thread while the guard lives. Guards are dropped in reverse order of their
/// making, as scopes do it.
#[derive(Debug)]
#[must_use = "the context is current only while the guard lives"]
pub struct ContextGuard<'a> {
    device: &'a Device,
    pushed: bool,
    /// The current context is the thread's: the guard must not leave it.
    _thread: PhantomData<*mut ()>,
}

impl<'a> ContextGuard<'a> {
    pub(crate) fn enter(device: &'a Device) -> Result<Self> {
        fork::refuse()?;
        let mut current = CUcontext::null();
        // SAFETY: `current` is a live out-parameter.
        let code = unsafe { (device.api().cuCtxGetCurrent)(&mut current) };
        device.check("cuCtxGetCurrent", code)?;
        let pushed = current != device.context();
        if pushed {
            // SAFETY: the device keeps its primary context retained, so the handle is live.
            let code = unsafe { (device.api().cuCtxPushCurrent)(device.context()) };
            device.check("cuCtxPushCurrent", code)?;
        }
        Ok(Self {
            device,
            pushed,
            _thread: PhantomData,
        })
    }
}

impl Drop for ContextGuard<'_> {
    fn drop(&mut self) {
        if !self.pushed || fork::forked() {
            return;
        }
        let mut popped = CUcontext::null();
        // SAFETY: `popped` is a live out-parameter; the guard cannot have left the thread that pushed.
        let code = unsafe { (self.device.api().cuCtxPopCurrent)(&mut popped) };
        self.device.driver().note_drop("cuCtxPopCurrent", Ok(code));
        if code.is_success() && popped != self.device.context() {
            log::error!(
                "the thread's context stack was left unbalanced: popped {popped:?} where device {} had pushed {:?}",
                self.device.ordinal(),
                self.device.context()
            );
        }
    }
}

/// This thread's capture mode set to relaxed, so that a capture elsewhere in the process forbids it nothing. The driver's
/// header recommends this push-and-pop form to libraries.
#[derive(Debug)]
struct RelaxedCapture<'a> {
    device: &'a Device,
    before: CUstreamCaptureMode,
    _thread: PhantomData<*mut ()>,
}

impl<'a> RelaxedCapture<'a> {
    fn enter(device: &'a Device) -> Result<Self> {
        let before = exchange(device, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
        Ok(Self {
            device,
            before,
            _thread: PhantomData,
        })
    }
}

fn exchange(device: &Device, mode: CUstreamCaptureMode) -> Result<CUstreamCaptureMode> {
    let mut mode = mode;
    // SAFETY: `mode` is a live in-and-out parameter with a value of the driver's enum.
    let code = unsafe { (device.api().cuThreadExchangeStreamCaptureMode()?)(&mut mode) };
    device.check("cuThreadExchangeStreamCaptureMode", code)?;
    Ok(mode)
}

impl Drop for RelaxedCapture<'_> {
    fn drop(&mut self) {
        if fork::forked() {
            return;
        }
        if let Err(error) = exchange(self.device, self.before) {
            log::error!("the thread's capture mode could not be put back: {error}");
        }
    }
}

/// What set-up and teardown calls run under: the context current, the capture mode relaxed, and whatever graphs have let
/// go of dropped.
#[derive(Debug)]
#[must_use = "the thread is prepared only while the guard lives"]
pub(crate) struct SetupGuard<'a> {
    _capture: RelaxedCapture<'a>,
    _context: ContextGuard<'a>,
}

impl<'a> SetupGuard<'a> {
    pub(crate) fn enter(device: &'a Device) -> Result<Self> {
        let guard = Self::enter_only(device)?;
        deferred::drain();
        Ok(guard)
    }

    /// [`enter`](Self::enter) that drops nothing, which could take time.
    pub(crate) fn enter_only(device: &'a Device) -> Result<Self> {
        let context = ContextGuard::enter(device)?;
        Ok(Self {
            _capture: RelaxedCapture::enter(device)?,
            _context: context,
        })
    }
}
