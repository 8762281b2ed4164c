//! Events.

use std::time::Duration;

use slabfence_sys::{CUevent, CUevent_flags, CUresult};

use super::device::Device;
use super::stream::Stream;
use crate::error::Result;

/// A point in a stream that others can wait for.
#[derive(Debug)]
pub struct Event {
    device: Device,
    raw: CUevent,
}

impl Event {
    /// Makes an event that takes the time when it is reached.
    pub fn timed(device: &Device) -> Result<Self> {
        Self::create(device, CUevent_flags::empty())
    }

    /// Makes an event that only orders.
    pub fn new(device: &Device) -> Result<Self> {
        Self::create(device, CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    fn create(device: &Device, flags: CUevent_flags) -> Result<Self> {
        let _guard = device.setup()?;
        let api = device.api();
        // What could not be freed is not made.
        api.cuEventDestroy()?;
        let mut raw = CUevent::null();
        // SAFETY: `raw` is a live out-parameter and the device's context is current.
        let code = unsafe { (api.cuEventCreate()?)(&mut raw, flags) };
        device.check("cuEventCreate", code)?;
        Ok(Self {
            device: device.clone(),
            raw,
        })
    }

    /// The driver's handle.
    pub fn raw(&self) -> CUevent {
        self.raw
    }

    /// Puts the event behind everything enqueued on `stream`.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        let _guard = self.device.bind()?;
        // SAFETY: event and stream are live.
        let code = unsafe { (self.device.api().cuEventRecord()?)(self.raw, stream.raw()) };
        self.device.check("cuEventRecord", code)
    }

    /// Whether the event has been reached. True where it was never recorded.
    pub fn query(&self) -> Result<bool> {
        let _guard = self.device.bind()?;
        // SAFETY: the event is live.
        let code = unsafe { (self.device.api().cuEventQuery()?)(self.raw) };
        if code == CUresult::CUDA_ERROR_NOT_READY {
            return Ok(false);
        }
        self.device.check("cuEventQuery", code)?;
        Ok(true)
    }

    /// Waits until the event has been reached. Unbounded.
    pub fn synchronize(&self) -> Result<()> {
        let _guard = self.device.bind()?;
        // SAFETY: the event is live.
        let code = unsafe { (self.device.api().cuEventSynchronize()?)(self.raw) };
        self.device.check("cuEventSynchronize", code)
    }

    /// Time from `start` to this event, both [`timed`](Self::timed) and reached.
    pub fn since(&self, start: &Event) -> Result<Duration> {
        let _guard = self.device.bind()?;
        let mut milliseconds = 0.0f32;
        // SAFETY: both events are live; `milliseconds` is a live out-parameter.
        let code = unsafe {
            (self.device.api().cuEventElapsedTime()?)(&mut milliseconds, start.raw, self.raw)
        };
        self.device.check("cuEventElapsedTime", code)?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: made by `create` and destroyed only here; the driver keeps it until what waits for it has ended.
        self.device.teardown("cuEventDestroy", |api| unsafe {
            Ok((api.cuEventDestroy()?)(self.raw))
        });
    }
}
