//! How slab memory is cut, guarded, given back, and what of a peer's word is believed.

use std::io::Read;
use std::os::fd::OwnedFd;

use slabfence_sys::{CUresult, RangeKind};

use super::*;
use crate::driver::fake::{self, ADDRESS, GRANULE};
use crate::error::Error;

const OOM: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;

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

#[test]
fn peers_get_what_their_kind_allows_and_no_more() {
    fn granted<K: Kind>() -> Vec<String> {
        let mapping = Mapping::<K>::create(&fake::device(), 1).unwrap();
        fake::calls();
        mapping.grant(&[1, 0]).unwrap();
        let mut calls = fake::calls();
        calls.retain(|call| call.starts_with("cuMemSetAccess"));
        let base = mapping.range().ptr().get();
        let start = format!("cuMemSetAccess {base:#x} {GRANULE} ");
        calls
            .iter()
            .map(|call| call.strip_prefix(&start).unwrap().to_owned())
            .collect()
    }
    // The own device is not named: it keeps its right to write.
    assert_eq!(
        granted::<Signal>(),
        ["1 CU_MEM_ACCESS_FLAGS_PROT_READWRITE 1"]
    );
    assert_eq!(
        granted::<Inbox>(),
        ["1 CU_MEM_ACCESS_FLAGS_PROT_READWRITE 1"]
    );
    assert_eq!(granted::<Outbox>(), ["1 CU_MEM_ACCESS_FLAGS_PROT_READ 1"]);

    let local = Mapping::<Local>::create(&fake::device(), 1).unwrap();
    fake::calls();
    assert!(matches!(local.grant(&[1]), Err(Error::Refused { .. })));
    assert_eq!(fake::calls(), [""; 0]);
    local.grant(&[0]).unwrap();
}

#[test]
fn access_is_asked_for_in_the_direction_in_which_it_is_used() {
    let mapping = Mapping::<Outbox>::create(&fake::device(), 1).unwrap();
    fake::calls();
    mapping.grant(&[1]).unwrap();
    // Device 1 is the one that will load.
    assert_eq!(fake::calls()[1], "cuDeviceCanAccessPeer 1 0");
}

#[test]
fn the_last_range_of_an_arena_ends_where_the_mapping_ends() {
    let arena = Arena::<Outbox>::create(&fake::device(), 1000, 3).unwrap();
    assert_eq!((arena.stride(), arena.count()), (1024, 3));
    let end = ADDRESS + 2 * GRANULE as u64;
    let starts: Vec<u64> = (0..3)
        .map(|index| arena.range(index).unwrap().ptr().get())
        .collect();
    assert_eq!(starts, [end - 3 * 1024, end - 2 * 1024, end - 1024]);
    assert_eq!(arena.range(2).unwrap().end(), end);
    assert!(matches!(arena.range(3), Err(Error::Argument { .. })));
}

#[test]
fn an_arena_of_nothing_or_of_too_much_is_refused() {
    let device = fake::device();
    for (bytes, count) in [
        (0, 4),
        (4, 0),
        (usize::MAX, 1),
        (usize::MAX / 2, 4),
        (usize::MAX - 255, 1),
    ] {
        let error = Arena::<Local>::create(&device, bytes, count).unwrap_err();
        assert!(matches!(error, Error::Argument { .. }), "{error}");
    }
}

#[test]
fn writes_to_a_range_stay_in_it() {
    let arena = Arena::<Local>::create(&fake::device(), 256, 4).unwrap();
    fake::calls();
    arena.write(1, 250, &[0; 6]).unwrap();
    let to = arena.range(1).unwrap().ptr().get() + 250;
    assert_eq!(fake::calls()[0], format!("cuMemcpyHtoDAsync {to:#x} 6"));
    for (index, offset, bytes) in [(1, 250, 7), (4, 0, 1), (0, usize::MAX, 2)] {
        let error = arena.fill(index, offset, 0, bytes).unwrap_err();
        assert!(matches!(error, Error::Argument { .. }), "{error}");
        assert!(arena.write(index, offset, &vec![0; bytes]).is_err());
        assert!(arena.read(index, offset, &mut vec![0; bytes]).is_err());
    }
    assert_eq!(fake::calls(), [""; 0]);
}

#[test]
fn a_part_of_a_range_stays_in_it() {
    let arena = Arena::<Signal>::create(&fake::device(), 512, 1).unwrap();
    let range = arena.range(0).unwrap();
    let part = range.sub(384, 128).unwrap();
    assert_eq!(part.ptr().get(), range.ptr().get() + 384);
    assert_eq!((part.bytes(), part.end()), (128, range.end()));
    for (offset, bytes) in [(384, 129), (513, 0), (usize::MAX, 1)] {
        assert!(matches!(
            range.sub(offset, bytes),
            Err(Error::Argument { .. })
        ));
    }
    assert_eq!(range.sub(512, 0).unwrap().bytes(), 0);
}

#[test]
fn a_record_survives_the_journey() {
    let arena = Arena::<Inbox>::create(&fake::device(), 256, 2).unwrap();
    let record = arena.record();
    let bytes = record.to_bytes();
    assert_eq!(ArenaRecord::from_bytes(&bytes), Some(record));
    assert_eq!(bytes[8..16], u64::from(RangeKind::INBOX.0).to_le_bytes());
    assert_eq!(
        bytes[16..24],
        arena.range(0).unwrap().ptr().get().to_le_bytes()
    );
    assert_eq!(ArenaRecord::from_bytes(&bytes[..47]), None);
    let mut kind = bytes;
    kind[12] = 1;
    assert_eq!(ArenaRecord::from_bytes(&kind), None);
}

/// Two arenas as two ranks of one process have them, and a way to spoil a word of the second's record.
fn peers() -> (
    Arena<Inbox>,
    Arena<Inbox>,
    impl Fn(usize, u64) -> ArenaRecord,
) {
    let device = fake::device();
    let own = Arena::<Inbox>::create(&device, 256, 2).unwrap();
    let peer = Arena::<Inbox>::create(&device, 256, 2).unwrap();
    let bytes = peer.record().to_bytes();
    let spoil = move |word: usize, value: u64| {
        let mut bytes = bytes;
        bytes[word * 8..word * 8 + 8].copy_from_slice(&value.to_le_bytes());
        ArenaRecord::from_bytes(&bytes).unwrap()
    };
    (own, peer, spoil)
}

#[test]
fn a_peers_ranges_are_where_its_owner_has_them() {
    let (own, peer, _) = peers();
    let seen = PeerArena::accept(&peer.record(), &own).unwrap();
    for index in 0..2 {
        let range = seen.range(index).unwrap();
        assert_eq!(range.ptr(), peer.range(index).unwrap().ptr());
        assert_eq!(range.bytes(), 256);
    }
    assert!(seen.range(2).is_err());
    let range = seen.range(1).unwrap();
    assert_eq!(
        range.sub(128, 128).unwrap().ptr().get(),
        range.ptr().get() + 128
    );
    assert!(range.sub(128, 129).is_err());
}

#[test]
fn a_peers_record_is_believed_only_where_it_fits() {
    let (own, peer, spoil) = peers();
    let why = |record: &ArenaRecord| match PeerArena::accept(record, &own) {
        Err(Error::Refused { why, .. }) => why,
        other => panic!("{other:?}"),
    };
    let base = peer.range(0).unwrap().ptr().get();
    let mine = own.range(0).unwrap().ptr().get();
    for (word, value, said) in [
        (0, process_token() ^ 2, "belongs to another process"),
        (1, 3, "is of OUTBOX memory where inbox memory was expected"),
        (1, 99, "is of RangeKind(99) memory"),
        (2, 0, "is no address"),
        (2, base + 8, "is no address"),
        (2, u64::MAX - 127, "is no address"),
        (2, mine, "overlaps this rank's"),
        (2, mine + 384, "overlaps this rank's"),
        (2, mine - 384, "overlaps this rank's"),
        (3, 128, "a peer has 2 ranges of 128 bytes"),
        (4, 3, "a peer has 3 ranges of 256 bytes"),
    ] {
        let why = why(&spoil(word, value));
        assert!(why.contains(said), "{why}");
    }
    assert!(PeerArena::accept(&spoil(2, mine + 512), &own).is_ok());
}

/// A descriptor, and what tells that it is open nowhere any more.
fn descriptor() -> (OwnedFd, impl FnOnce()) {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let closed = move || assert_eq!(reader.read(&mut [0]).unwrap(), 0);
    (writer.into(), closed)
}

#[test]
fn another_processes_memory_is_mapped_whole_between_guards_with_the_right_of_its_kind() {
    fn imported<K: Kind>(right: &str) {
        let device = fake::device();
        let own = Arena::<K>::create(&device, 256, 3).unwrap();
        let record = own.record();
        fake::calls();
        let (fd, closed) = descriptor();
        let (seen, mut memory) = PeerArena::import(&record, &own, fd).unwrap();
        closed();
        let at = own.range(2).unwrap().end() + GRANULE as u64;
        let base = at + GRANULE as u64;
        assert_eq!(
            fake::calls(),
            [
                "cuMemImportFromShareableHandle 1".to_owned(),
                format!("cuMemAddressReserve {}", 3 * GRANULE),
                format!("cuMemMap {base:#x} {GRANULE} 0 78"),
                format!("cuMemSetAccess {base:#x} {GRANULE} 0 {right} 1"),
            ]
        );
        // Flush with the end, as its owner has it.
        let first = seen.range(0).unwrap().ptr().get();
        assert_eq!(first, base + (GRANULE - 3 * 256) as u64);
        memory.close().unwrap();
        let bytes = 3 * GRANULE;
        assert_eq!(
            fake::calls(),
            [
                format!("cuMemUnmap {base:#x} {GRANULE}"),
                format!("cuMemAddressFree {at:#x} {bytes}"),
                "cuMemRelease 78".to_owned(),
            ]
        );
    }
    imported::<Signal>("CU_MEM_ACCESS_FLAGS_PROT_READWRITE");
    imported::<Inbox>("CU_MEM_ACCESS_FLAGS_PROT_READWRITE");
    imported::<Outbox>("CU_MEM_ACCESS_FLAGS_PROT_READ");
}

#[test]
fn an_import_that_fails_anywhere_leaves_nothing() {
    let undo = ["cuMemUnmap", "cuMemAddressFree", "cuMemRelease"];
    let (own, _peer, _) = peers();
    for (step, undone) in [
        ("cuMemImportFromShareableHandle", &undo[3..]),
        ("cuMemAddressReserve", &undo[2..]),
        // It may have mapped all the same.
        ("cuMemMap", &undo[..]),
        ("cuMemSetAccess", &undo[..]),
    ] {
        fake::calls();
        fake::fail(step, OOM);
        let (fd, closed) = descriptor();
        let error = PeerArena::import(&own.record(), &own, fd).unwrap_err();
        closed();
        assert!(error.to_string().starts_with(step), "{error}");
        let calls = fake::calls();
        let at = calls.iter().position(|call| call.starts_with(step));
        let after = calls[at.unwrap() + 1..].iter();
        let after: Vec<&str> = after.filter_map(|call| call.split(' ').next()).collect();
        assert_eq!(after, undone, "after {step}");
        fake::fail(step, CUresult::CUDA_SUCCESS);
    }
}

#[test]
fn an_import_is_refused_where_the_record_does_not_fit() {
    let (own, _peer, spoil) = peers();
    for (word, value, said) in [
        (1, 3, "is of OUTBOX memory where inbox memory was expected"),
        (4, 3, "a peer has 3 ranges of 256 bytes"),
        (5, 511, "has 511 bytes, which do not hold the ranges' 512"),
        (5, 512, "allocation of 512 bytes; device 0 maps multiples"),
        (5, u64::MAX - 0xffff, "maps multiples"),
    ] {
        let (fd, closed) = descriptor();
        fake::calls();
        let error = PeerArena::import(&spoil(word, value), &own, fd).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
        assert_eq!(fake::calls(), [""; 0]);
        closed();
    }
}

#[test]
fn memory_is_exported_as_a_descriptor_that_programs_do_not_inherit() {
    let mut arena = Arena::<Signal>::create(&fake::device(), 256, 1).unwrap();
    fake::calls();
    let descriptor = arena.export().unwrap();
    assert_eq!(fake::calls(), ["cuMemExportToShareableHandle 77 1 0"]);
    let flags = rustix::io::fcntl_getfd(&descriptor).unwrap();
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    arena.close().unwrap();
    assert!(matches!(arena.export(), Err(Error::Closed { .. })));
    let local = Arena::<Local>::create(&fake::device(), 256, 1).unwrap();
    let refused = local.export().unwrap_err();
    assert!(refused.to_string().contains("never shared"), "{refused}");
}

#[test]
fn local_memory_has_no_peers() {
    let device = fake::device();
    let own = Arena::<Local>::create(&device, 256, 1).unwrap();
    let peer = Arena::<Local>::create(&device, 256, 1).unwrap();
    let refused = PeerArena::accept(&peer.record(), &own).unwrap_err();
    assert!(refused.to_string().contains("never shared"), "{refused}");
}

#[test]
fn two_arenas_of_a_device_never_touch() {
    let (own, peer, _) = peers();
    let (a, b) = (own.range(1).unwrap(), peer.range(0).unwrap());
    assert!(b.ptr().get() - a.end() >= 2 * GRANULE as u64);
}
