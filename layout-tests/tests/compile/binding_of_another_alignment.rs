//! A struct of the driver's that is aligned otherwise than the other binding's does not pass for the same.

use cuda_driver_sys as theirs;

mod ours {
    #[repr(C, align(8))]
    pub struct CUmemLocation {
        pub type_: u32,
        pub id: i32,
    }
}

slabfence_layout_tests::same_layout!(ours, theirs: CUmemLocation { type_, id });

fn main() {}
