//! Streams, and captures on them.

use std::any::Any;
use std::sync::Arc;

use slabfence_sys::{
    CUgraph, CUresult, CUstream, CUstream_flags, CUstreamCaptureMode, CUstreamCaptureStatus,
};

use super::device::Device;
use super::event::Event;
use super::fork;
use super::graph::{self, Graph};
use crate::error::{Error, Result};

/// Which calls a capture forbids, and to whom, until it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaptureMode {
    /// Calls that may disturb a capture are forbidden to every thread.
    Global,
    /// They are forbidden to the thread that began the capture.
    ThreadLocal,
    /// They are forbidden to nobody.
    Relaxed,
}

impl CaptureMode {
    fn code(self) -> CUstreamCaptureMode {
        match self {
            Self::Global => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
            Self::ThreadLocal => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            Self::Relaxed => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
        }
    }
}

/// Whether a stream captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureStatus {
    /// It executes what is enqueued.
    None,
    /// What is enqueued becomes nodes of a graph.
    Active {
        /// Identity of the capture, unique in the process's life.
        id: u64,
        /// The graph under construction. It belongs to the capture: only the driver call that ends it hands it out.
        graph: CUgraph,
    },
    /// The capture has failed and must be ended.
    Invalidated,
}

/// A stream of one device: our own, or a host's that is only used.
#[derive(Debug)]
pub struct Stream {
    device: Device,
    raw: CUstream,
    owned: bool,
}

impl Stream {
    /// Makes a stream that does not wait for the legacy default stream. It is destroyed on drop; the driver lets what is
    /// enqueued on it finish first.
    pub fn new(device: &Device) -> Result<Self> {
        let _guard = device.setup()?;
        let api = device.api();
        // What could not be freed is not made.
        api.cuStreamDestroy()?;
        let mut raw = CUstream::null();
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING;
        // SAFETY: `raw` is a live out-parameter and the device's context is current.
        let code = unsafe { (api.cuStreamCreate()?)(&mut raw, flags) };
        device.check("cuStreamCreate", code)?;
        Ok(Self::of(device, raw, true))
    }

    /// Uses a host's stream. Not destroyed on drop. The null stream means the legacy default stream of the device.
    ///
    /// # Safety
    ///
    /// `raw` is a stream of `device`'s primary context and is not destroyed while this value, or an operation enqueued
    /// through it, is in use.
    pub unsafe fn from_raw(device: &Device, raw: CUstream) -> Self {
        Self::of(device, raw, false)
    }

    fn of(device: &Device, raw: CUstream, owned: bool) -> Self {
        device.know_stream(raw);
        Self {
            device: device.clone(),
            raw,
            owned,
        }
    }

    /// The driver's handle. Its value is reused after a stream is destroyed; see [`id`](Self::id).
    pub fn raw(&self) -> CUstream {
        self.raw
    }

    /// The stream's device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The driver's identity of the stream, which is never reused. `None` where the driver has none (before CUDA 12.0).
    /// Not to be asked of a stream that captures: the driver refuses.
    pub fn id(&self) -> Result<Option<u64>> {
        fork::refuse()?;
        let Some(get_id) = self.device.api().cuStreamGetId else {
            return Ok(None);
        };
        let _guard = self.device.bind()?;
        let mut id = 0;
        // SAFETY: the stream is live; `id` is a live out-parameter.
        let code = unsafe { get_id(self.raw, &mut id) };
        self.device.check("cuStreamGetId", code)?;
        Ok(Some(id))
    }

    /// Waits until everything enqueued has ended. Unbounded.
    pub fn synchronize(&self) -> Result<()> {
        let _guard = self.device.bind()?;
        // SAFETY: the stream is live; one that captures is refused by the driver.
        let code = unsafe { (self.device.api().cuStreamSynchronize)(self.raw) };
        self.device.check("cuStreamSynchronize", code)
    }

    /// Whether everything enqueued has ended.
    pub fn query(&self) -> Result<bool> {
        let _guard = self.device.bind()?;
        self.has_ended()
    }

    /// [`query`](Self::query) of a stream that does not capture, also while others do.
    pub(crate) fn query_during_captures(&self) -> Result<bool> {
        let _guard = self.device.observe()?;
        self.has_ended()
    }

    fn has_ended(&self) -> Result<bool> {
        // SAFETY: the stream is live.
        let code = unsafe { (self.device.api().cuStreamQuery()?)(self.raw) };
        if code == CUresult::CUDA_ERROR_NOT_READY {
            return Ok(false);
        }
        self.device.check("cuStreamQuery", code)?;
        Ok(true)
    }

    /// Makes what is enqueued from now on wait for `event`.
    pub fn wait(&self, event: &Event) -> Result<()> {
        let _guard = self.device.bind()?;
        // SAFETY: stream and event are live; the event is needed only during the call.
        let code = unsafe {
            (self.device.api().cuStreamWaitEvent()?)(self.raw, event.raw(), Default::default())
        };
        self.device.check("cuStreamWaitEvent", code)
    }

    /// Begins a capture. It must be ended on this thread, except in [`CaptureMode::Relaxed`].
    pub fn begin_capture(&self, mode: CaptureMode) -> Result<()> {
        let _guard = self.device.bind()?;
        let api = self.device.api();
        // A capture that could not be ended is not begun.
        api.cuStreamEndCapture()?;
        // SAFETY: the stream is live; the driver refuses one that captures already.
        let code = unsafe { (api.cuStreamBeginCapture()?)(self.raw, mode.code()) };
        self.device.check("cuStreamBeginCapture", code)?;
        self.device.note_capture(self.raw, true);
        Ok(())
    }

    /// Ends the capture and gives its graph. An invalidated capture ends too, with the driver's error.
    pub fn end_capture(&self) -> Result<Graph> {
        let _guard = self.device.bind()?;
        let mut raw = CUgraph::null();
        // SAFETY: the stream is live; `raw` is a live out-parameter.
        let code = unsafe { (self.device.api().cuStreamEndCapture()?)(self.raw, &mut raw) };
        if !code.is_success() && !raw.is_null() {
            // Of a call that failed it is no handle to use, and a graph may be there all the same.
            self.device.note_stray();
        }
        self.device.check("cuStreamEndCapture", code)?;
        self.device.note_capture(self.raw, false);
        // SAFETY: the call hands the graph to its caller, once.
        Ok(unsafe { Graph::from_raw(&self.device, raw) })
    }

    /// Whether the stream captures, and into what.
    pub fn capture_status(&self) -> Result<CaptureStatus> {
        capture_status(&self.device, self.raw)
    }

    /// Makes the graph that this stream captures into hold `object`, and with it every executable made from that graph.
    /// The object is dropped some time after the last of them is destroyed, at one of this library's later set-up or
    /// teardown calls, outside of collective calls of a pool.
    pub fn retain_in_capture(&self, object: Arc<dyn Any + Send + Sync>) -> Result<()> {
        let _guard = self.device.bind()?;
        match self.capture_status()? {
            // SAFETY: the stream captures, so its graph is live, and no other thread may use it before the capture ends.
            CaptureStatus::Active { graph, .. } => unsafe {
                graph::retain(&self.device, graph, object)
            },
            status => Err(Error::Refused {
                operation: "Stream::retain_in_capture",
                why: format!(
                    "the stream captures nothing ({status:?}); call it between begin_capture and end_capture"
                ),
            }),
        }
    }
}

/// Whether a live stream of `device` captures, and into what.
pub(super) fn capture_status(device: &Device, stream: CUstream) -> Result<CaptureStatus> {
    let _guard = device.bind()?;
    let api = device.api();
    let mut status = CUstreamCaptureStatus::default();
    let mut id = 0;
    let mut graph = CUgraph::null();
    let none = core::ptr::null_mut();
    let (call, code) = match api.cuStreamGetCaptureInfo_v3 {
        // SAFETY: the stream is live, the out-parameters are live or null, which the call allows for all but `status`.
        Some(info) => ("cuStreamGetCaptureInfo_v3", unsafe {
            info(
                stream,
                &mut status,
                &mut id,
                &mut graph,
                none,
                core::ptr::null_mut(),
                core::ptr::null_mut(),
            )
        }),
        // SAFETY: as above.
        None => ("cuStreamGetCaptureInfo", unsafe {
            (api.cuStreamGetCaptureInfo()?)(
                stream,
                &mut status,
                &mut id,
                &mut graph,
                none,
                core::ptr::null_mut(),
            )
        }),
    };
    device.check(call, code)?;
    Ok(match status {
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE => CaptureStatus::None,
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE => {
            CaptureStatus::Active { id, graph }
        }
        _ => CaptureStatus::Invalidated,
    })
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Whatever other values of it there are.
        let captured = self.owned && self.device.note_capture(self.raw, false);
        self.device.forget_stream(self.raw);
        if self.owned {
            // SAFETY: made by `new` and destroyed only here; the driver frees it once what is enqueued has ended.
            let gone = self.device.teardown("cuStreamDestroy", |api| unsafe {
                Ok((api.cuStreamDestroy()?)(self.raw))
            });
            if captured && !gone {
                // What it captures into is there then.
                self.device.note_stray();
            }
        }
    }
}
