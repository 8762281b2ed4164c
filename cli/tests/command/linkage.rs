//! What the command is linked with.

use slabfence_layout_tests::elf::{is_cuda, needed};

#[test]
fn no_cuda_library_is_linked() {
    let command = std::fs::read(env!("CARGO_BIN_EXE_slabfence")).unwrap();
    let libraries = needed(&command).unwrap();
    assert!(
        libraries.iter().any(|name| name.starts_with("libc.so")),
        "{libraries:?}"
    );
    assert_eq!(
        libraries.iter().find(|name| is_cuda(name)),
        None,
        "{libraries:?}"
    );
}
