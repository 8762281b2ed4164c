//! A struct that ends with a new field passes for the first version and more only where each old field lies as it did.

#[repr(C)]
struct First {
    a: u32,
    b: u32,
}

#[repr(C)]
struct Second {
    a: u32,
    b: u32,
    c: u32,
}

#[repr(C)]
struct Other {
    a: u32,
    c: u32,
    b: u32,
}

slabfence_layout_tests::extends!(Second: First { a, b } then c);
slabfence_layout_tests::extends!(Other: First { a, b } then c);

fn main() {}
