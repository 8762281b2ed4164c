//! What a witness of a driver's bindings must not bring along.

use slabfence_layout_tests::elf::{is_cuda, needed};

#[test]
fn the_other_binding_links_no_driver() {
    let program = std::env::current_exe().unwrap();
    let libraries = needed(&std::fs::read(program).unwrap()).unwrap();
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
