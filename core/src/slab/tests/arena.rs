//! How slab memory is cut, and what its kind allows.

use super::*;

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
