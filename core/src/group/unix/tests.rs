use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of its own for a test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("slabfence-group-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn files(&self) -> usize {
        fs::read_dir(&self.0).unwrap().count()
    }

    fn socket(&self) -> PathBuf {
        listener::path(&self.0, "job")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn soon(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}

fn join(folder: &Folder, rank: u32, world: u32, ms: u64) -> Result<UnixBootstrap> {
    UnixBootstrap::join(&folder.0, "job", Rank(rank), world, soon(ms))
}

/// Runs `body` as every rank and gives what each returned.
fn on_ranks<T: Send>(world: u32, body: impl Fn(u32) -> T + Sync) -> Vec<T> {
    let body = &body;
    thread::scope(|scope| {
        let ranks: Vec<_> = (0..world)
            .map(|rank| scope.spawn(move || body(rank)))
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn ranks(numbers: &[u32]) -> Vec<Rank> {
    numbers.iter().copied().map(Rank).collect()
}

/// Waits until the others have counted so far.
fn reaches(count: &AtomicU32, wanted: u32) {
    let until = soon(20_000);
    while count.load(Ordering::SeqCst) < wanted {
        assert!(Instant::now() < until, "never {wanted}");
        thread::sleep(PAUSE);
    }
}

/// Waits until the hub listens.
fn knock(folder: &Folder) -> OwnedFd {
    let address = listener::address(&folder.socket()).unwrap();
    let until = soon(10_000);
    loop {
        match socket::connect(&address) {
            Ok(socket) => return socket,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        thread::sleep(PAUSE);
    }
}

/// The hub's answer to a raw message.
fn answer(socket: &OwnedFd) -> Option<Frame> {
    wait(socket, PollFlags::IN, soon(10_000)).unwrap();
    match socket::receive_message(socket, MAX_FRAME) {
        Received::Message(message) => Some(Frame::decode(&message).unwrap().1),
        Received::End => None,
        other => panic!("{other:?}"),
    }
}

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
    let outcomes = on_ranks(4, |rank| match rank {
        2 => None,
        // Whoever waits longest learns it too, though the hub has gone.
        rank => Some(join(&folder, rank, 4, 300 + 100 * u64::from(rank)).unwrap_err()),
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
    assert!(begin.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_timeout_names_the_missing_ranks_and_the_round_can_be_tried_again() {
    let folder = Folder::new();
    let (first, second) = (&AtomicU32::new(0), &AtomicU32::new(0));
    on_ranks(3, |rank| {
        let member = join(&folder, rank, 3, 10_000).unwrap();
        if rank < 2 {
            let missing = member.all_gather(b"early", soon(200)).unwrap_err();
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
fn the_socket_of_a_killed_run_is_replaced_and_other_files_are_not() {
    let folder = Folder::new();
    let address = listener::address(&folder.socket()).unwrap();
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
fn garbage_and_strangers_are_sent_away_without_harm() {
    let folder = Folder::new();
    let sent_away = &AtomicU32::new(0);
    on_ranks(3, |rank| {
        if rank != 2 {
            if rank == 1 {
                reaches(sent_away, 1);
            }
            let member = join(&folder, rank, 2, 20_000).unwrap();
            let parts = member.all_gather(&[rank as u8], soon(20_000)).unwrap();
            assert_eq!(parts, [[0], [1]]);
            return;
        }
        let hello = |rank, world, job: &str| {
            let job = job.to_owned();
            Frame::Hello { rank, world, job }.encode(0)
        };
        let part = Frame::Withdraw {
            round: 0,
            serial: 1,
        };
        for (message, words) in [
            (vec![0xa5; 100], "no greeting"),
            (vec![1; MAX_FRAME + 1], "no greeting"),
            (hello(1, 2, "job")[..30].to_vec(), "no greeting"),
            (part.encode(7), "no greeting"),
            (hello(1, 3, "job"), "this job has 2 ranks, not 3"),
            (hello(2, 2, "job"), "rank 2 in a job of 2"),
            (hello(u64::MAX, 2, "job"), "in a job of 2"),
            (hello(0, 2, "job"), "rank 0 is there already"),
            (hello(1, 2, "other"), "this is job 'job', not 'other'"),
        ] {
            let guest = knock(&folder);
            assert!(socket::send_message(&guest, &message).unwrap());
            match answer(&guest) {
                Some(Frame::Refused { why }) => assert!(why.contains(words), "{why}"),
                other => panic!("{words}: {other:?}"),
            }
            assert_eq!(answer(&guest), None);
        }
        // One that says nothing stays no longer than it may, and keeps nobody waiting.
        drop(knock(&folder));
        let _silent = knock(&folder);
        sent_away.store(1, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(50));
    });
}

#[test]
fn a_rank_that_sends_garbage_has_left() {
    let part = Frame::Withdraw {
        round: 1,
        serial: 9,
    };
    let garbage: [&(dyn Fn(u64) -> Vec<u8> + Sync); 4] = [
        &|_| vec![1; 64],
        &|_| vec![2; MAX_FRAME + 9],
        &|token| Frame::Welcome.encode(token),
        // Of another job.
        &|token| part.encode(token ^ 1),
    ];
    for garbage in garbage {
        let folder = Folder::new();
        on_ranks(2, |rank| {
            let member = join(&folder, rank, 2, 10_000).unwrap();
            if rank == 1 {
                let message = garbage(member.token);
                assert!(socket::send_message(&member.line().socket, &message).unwrap());
                let gone = ranks(&[0]);
                let error = member.all_gather(b"x", soon(10_000)).unwrap_err();
                assert_eq!(error, BootstrapError::Left { ranks: gone });
            } else {
                let gone = ranks(&[1]);
                let error = member.all_gather(b"x", soon(10_000)).unwrap_err();
                assert_eq!(error, BootstrapError::Left { ranks: gone });
            }
        });
    }
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
