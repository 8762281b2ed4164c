//! A handle of the driver's that is narrower than the other binding's, or aligned otherwise, does not pass for the same.

#![allow(non_camel_case_types)]

use cuda_driver_sys as theirs;

mod ours {
    pub type CUdevice = i64;
    pub type CUcontext = [u32; 2];
    pub type CUstream = *mut u8;
}

slabfence_layout_tests::same_width!(ours, theirs: CUdevice);
slabfence_layout_tests::same_width!(ours, theirs: CUcontext);
slabfence_layout_tests::same_width!(ours, theirs: CUstream);

fn main() {}
