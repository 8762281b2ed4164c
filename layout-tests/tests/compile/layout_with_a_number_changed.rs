//! What the bindings assert of their own structs fails for each number that is changed: size, alignment, offset.

#[allow(unused_macros)]
#[macro_use]
#[path = "../../../sys/src/macros.rs"]
mod macros;

#[repr(C)]
struct Location {
    kind: u32,
    id: i32,
}

layout!(Location: size 8, align 4, kind @ 0, id @ 4);
layout!(Location: size 12, align 4, kind @ 0, id @ 4);
layout!(Location: size 8, align 8, kind @ 0, id @ 4);
layout!(Location: size 8, align 4, kind @ 0, id @ 5);

fn main() {}
