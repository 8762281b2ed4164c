//! Programs that must not compile: the mistakes that types rule out, and proofs with one number changed.

/// All of them at once: what they depend on is built once.
#[test]
fn mistakes_that_types_rule_out_and_proofs_with_a_number_changed_do_not_compile() {
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
    for change in [
        "binding_of_another_alignment",
        "binding_of_another_size",
        "binding_of_another_value",
        "binding_of_another_width",
        "binding_of_other_offsets",
        "binding_with_a_field_untold",
        "binding_with_a_value_untold",
        "layout_with_a_number_changed",
        "region_with_a_number_changed",
        "second_version_that_begins_otherwise",
        "shared_struct_with_a_number_changed",
    ] {
        programs.compile_fail(format!("tests/compile/{change}.rs"));
    }
}
