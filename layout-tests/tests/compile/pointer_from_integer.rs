//! An address of slab memory comes from a range alone, and a range from an arena.

use slabfence::slab::{Ptr, Range, Signal};

fn main() {
    let _ = Ptr::<Signal>::new(0x1000);
    let _: Ptr<Signal> = 0x1000.into();
    let _ = Range::<Signal>::new(0x1000, 128);
}
