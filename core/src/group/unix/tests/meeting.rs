//! Ranks come together, or learn why not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use super::super::UnixBootstrap;
use super::super::join::MAX_JOB;
use super::{Folder, all_come, join, on_ranks, ranks, soon};
use crate::error::Error;
use crate::group::{Bootstrap, BootstrapError, Rank};
use crate::socket::{self, Listener, Place};

#[test]
fn only_the_user_may_reach_the_socket_which_goes_with_the_hub() {
    let folder = Folder::new();
    on_ranks(2, |rank| {
        let member = join(&folder, rank, 2, 10_000).unwrap();
        if rank == 0 {
            let mode = fs::metadata(folder.socket()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        member.all_gather(b"", soon(10_000)).unwrap();
    });
    assert_eq!(folder.files(), 0);
}

#[test]
fn all_ranks_learn_who_did_not_come() {
    let folder = Folder::new();
    let started = &AtomicU32::new(0);
    let outcomes = on_ranks(4, |rank| {
        all_come(started, 4);
        match rank {
            2 => None,
            // Whoever waits longest learns it too, though the hub has gone.
            rank => Some(join(&folder, rank, 4, 2000 + 300 * u64::from(rank)).unwrap_err()),
        }
    });
    for error in outcomes.into_iter().flatten() {
        let Error::Timeout { what, missing } = error else {
            panic!("{error:?}");
        };
        assert_eq!((what.as_str(), missing), ("joining job 'job'", ranks(&[2])));
    }
    assert_eq!(folder.files(), 0);
}

#[test]
fn without_a_hub_rank_0_is_missing() {
    let folder = Folder::new();
    let begin = Instant::now();
    let Err(Error::Timeout { missing, .. }) = join(&folder, 1, 2, 200) else {
        panic!("joined nobody");
    };
    assert_eq!(missing, ranks(&[0]));
    assert!(begin.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_second_job_of_the_same_name_is_refused_and_the_first_lives_on() {
    let folder = Folder::new();
    on_ranks(2, |rank| {
        let member = join(&folder, rank, 2, 10_000).unwrap();
        let refused = |rank| match join(&folder, rank, 2, 10_000) {
            Err(Error::Refused { why, .. }) => why,
            other => panic!("{other:?}"),
        };
        if rank == 0 {
            let why = refused(0);
            let words = format!(
                "a job of this name is running (process {}",
                std::process::id()
            );
            assert!(why.starts_with(&words), "{why}");
            let why = refused(1);
            assert!(why.contains("rank 1 is there already (process"), "{why}");
        }
        assert_eq!(member.all_gather(b"x", soon(10_000)).unwrap().len(), 2);
    });
    // The name is free again.
    on_ranks(2, |rank| drop(join(&folder, rank, 2, 10_000).unwrap()));
}

#[test]
fn a_rank_that_comes_again_after_it_has_left_is_refused_and_the_others_know_that_it_left() {
    let folder = Folder::new();
    let (came, refused) = (&AtomicU32::new(0), &AtomicU32::new(0));
    on_ranks(3, |rank| {
        let member = join(&folder, rank, 3, 10_000).unwrap();
        all_come(came, 3);
        if rank == 1 {
            drop(member);
            // At once: the hub may hear of the new connection first.
            let again = join(&folder, 1, 3, 10_000);
            all_come(refused, 3);
            let Err(Error::Refused { why, .. }) = again else {
                panic!("{again:?}");
            };
            let words = "the hub of job 'job' says: rank 1 has been there and has left; \
                give every rank a number of its own and every job a name of its own";
            assert_eq!(why, words);
            return;
        }
        let left = Err(BootstrapError::Left { ranks: ranks(&[1]) });
        let told = [(); 2].map(|()| member.all_gather(b"x", soon(60_000)));
        // The hub stays until all have heard.
        all_come(refused, 3);
        assert_eq!(told, [left.clone(), left]);
    });
    assert_eq!(folder.files(), 0);
}

#[test]
fn the_socket_of_a_killed_run_is_replaced_and_other_files_are_not() {
    let folder = Folder::new();
    let address = folder.place().address().unwrap();
    let dead = socket::new().unwrap();
    rustix::net::bind(&dead, &address).unwrap();
    drop(dead);
    assert_eq!(folder.files(), 1);
    on_ranks(2, |rank| drop(join(&folder, rank, 2, 10_000).unwrap()));
    assert_eq!(folder.files(), 0);
    fs::write(folder.socket(), "precious").unwrap();
    let Err(Error::Refused { why, .. }) = join(&folder, 0, 2, 1000) else {
        panic!("replaced a file");
    };
    assert!(why.contains("is there and is no socket"), "{why}");
    assert_eq!(fs::read(folder.socket()).unwrap(), b"precious");
}

#[test]
fn sockets_of_meetings_in_a_killed_run_go_with_the_next_and_others_stay() {
    let folder = Folder::new();
    let place = |number| Place::of_meeting(Some(&folder.0), number);
    let dead = socket::new().unwrap();
    rustix::net::bind(&dead, &place(1).address().unwrap()).unwrap();
    drop(dead);
    let alive = Listener::open(&place(2), soon(1000)).unwrap();
    let precious = folder.0.join("slabfence-3.door");
    fs::write(&precious, "precious").unwrap();
    assert_eq!(folder.files(), 3);
    on_ranks(2, |rank| drop(join(&folder, rank, 2, 10_000).unwrap()));
    assert_eq!(folder.files(), 2);
    assert_eq!(fs::read(precious).unwrap(), b"precious");
    drop(alive);
    assert_eq!(folder.files(), 1);
}

#[test]
fn a_folder_in_which_no_later_socket_would_fit_is_refused_at_once() {
    let folder = Folder::new();
    let longest = |bytes: usize| {
        let rest = bytes - folder.0.as_os_str().len() - 1;
        let path = folder.0.join("y".repeat(rest));
        fs::create_dir(&path).unwrap();
        path
    };
    let (fits, long) = (longest(75), longest(76));
    on_ranks(2, |rank| {
        UnixBootstrap::join(&fits, "j", Rank(rank), 2, soon(10_000)).unwrap();
        // The hub's own socket would fit.
        match UnixBootstrap::join(&long, "j", Rank(rank), 2, soon(10_000)) {
            Err(Error::Refused { why, .. }) => {
                assert!(why.contains("108 bytes, at most 107 are possible"), "{why}");
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn names_numbers_and_folders_out_of_range_are_refused() {
    let folder = Folder::new();
    let argument = |job: &str, rank, world| {
        let joined = UnixBootstrap::join(&folder.0, job, Rank(rank), world, soon(1000));
        assert!(
            matches!(joined, Err(Error::Argument { .. })),
            "{job} {rank}"
        );
    };
    argument("", 0, 2);
    argument("a/b", 0, 2);
    argument(&"x".repeat(MAX_JOB + 1), 0, 2);
    argument("job", 2, 2);
    argument("job", 0, 1);
    argument("job", 0, 17);
    let nowhere = folder.0.join("nowhere");
    let long = folder.0.join("y".repeat(100));
    fs::create_dir(&long).unwrap();
    for (place, words) in [
        (&nowhere, "there is no folder"),
        (&long, "at most 107 are possible"),
    ] {
        for rank in 0..2 {
            match UnixBootstrap::join(place, "job", Rank(rank), 2, soon(1000)) {
                Err(Error::Refused { why, .. }) => assert!(why.contains(words), "{why}"),
                other => panic!("{other:?}"),
            }
        }
    }
}
