//! What the types print, keep and default to. Their layout is asserted where they are defined.

use slabfence_sys::*;

#[test]
fn a_code_prints_its_name_or_itself() {
    assert_eq!(
        format!("{:?}", CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
        "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
    );
    assert_eq!(format!("{:?}", CUresult(918)), "CUresult(918)");
    assert_eq!(format!("{:?}", CUgraphNodeType(17)), "CUgraphNodeType(17)");
    assert_eq!(CUresult(600).name(), Some("CUDA_ERROR_NOT_READY"));
    assert_eq!(CUresult(918).name(), None);
}

#[test]
fn only_zero_is_success() {
    assert!(CUresult(0).is_success());
    assert!(!CUresult::CUDA_ERROR_NOT_READY.is_success());
}

#[test]
fn flags_keep_the_bits_that_have_no_name() {
    let flags = CUevent_flags::CU_EVENT_DISABLE_TIMING | CUevent_flags::from_bits_retain(0x80);
    assert_eq!(flags.bits(), 0x82);
    assert_eq!(CUevent_flags::from_bits_truncate(0x82), flags);
}

#[test]
fn a_uuid_prints_as_the_driver_tools_print_it() {
    let uuid = CUuuid {
        bytes: *b"\x01\x23\x45\x67\x89\xab\xcd\xef\x00\x11\x22\x33\x44\x55\x66\x77",
    };
    assert_eq!(
        format!("{uuid:?}"),
        "GPU-01234567-89ab-cdef-0011-223344556677"
    );
}

#[test]
fn addresses_and_handles_print_in_hexadecimal() {
    assert_eq!(
        format!("{:?}", CUdeviceptr(0x7f00_0020_0000)),
        "CUdeviceptr(0x7f0000200000)"
    );
    assert_eq!(format!("{:?}", CUstream::PER_THREAD), "CUstream(0x2)");
}

#[test]
fn a_default_handle_is_null_and_the_explicit_streams_are_not() {
    assert!(CUgraph::default().is_null());
    assert_eq!(CUgraph::default(), CUgraph::null());
    assert_eq!(CUstream::LEGACY.as_ptr() as usize, 1);
    assert_eq!(
        CUstream::from_ptr(CUstream::LEGACY.as_ptr()),
        CUstream::LEGACY
    );
}

#[test]
fn a_launch_attribute_is_zero_but_for_what_it_sets() {
    let attribute = CUlaunchAttribute::programmatic_stream_serialization();
    assert_eq!(attribute.id, CUlaunchAttributeID(6));
    let mut expected = [0; 64];
    expected[0] = 1;
    // SAFETY: the value was made from `default()`, so all 64 bytes are initialised.
    assert_eq!(unsafe { attribute.value.pad }, expected);
    assert_eq!(CUlaunchAttribute::cooperative().id, CUlaunchAttributeID(2));
}
