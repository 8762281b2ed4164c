//! A struct of the driver's whose fields lie elsewhere than the other binding's does not pass for the same.

use cuda_driver_sys as theirs;

mod ours {
    #[repr(C)]
    pub struct CUmemLocation {
        pub id: i32,
        pub type_: u32,
    }
}

slabfence_layout_tests::same_layout!(ours, theirs: CUmemLocation { type_, id });

fn main() {}
