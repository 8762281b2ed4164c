//! Exchanges among ranks that have met.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::super::frame::MAX_PART;
use super::{Folder, join, on_ranks, ranks, reaches, soon};
use crate::group::{Bootstrap, BootstrapError};

#[test]
fn every_rank_gets_every_part_in_rank_order_round_after_round() {
    let folder = Folder::new();
    on_ranks(3, |rank| {
        let member = join(&folder, rank, 3, 10_000).unwrap();
        for round in 0..40usize {
            // Long ones too, which travel in pieces and fill the sockets.
            let long = |rank: u32| vec![rank as u8; round * round * 700 * (rank as usize + 1)];
            let parts = member.all_gather(&long(rank), soon(10_000)).unwrap();
            assert_eq!(parts.len(), 3);
            for (from, part) in (0..).zip(parts) {
                assert!(part == long(from), "round {round}, from {from}");
            }
        }
    });
    assert_eq!(folder.files(), 0);
}

#[test]
fn a_timeout_names_the_missing_ranks_and_the_round_can_be_tried_again() {
    let folder = Folder::new();
    let (first, second) = (&AtomicU32::new(0), &AtomicU32::new(0));
    on_ranks(3, |rank| {
        let member = join(&folder, rank, 3, 10_000).unwrap();
        if rank < 2 {
            let missing = member.all_gather(b"early", soon(2000)).unwrap_err();
            let expected = ranks(&[2]);
            assert_eq!(missing, BootstrapError::Timeout { missing: expected });
            first.fetch_add(1, Ordering::SeqCst);
        }
        reaches(first, 2);
        let parts = member.all_gather(&[rank as u8], soon(10_000)).unwrap();
        assert_eq!(parts, [[0], [1], [2]]);
        second.fetch_add(1, Ordering::SeqCst);
    });
    assert_eq!(second.load(Ordering::SeqCst), 3);
}

#[test]
fn a_rank_that_leaves_wakes_the_others_at_once_with_its_name() {
    for leaver in 0..3 {
        let folder = Folder::new();
        let heard = &AtomicU32::new(0);
        let outcomes = on_ranks(3, |rank| {
            let member = join(&folder, rank, 3, 10_000).unwrap();
            if rank == leaver {
                return None;
            }
            let begin = Instant::now();
            let error = member.all_gather(b"x", soon(60_000)).unwrap_err();
            assert!(begin.elapsed() < Duration::from_secs(20));
            // And again: nothing hangs on a broken group.
            assert!(member.all_gather(b"x", soon(60_000)).is_err());
            // The hub stays until the other has heard it, or its own name is all there is to say.
            heard.fetch_add(1, Ordering::SeqCst);
            if rank == 0 {
                reaches(heard, 2);
            }
            Some(error)
        });
        for error in outcomes.into_iter().flatten() {
            let ranks = ranks(&[leaver]);
            assert_eq!(error, BootstrapError::Left { ranks });
        }
        assert_eq!(folder.files(), 0);
    }
}

#[test]
fn a_rank_that_waited_in_vain_and_left_is_not_the_one_that_is_missing() {
    for leaver in 0..2 {
        let folder = Folder::new();
        let (left, heard) = (&AtomicU32::new(0), &AtomicU32::new(0));
        on_ranks(3, |rank| {
            let member = join(&folder, rank, 3, 10_000).unwrap();
            if rank == 2 {
                // It never comes, and is there all the time.
                return reaches(heard, 2);
            }
            let patience = if rank == leaver { 2000 } else { 60_000 };
            let error = member.all_gather(b"x", soon(patience)).unwrap_err();
            let missing = ranks(&[2]);
            assert_eq!(
                error,
                BootstrapError::Timeout { missing },
                "leaver {leaver}"
            );
            if rank == leaver {
                drop(member);
                left.fetch_add(1, Ordering::SeqCst);
            } else {
                // The other's end is what woke this rank.
                reaches(left, 1);
            }
            heard.fetch_add(1, Ordering::SeqCst);
        });
    }
}

#[test]
fn what_a_rank_handed_over_before_it_left_counts() {
    let folder = Folder::new();
    on_ranks(2, |rank| {
        let member = join(&folder, rank, 2, 10_000).unwrap();
        if rank == 0 {
            thread::sleep(Duration::from_millis(100));
        }
        let parts = member.all_gather(&[rank as u8], soon(10_000)).unwrap();
        assert_eq!(parts, [[0], [1]]);
    });
}

#[test]
fn a_message_that_is_too_long_is_refused_before_it_is_sent() {
    let folder = Folder::new();
    on_ranks(2, |rank| {
        let member = join(&folder, rank, 2, 10_000).unwrap();
        let long = vec![0; MAX_PART + 1];
        let error = member.all_gather(&long, soon(10_000)).unwrap_err();
        assert!(error.to_string().contains("at most"), "{error}");
        let parts = member.all_gather(&long[1..], soon(20_000)).unwrap();
        assert_eq!(parts[1].len(), MAX_PART);
    });
}
