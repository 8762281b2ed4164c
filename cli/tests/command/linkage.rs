//! What the command is linked with.

use slabfence_layout_tests::elf::needed;

#[test]
fn no_cuda_library_is_linked() {
    let command = std::fs::read(env!("CARGO_BIN_EXE_slabfence")).unwrap();
    let libraries = needed(&command).unwrap();
    assert!(
        libraries.iter().any(|name| name.starts_with("libc.so")),
        "{libraries:?}"
    );
    let cuda = |name: &&String| name.starts_with("libcu") || name.starts_with("libnv");
    assert_eq!(libraries.iter().find(cuda), None, "{libraries:?}");
}
