//! What the linker is told: the library's name, and that it stays.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for argument in [
        // The name that programs are linked with and that the loader compares.
        "-soname,libcuda.so.1",
        // Its threads run until the process ends: `dlclose` must not take their code away.
        "-z,nodelete",
        // A program may have other symbols of these names; the library's own references are to its own.
        "-Bsymbolic",
    ] {
        println!("cargo::rustc-cdylib-link-arg=-Wl,{argument}");
    }
}
