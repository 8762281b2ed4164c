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

/// Where the caller wants what a running capture is. Null: not wanted.
struct Wanted {
    id: *mut u64,
    graph: *mut CUgraph,
    dependencies: *mut *const CUgraphNode,
    data: *mut *const CUgraphEdgeData,
    count: *mut usize,
}

fn capture_info(
    call: &mut Call<'_>,
    stream: CUstream,
    to: *mut CUstreamCaptureStatus,
    wanted: Wanted,
) -> Status {
    let (state, thread) = call.split();
    let index = state.stream(thread, handle(stream.as_ptr()))?;
    let info = state.capture_info(index)?;
    put(to, status(&info))?;
    if let Info::Active {
        id,
        graph,
        frontier,
    } = info
    {
        put_if(wanted.id, id);
        put_if(wanted.graph, CUgraph::from_ptr(raw(graph)));
        put_if(wanted.count, frontier.len());
        // The driver's arrays: they stay until the thread asks again. Every dependency here is an ordinary one.
        thread.frontier_data = vec![CUgraphEdgeData::default(); frontier.len()];
        thread.frontier = frontier
            .into_iter()
            .map(|node| CUgraphNode::from_ptr(raw(node)))
            .collect();
        put_if(wanted.dependencies, thread.frontier.as_ptr());
        put_if(wanted.data, thread.frontier_data.as_ptr());
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
        let wanted = Wanted { id, graph, dependencies, data: std::ptr::null_mut(), count };
        capture_info(call, stream, to, wanted)
    }

    fn cuStreamGetCaptureInfo_v3(call, stream: CUstream, to: *mut CUstreamCaptureStatus, id: *mut u64,
        graph: *mut CUgraph, dependencies: *mut *const CUgraphNode, data: *mut *const CUgraphEdgeData, count: *mut usize)
    {
        if dependencies.is_null() && !data.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        capture_info(call, stream, to, Wanted { id, graph, dependencies, data, count })
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
