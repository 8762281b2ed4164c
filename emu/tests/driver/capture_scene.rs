//! What the capture tests share.

use slabfence_sys::*;

use crate::gpu::Gpu;

pub const GLOBAL: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
pub const THREAD_LOCAL: CUstreamCaptureMode =
    CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
pub const RELAXED: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;

/// Two streams, an event and a word of memory.
pub struct Scene {
    pub gpu: Gpu,
    pub one: CUstream,
    pub two: CUstream,
    pub event: CUevent,
    pub at: CUdeviceptr,
}

impl Scene {
    pub fn new() -> Scene {
        let gpu = Gpu::new(1);
        let (one, two, event, at) = (gpu.stream(), gpu.stream(), gpu.event(), gpu.alloc(64));
        Scene {
            gpu,
            one,
            two,
            event,
            at,
        }
    }

    pub fn begin(&self, stream: CUstream, mode: CUstreamCaptureMode) {
        ok!((self.gpu.api.cuStreamBeginCapture.unwrap())(stream, mode));
    }

    pub fn fill(&self, stream: CUstream) -> CUresult {
        code!((self.gpu.api.cuMemsetD32Async.unwrap())(
            self.at, 1, 1, stream
        ))
    }

    /// `waiter` waits for what `stream` has now.
    pub fn join(&self, waiter: CUstream, stream: CUstream) -> CUresult {
        ok!((self.gpu.api.cuEventRecord.unwrap())(self.event, stream));
        code!((self.gpu.api.cuStreamWaitEvent.unwrap())(
            waiter,
            self.event,
            CUevent_wait_flags::empty()
        ))
    }

    pub fn status(&self, stream: CUstream) -> CUstreamCaptureStatus {
        let mut status = CUstreamCaptureStatus(99);
        ok!((self.gpu.api.cuStreamIsCapturing.unwrap())(
            stream,
            &mut status
        ));
        status
    }

    /// The capture of `stream` must end with this code, without a graph, and leave the stream usable.
    pub fn ends_with(&self, stream: CUstream, code: CUresult) {
        let mut graph = CUgraph::from_ptr(std::ptr::without_provenance_mut(1));
        assert_eq!(
            code!((self.gpu.api.cuStreamEndCapture.unwrap())(
                stream, &mut graph
            )),
            code
        );
        assert!(graph.is_null());
        assert_eq!(
            self.status(stream),
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
        );
        assert_eq!(self.fill(stream), CUresult::CUDA_SUCCESS);
    }

    pub fn spoilt(&self, stream: CUstream) {
        assert_eq!(
            self.status(stream),
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED
        );
        assert_eq!(
            self.fill(stream),
            CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
        );
        self.ends_with(stream, CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }

    pub fn clean(self) {
        ok!((self.gpu.api.cuStreamDestroy.unwrap())(self.one));
        ok!((self.gpu.api.cuStreamDestroy.unwrap())(self.two));
        ok!((self.gpu.api.cuEventDestroy.unwrap())(self.event));
        self.gpu.free(self.at);
        self.gpu.clean();
    }
}
