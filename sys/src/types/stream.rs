//! Streams, events and capture.

use core::ffi::c_void;

/// A host function that the driver calls, in stream order or when a user object dies. It must not
/// call the driver and must not unwind.
pub type CUhostFn = Option<unsafe extern "C" fn(user_data: *mut c_void)>;

flag_word! {
    /// Flags of `cuStreamCreate`.
    CUstream_flags: u32 {
        /// Does not wait for the legacy default stream, nor it for this one.
        CU_STREAM_NON_BLOCKING = 1;
    }
}

flag_word! {
    /// Flags of `cuEventCreate`.
    CUevent_flags: u32 {
        CU_EVENT_BLOCKING_SYNC = 1;
        CU_EVENT_DISABLE_TIMING = 2;
        CU_EVENT_INTERPROCESS = 4;
    }
}

flag_word! {
    /// Flags of `cuStreamWaitEvent`.
    CUevent_wait_flags: u32 {
        /// In a capture: an event wait node, not a dependency on the captured record.
        CU_EVENT_WAIT_EXTERNAL = 1;
    }
}

open_enum! {
    /// Which calls a capture forbids, and to whom.
    CUstreamCaptureMode: u32 {
        CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
        CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    }
}

open_enum! {
    /// Whether a stream captures.
    CUstreamCaptureStatus: u32 {
        CU_STREAM_CAPTURE_STATUS_NONE = 0,
        CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
        /// The capture failed and must still be ended.
        CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
    }
}
