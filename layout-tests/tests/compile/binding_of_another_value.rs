//! A value of an enum, and one of a set of flags, that differs from the other binding's does not pass for the same.

#![allow(non_camel_case_types)]

use cuda_driver_sys as theirs;

mod ours {
    pub struct CUstreamCaptureMode(pub u32);

    impl CUstreamCaptureMode {
        pub const CU_STREAM_CAPTURE_MODE_GLOBAL: Self = Self(0);
        pub const CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: Self = Self(1);
        pub const CU_STREAM_CAPTURE_MODE_RELAXED: Self = Self(3);
    }

    pub struct CUstream_flags(u32);

    impl CUstream_flags {
        pub const CU_STREAM_DEFAULT: Self = Self(0);
        pub const CU_STREAM_NON_BLOCKING: Self = Self(2);

        pub const fn bits(self) -> u32 {
            self.0
        }
    }
}

slabfence_layout_tests::same_values!(ours, theirs: enum CUstreamCaptureMode {
    CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED,
});
slabfence_layout_tests::same_values!(ours, theirs: flags CUstream_flags {
    CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING,
});

fn main() {}
