//! A proof of a struct that leaves a field out is none.

use cuda_driver_sys as theirs;
use slabfence::sys as ours;

slabfence_layout_tests::same_layout!(ours, theirs: CUmemLocation { type_ });

fn main() {}
