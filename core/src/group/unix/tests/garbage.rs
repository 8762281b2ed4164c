//! Whatever comes over the socket: it ends its own connection and nothing else.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::event::{PollFd, PollFlags};

use super::super::frame::{Frame, MAX_FRAME, MAX_PART, PIECE, Piece};

use super::{Folder, answer, join, knock, on_ranks, ranks, reaches, soon};
use crate::error::{Error, Result};
use crate::group::{Bootstrap, BootstrapError, UnixBootstrap};
use crate::socket::{self, MAX_DESCRIPTORS};

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
        let mut other = hello(1, 2, "job");
        other[7] = b'2';
        for (message, words) in [
            (
                other,
                "your version of the meeting's protocol is 2, mine is 1; run the same build",
            ),
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
        // One that says nothing keeps nobody waiting.
        drop(knock(&folder));
        let silent = knock(&folder);
        sent_away.store(1, Ordering::SeqCst);
        // It stays no longer than it may, or until the hub has gone.
        match answer(&silent) {
            Some(Frame::Refused { why }) => assert_eq!(why, "it said nothing"),
            None => {}
            other => panic!("{other:?}"),
        }
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
                let message = garbage(member.line().token);
                assert!(socket::send_message(&member.line().connection.socket, &message).unwrap());
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

/// A message that comes with descriptors brings nothing in: the hub asks for none.
#[test]
fn descriptors_on_the_hubs_socket_are_closed_and_the_message_counts() {
    let folder = Folder::new();
    on_ranks(2, |rank| {
        if rank == 0 {
            let member = join(&folder, 0, 2, 20_000).unwrap();
            assert_eq!(member.all_gather(b"", soon(20_000)).unwrap().len(), 2);
            return;
        }
        for count in [1, MAX_DESCRIPTORS] {
            let guest = knock(&folder);
            let (reader, writer) = std::io::pipe().unwrap();
            let writer = OwnedFd::from(writer);
            let copies: Vec<OwnedFd> = (0..count).map(|_| writer.try_clone().unwrap()).collect();
            drop(writer);
            assert!(socket::send_descriptors(&guest, &[7; 64], &copies).unwrap());
            drop(copies);
            assert!(matches!(answer(&guest), Some(Frame::Refused { .. })));
            // The pipe ends once nobody holds its other end.
            let mut end = [PollFd::from_borrowed_fd(reader.as_fd(), PollFlags::IN)];
            socket::poll(&mut end, soon(10_000)).unwrap();
            assert_eq!(end[0].revents(), PollFlags::HUP);
        }
        let member = join(&folder, 1, 2, 20_000).unwrap();
        assert_eq!(member.all_gather(b"", soon(20_000)).unwrap().len(), 2);
    });
}

/// What rank 1 makes of a hub that says this to its greeting, and then nothing until it has left.
fn beside_a_hub(folder: &Folder, says: &[Vec<u8>]) -> Result<UnixBootstrap> {
    let address = folder.place().address().unwrap();
    let hub = socket::new().unwrap();
    rustix::net::bind(&hub, &address).unwrap();
    rustix::net::listen(&hub, 1).unwrap();
    let joined = thread::scope(|scope| {
        scope.spawn(|| {
            let mut all = [PollFd::new(&hub, PollFlags::IN)];
            socket::poll(&mut all, soon(10_000)).unwrap();
            let guest = socket::accept(&hub).unwrap().unwrap();
            for message in says {
                assert!(socket::send_message(&guest, message).unwrap());
            }
            while answer(&guest).is_some() {}
        });
        join(folder, 1, 2, 20_000)
    });
    std::fs::remove_file(folder.socket()).unwrap();
    joined
}

#[test]
fn a_hub_that_greets_with_garbage_is_refused() {
    let folder = Folder::new();
    let welcome = Frame::Welcome.encode(7);
    let mut other = welcome.clone();
    other[7] = b'2';
    for (message, words) in [
        (
            other,
            "the hub of job 'job' cannot be understood: its version of the meeting's protocol is 2, this rank's is 1; run the same build",
        ),
        (vec![0xa5; 100], "something that is no answer"),
        (vec![0xa5; MAX_FRAME + 1], "far too much"),
        (
            welcome[..welcome.len() - 1].to_vec(),
            "something that is no answer",
        ),
        ([welcome, vec![0]].concat(), "something that is no answer"),
    ] {
        match beside_a_hub(&folder, &[message]) {
            Err(Error::Refused { why, .. }) => assert!(why.contains(words), "{why}"),
            other => panic!("{words}: {other:?}"),
        }
    }
}

#[test]
fn a_hub_that_answers_with_garbage_ends_the_exchange() {
    let folder = Folder::new();
    let result = |rank, total: usize, offset: usize, length: usize| Frame::Result {
        round: 0,
        rank,
        piece: Piece {
            total: total as u64,
            offset: offset as u64,
            bytes: vec![1; length],
        },
    };
    for (what, message) in [
        ("bytes", vec![0xa5; 100]),
        ("too many bytes", vec![0xa5; MAX_FRAME + 1]),
        ("a rank out of its turn", result(1, 1, 0, 1).encode(7)),
        ("no such rank", result(u64::MAX, 1, 0, 1).encode(7)),
        ("a piece out of its turn", result(0, 9, 4, 1).encode(7)),
        ("a piece past the end", result(0, 1, 0, 2).encode(7)),
        (
            "a part too long",
            result(0, MAX_PART + 1, 0, PIECE).encode(7),
        ),
        ("an empty piece", result(0, 9, 0, 0).encode(7)),
        ("another job's", result(0, 1, 0, 1).encode(8)),
        (
            "a message for a hub",
            Frame::Withdraw {
                round: 0,
                serial: 1,
            }
            .encode(7),
        ),
        ("a second welcome", Frame::Welcome.encode(7)),
    ] {
        let error = beside_a_hub(&folder, &[Frame::Welcome.encode(7), message]).unwrap_err();
        let right = matches!(&error, Error::Bootstrap(BootstrapError::Other(words))
            if words == "the hub sent what it should not");
        assert!(right, "{what}: {error}");
    }
}
