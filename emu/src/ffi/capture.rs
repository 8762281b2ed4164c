//! Stream capture.

use slabfence_sys::{
    CUgraph, CUgraphEdgeData, CUgraphNode, CUstream, CUstreamCaptureMode, CUstreamCaptureStatus,
};

use super::pointer::{get, handle, put, put_if, raw};
use crate::capture::Info;
use crate::code::{Code, Status};
use crate::device::CaptureMode;
use crate::slots::Call;

fn mode(value: CUstreamCaptureMode) -> Status<CaptureMode> {
    match value {
        CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL => Ok(CaptureMode::Global),
        CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL => Ok(CaptureMode::ThreadLocal),
        CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED => Ok(CaptureMode::Relaxed),
        _ => Err(Code::INVALID_VALUE),
    }
}

fn status(info: &Info) -> CUstreamCaptureStatus {
    match info {
        Info::None => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE,
        Info::Active { .. } => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE,
        Info::Invalidated => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED,
    }
}

/// Stores what is known of a stream's capture.
fn info(
    call: &mut Call<'_>,
    stream: CUstream,
    to: *mut CUstreamCaptureStatus,
    id: *mut u64,
    graph: *mut CUgraph,
    dependencies: *mut *const CUgraphNode,
    count: *mut usize,
) -> Status {
    let (state, thread) = call.split();
    let index = state.stream(thread, handle(stream.as_ptr()))?;
    let info = state.capture_info(index)?;
    put(to, status(&info))?;
    if let Info::Active {
        id: capture,
        graph: into,
        frontier,
    } = info
    {
        put_if(id, capture);
        put_if(graph, CUgraph::from_ptr(raw(into)));
        put_if(count, frontier.len());
        // The driver's array: it stays until the thread asks again.
        thread.frontier = frontier
            .into_iter()
            .map(|node| CUgraphNode::from_ptr(raw(node)))
            .collect();
        put_if(dependencies, thread.frontier.as_ptr());
    }
    Ok(())
}

entries! {
    fn cuStreamBeginCapture(call, stream: CUstream, how: CUstreamCaptureMode) {
        let (state, thread) = call.split();
        let index = state.stream(thread, handle(stream.as_ptr()))?;
        state.begin_capture(thread, index, mode(how)?)
    }

    fn cuStreamEndCapture(call, stream: CUstream, graph: *mut CUgraph) {
        let (state, thread) = call.split();
        let index = state.stream(thread, handle(stream.as_ptr()))?;
        put(graph, CUgraph::null())?;
        put(graph, CUgraph::from_ptr(raw(state.end_capture(thread, index)?)))
    }

    fn cuStreamIsCapturing(call, stream: CUstream, to: *mut CUstreamCaptureStatus) {
        let (state, thread) = call.split();
        let index = state.stream(thread, handle(stream.as_ptr()))?;
        put(to, status(&state.capture_info(index)?))
    }

    fn cuStreamGetCaptureInfo(call, stream: CUstream, to: *mut CUstreamCaptureStatus, id: *mut u64, graph: *mut CUgraph,
        dependencies: *mut *const CUgraphNode, count: *mut usize)
    {
        info(call, stream, to, id, graph, dependencies, count)
    }

    fn cuStreamGetCaptureInfo_v3(call, stream: CUstream, to: *mut CUstreamCaptureStatus, id: *mut u64,
        graph: *mut CUgraph, dependencies: *mut *const CUgraphNode, data: *mut *const CUgraphEdgeData, count: *mut usize)
    {
        // No array: every edge of this machine is an ordinary one.
        put_if(data, std::ptr::null());
        info(call, stream, to, id, graph, dependencies, count)
    }

    fn cuThreadExchangeStreamCaptureMode(call, to: *mut CUstreamCaptureMode) {
        let (state, thread) = call.split();
        state.ready()?;
        let new = mode(get(to)?)?;
        let old = std::mem::replace(&mut thread.mode, new);
        put(to, match old {
            CaptureMode::Global => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
            CaptureMode::ThreadLocal => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            CaptureMode::Relaxed => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
        })
    }
}
