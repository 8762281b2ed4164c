//! Memory of other processes, and what they get of ours.

use std::io::Read;
use std::os::fd::OwnedFd;

use super::*;

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
