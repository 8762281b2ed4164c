//! Programs that must not compile: the mistakes that types rule out, and proofs with one number changed.

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

#[test]
fn proofs_fail_when_a_number_is_changed() {
    let programs = trybuild::TestCases::new();
    for change in [
        "binding_of_another_alignment",
        "binding_of_another_size",
        "binding_of_another_value",
        "binding_of_other_offsets",
        "binding_with_a_field_untold",
        "binding_with_a_value_untold",
        "layout_with_a_number_changed",
        "shared_struct_with_a_number_changed",
    ] {
        programs.compile_fail(format!("tests/compile/{change}.rs"));
    }
}
