//! How a mapping is made, guarded and given back, whatever the driver answers.

use super::*;

#[test]
fn a_mapping_lies_between_two_unmapped_guards_and_is_filled_with_zeros() {
    let mut mapping = Mapping::<Signal>::create(&fake::device(), GRANULE + 1).unwrap();
    let (whole, base) = (2 * GRANULE, ADDRESS + GRANULE as u64);
    assert_eq!(
        fake::calls(),
        [
            "cuMemGetAllocationGranularity".to_owned(),
            format!("cuMemCreate {whole}"),
            format!("cuMemAddressReserve {}", 4 * GRANULE),
            format!("cuMemMap {base:#x} {whole} 0 77"),
            format!("cuMemSetAccess {base:#x} {whole} 0 CU_MEM_ACCESS_FLAGS_PROT_READWRITE 1"),
            "cuStreamCreate 1".to_owned(),
            format!("cuMemsetD8Async {base:#x} 0 {whole}"),
            "cuStreamSynchronize".to_owned(),
        ]
    );
    assert_eq!(mapping.range().ptr().get(), base);
    assert_eq!(mapping.range().bytes(), whole);
    assert_eq!(mapping.guard(), GRANULE);
    mapping.close().unwrap();
    assert_eq!(
        fake::calls(),
        [
            format!("cuMemUnmap {base:#x} {whole}"),
            format!("cuMemAddressFree {ADDRESS:#x} {}", 4 * GRANULE),
            "cuMemRelease 77".to_owned(),
        ]
    );
}

#[test]
fn whatever_step_fails_the_steps_before_it_are_undone_in_reverse() {
    let undo = ["cuMemUnmap", "cuMemAddressFree", "cuMemRelease"];
    for (step, undone) in [
        ("cuMemCreate", &undo[3..]),
        ("cuMemAddressReserve", &undo[2..]),
        // It may have mapped all the same.
        ("cuMemMap", &undo[..]),
        ("cuMemSetAccess", &undo[..]),
        ("cuMemsetD8Async", &undo[..]),
    ] {
        let device = fake::device();
        fake::fail(step, OOM);
        let error = Mapping::<Local>::create(&device, 1).unwrap_err();
        assert!(
            error.to_string().starts_with(&format!("{step} failed")),
            "{error}"
        );
        let calls = fake::calls();
        let at = calls
            .iter()
            .position(|call| call.starts_with(step))
            .unwrap();
        let after: Vec<&str> = calls[at + 1..]
            .iter()
            .filter_map(|call| call.split(' ').next())
            .filter(|name| *name != "cuStreamSynchronize")
            .collect();
        assert_eq!(after, undone, "after {step}");
        fake::fail(step, CUresult::CUDA_SUCCESS);
    }
}

/// Names of the calls since the last time.
fn names() -> Vec<String> {
    let calls = fake::calls().into_iter();
    calls
        .filter_map(|call| Some(call.split(' ').next()?.to_owned()))
        .collect()
}

#[test]
fn a_close_that_failed_goes_on_where_it_stopped() {
    let mut mapping = Mapping::<Inbox>::create(&fake::device(), 1).unwrap();
    fake::log();
    fake::fail("cuMemUnmap", OOM);
    assert!(matches!(mapping.close(), Err(Error::Driver(_))));
    let refused = mapping.write(0, &[1]).unwrap_err();
    assert!(matches!(refused, Error::Closed { .. }), "{refused}");
    fake::fail("cuMemUnmap", CUresult::CUDA_SUCCESS);
    fake::calls();
    mapping.close().unwrap();
    assert_eq!(names(), ["cuMemUnmap", "cuMemAddressFree", "cuMemRelease"]);
    mapping.close().unwrap();
    drop(mapping);
    let names = names();
    assert!(
        !names.iter().any(|name| name.starts_with("cuMem")),
        "{names:?}"
    );
}

/// Closes a mapping whose unmapping has failed with [`OOM`] and then returns `next`; the calls of the second attempt.
fn unmapped_again(next: CUresult) -> (crate::Result<()>, Vec<String>) {
    let mut mapping = Mapping::<Inbox>::create(&fake::device(), 1).unwrap();
    fake::fail("cuMemUnmap", OOM);
    let said = mapping.close().unwrap_err().to_string();
    assert!(said.starts_with("cuMemUnmap failed"), "{said}");
    fake::fail("cuMemUnmap", next);
    fake::calls();
    let again = mapping.close();
    let calls = names();
    fake::fail("cuMemUnmap", CUresult::CUDA_SUCCESS);
    (again, calls)
}

#[test]
fn what_was_unmapped_although_the_driver_said_otherwise_counts_as_done() {
    const NOTHING_THERE: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
    let (again, calls) = unmapped_again(NOTHING_THERE);
    again.unwrap();
    assert_eq!(calls, ["cuMemUnmap", "cuMemAddressFree", "cuMemRelease"]);
    // Said of a first attempt, it is a failure.
    let mut mapping = Mapping::<Inbox>::create(&fake::device(), 1).unwrap();
    fake::fail("cuMemUnmap", NOTHING_THERE);
    mapping.close().unwrap_err();
    fake::fail("cuMemUnmap", CUresult::CUDA_SUCCESS);
    // Any other failure of a repetition is one too.
    let (again, calls) = unmapped_again(OOM);
    again.unwrap_err();
    assert_eq!(calls, ["cuMemUnmap"]);
}

/// Nobody can call it again.
#[test]
fn what_a_drop_could_not_unmap_it_tries_to_unmap_once_more() {
    for (code, calls) in [
        (OOM, &["cuMemUnmap", "cuMemUnmap"][..]),
        // The first attempt has done it, whatever it said.
        (
            CUresult::CUDA_ERROR_INVALID_VALUE,
            &[
                "cuMemUnmap",
                "cuMemUnmap",
                "cuMemAddressFree",
                "cuMemRelease",
            ],
        ),
    ] {
        let device = fake::device();
        let mapping = Mapping::<Inbox>::create(&device, 1).unwrap();
        fake::calls();
        fake::fail("cuMemUnmap", code);
        drop(mapping);
        fake::fail("cuMemUnmap", CUresult::CUDA_SUCCESS);
        assert_eq!(names(), calls);
    }
}

/// Address or handle may be another allocation's by then.
#[test]
fn addresses_and_memory_whose_release_failed_are_told_and_never_released_again() {
    let releases = ["cuMemAddressFree", "cuMemRelease"];
    for failing in [&releases[..1], &releases[1..], &releases[..]] {
        let mut mapping = Mapping::<Inbox>::create(&fake::device(), 1).unwrap();
        fake::calls();
        for call in failing {
            fake::fail(call, OOM);
        }
        let said = mapping.close().unwrap_err().to_string();
        for call in releases {
            let told = said.contains(&format!("{call} failed"));
            assert_eq!(told, failing.contains(&call), "{said}");
            fake::fail(call, CUresult::CUDA_SUCCESS);
        }
        // One that fails does not keep the other from its turn.
        assert_eq!(names(), ["cuMemUnmap", "cuMemAddressFree", "cuMemRelease"]);
        mapping.close().unwrap();
        drop(mapping);
        let again = names();
        assert!(
            !again.iter().any(|name| name.starts_with("cuMem")),
            "{again:?}"
        );
    }
}

#[test]
fn a_mapping_that_was_made_although_the_driver_said_otherwise_is_unmapped() {
    for (unmap, freed) in [
        (CUresult::CUDA_SUCCESS, true),
        (CUresult::CUDA_ERROR_INVALID_VALUE, true),
        (OOM, false),
    ] {
        let device = fake::device();
        fake::fail("cuMemMap", OOM);
        fake::fail("cuMemUnmap", unmap);
        Mapping::<Inbox>::create(&device, 1).unwrap_err();
        let calls = fake::calls();
        let said = |name: &str| calls.iter().any(|call| call.starts_with(name));
        assert_eq!(
            (said("cuMemUnmap"), said("cuMemAddressFree")),
            (true, freed)
        );
        fake::fail("cuMemMap", CUresult::CUDA_SUCCESS);
        fake::fail("cuMemUnmap", CUresult::CUDA_SUCCESS);
    }
}
