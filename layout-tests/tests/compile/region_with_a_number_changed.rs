//! What a range of arrays asserts of itself fails for each number that is changed: offset, length, stride, bytes.

#![allow(dead_code, missing_docs, unreachable_pub)]

#[path = "../../../core/src/layout/region.rs"]
mod region;

mod signal {
    pub use slabfence::layout::{LINE, MAX_GRID, MAX_WORLD, PHASES, SLOTS};
}

use region::prove_disjoint;

// As they are: three lines, two, and one of twice the bytes.
const _: () = prove_disjoint(&[(0, 3, 128), (384, 2, 128), (640, 1, 256)], 896);

const _: () = prove_disjoint(&[(0, 3, 128), (383, 2, 128), (640, 1, 256)], 896);
const _: () = prove_disjoint(&[(0, 3, 128), (384, 3, 128), (640, 1, 256)], 896);
const _: () = prove_disjoint(&[(0, 3, 128), (384, 2, 129), (640, 1, 256)], 896);
const _: () = prove_disjoint(&[(0, 3, 128), (384, 2, 128), (641, 1, 256)], 896);
const _: () = prove_disjoint(&[(0, 3, 128), (384, 2, 128), (640, 1, 256)], 895);

fn main() {}
