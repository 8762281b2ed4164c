//! A proof of an enum that leaves a value out is none.

use cuda_driver_sys as theirs;
use slabfence::sys as ours;

slabfence_layout_tests::same_values!(ours, theirs: enum CUstreamCaptureMode {
    CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
});

fn main() {}
