//! Programs that must not compile: the mistakes that types rule out.

#[test]
fn mistakes_that_types_rule_out_do_not_compile() {
    let programs = trybuild::TestCases::new();
    programs.pass("tests/compile/typed_use.rs");
    for mistake in [
        "inbox_pointer_as_signal_pointer",
        "peer_index_from_integer",
        "peer_memory_as_own_memory",
        "pointer_from_integer",
        "record_of_another_kind",
        "slot_from_integer",
    ] {
        programs.compile_fail(format!("tests/compile/{mistake}.rs"));
    }
}
